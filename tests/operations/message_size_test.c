// Sizes: around the limit of a stored value, where a message becomes one more chunk, and around the
// largest message.

#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"
#include "raw.h"
#include "store/record.h"

// The size of a message's stored value, head included.
static size_t stored_size(Fixture *f, const char *session, const char *message)
{
    Arena arena;
    arena_init(&arena, RUN_BUDGET_BYTES);
    Txn txn;
    CHECK_EQ(txn_begin(engine_store(f->engine), /* is_write= */ false, &arena, NULL, &txn),
             ERROR_NONE);
    Ulid session_id, id;
    CHECK(ulid_parse(slice_of(session), &session_id));
    CHECK(ulid_parse(slice_of(message), &id));
    Key key = key_of_ids(session_id, id);
    Slice value;
    bool found;
    CHECK_EQ(record_get(&txn, TABLE_MESSAGES, &key, &found, &value), ERROR_NONE);
    CHECK(found);
    txn_abort(&txn);
    arena_free(&arena);
    return value.size;
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 7 + (i >> 8) * 31 + (i >> 16));
}

// A user's message whose one part is an image of `size` bytes, no two stretches alike.
static NewMessage *image_message(Fixture *f, size_t size)
{
    Image *image = fixture_alloc(f, sizeof(Image));
    image->mime_type = "image/png";
    image->source_case = IMAGE__SOURCE_DATA;
    image->data.len = size;
    image->data.data = fixture_alloc(f, size + 1);
    for (size_t i = 0; i < size; i++)
        image->data.data[i] = pattern(i);
    Part *part = fixture_alloc(f, sizeof(Part));
    part->id = "p";
    part->kind_case = PART__KIND_IMAGE;
    part->image = image;
    NewMessage *message = fixture_alloc(f, sizeof(NewMessage));
    message->role = ROLE_USER;
    message->n_parts = 1;
    message->parts = fixture_alloc(f, sizeof(Part *));
    message->parts[0] = part;
    return message;
}

static void check_image(const Message *message, size_t size)
{
    CHECK_EQ(message->n_parts, 1);
    ProtobufCBinaryData data = message->parts[0]->image->data;
    CHECK_EQ(data.len, size);
    size_t wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += data.data[i] != pattern(i);
    CHECK_EQ(wrong, 0);
}

// Appends an image such that the stored value has exactly this size. Lengths of lengths move with
// the size, so it is found by trying.
static const char *append_of_stored_size(Fixture *f, const char *session, size_t wanted,
                                         size_t *out_size)
{
    size_t size = wanted - 160;
    for (int attempt = 0; attempt < 8; attempt++) {
        const char *id = entry_ok(f, session, image_message(f, size))->id;
        size_t actual = stored_size(f, session, id);
        if (actual == wanted) {
            *out_size = size;
            return id;
        }
        message_purge_ok(f, id);
        message_delete_ok(f, id);
        size = size + wanted - actual;
    }
    CHECK(!"no image makes a value of this size");
    return NULL;
}

TEST(size_around_the_chunk_limit_round_trips)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t multiples[] = {1, 2, 3, 17};
    const char *ids[12];
    size_t sizes[12];
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        for (int off = -1; off <= 1; off++) {
            size_t wanted = (size_t)((int)(multiples[i] * VALUE_BYTES_MAX) + off);
            ids[count] = append_of_stored_size(f, session, wanted, &sizes[count]);
            count++;
        }
    }
    for (size_t i = 0; i < count; i++)
        check_image(message_ok(f, ids[i]), sizes[i]);
    for (int newest_first = 0; newest_first <= 1; newest_first++) {
        MessagesForSessionResponse *page =
            CALL_OK(f, messages_for_session, MessagesForSession,
                    {.session_id = CHARS(session), .newest_first = newest_first});
        CHECK_EQ(page->n_messages, count);
        for (size_t i = 0; i < count; i++) {
            size_t place = newest_first ? count - 1 - i : i;
            CHECK_STR(page->messages[i]->id, ids[place]);
            check_image(page->messages[i], sizes[place]);
        }
    }
}

TEST(size_around_the_chunk_limit_can_be_deleted)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (size_t multiple = 1; multiple <= 2; multiple++) {
        for (size_t less = 0; less <= 4; less++) {
            size_t size;
            const char *id =
                append_of_stored_size(f, session, multiple * VALUE_BYTES_MAX - less, &size);
            message_delete_ok(f, id);
            Message *message = message_ok(f, id);
            CHECK_EQ(message->deleted_at, f->now_ms);
            check_image(message, size);
            message_purge_ok(f, id);
            CHECK_EQ(message_ok(f, id)->deleted_at, f->now_ms);
            CHECK_EQ(message_ok(f, id)->n_parts, 0);
        }
    }
    CHECK_STR(history_texts(f, session), "");
}

TEST(size_of_a_mebibyte_round_trips)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const size_t size = 1024 * 1024;
    const char *id = entry_ok(f, session, image_message(f, size))->id;
    append_ok(f, session, ROLE_ASSISTANT, "after");
    check_image(message_ok(f, id), size);
    MessagesForSessionResponse *page =
        CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
    CHECK_EQ(page->n_messages, 1);
    check_image(page->messages[0], size);
    page = CALL_OK(f, messages_for_session, MessagesForSession,
                   {.session_id = CHARS(session), .cursor = page->next_cursor});
    CHECK_EQ(page->n_messages, 1);
    CHECK_STR(page->next_cursor, "");
    fixture_reopen(f);
    check_image(message_ok(f, id), size);
}

// The largest image: what MESSAGE_BYTES_MAX leaves beside the message's other fields.
static size_t largest_image(Fixture *f)
{
    const size_t packed_max = MESSAGE_BYTES_MAX - MESSAGE_PREFIX_BYTES_MAX;
    NewMessage *message = image_message(f, packed_max - 100);
    message->kind = MESSAGE_KIND_CONVERSATION;
    message->status = MESSAGE_STATUS_COMPLETE;
    message->base.descriptor = &new_message__descriptor;
    fixture_fill(&message->base);
    size_t packed = protobuf_c_message_get_packed_size(&message->base);
    return packed_max - 100 + (packed_max - packed);
}

TEST(size_maximum_round_trips_and_one_more_is_refused)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    size_t size = largest_image(f);
    const char *id = entry_ok(f, session, image_message(f, size))->id;
    check_image(message_ok(f, id), size);
    MessagesForSessionResponse *page =
        CALL_OK(f, messages_for_session, MessagesForSession, {.session_id = CHARS(session)});
    CHECK_EQ(page->n_messages, 1);
    check_image(page->messages[0], size);
    CHECK_STR(page->next_cursor, "");

    entry_fails(f, session, image_message(f, size + 1), "TOO_LONG");
    CHECK(strstr(f->status.message, "message"));
    CHECK_EQ(get_ok(f, session)->entry_count, 1);
    message_delete_ok(f, id);
    CHECK_EQ(message_ok(f, id)->deleted_at, f->now_ms);
    check_image(message_ok(f, id), size);
}

TEST(size_of_a_request_is_limited)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    // An unknown field of the envelope brings a good call to the limit, and one past it.
    Raw *body = raw_begin(f);
    raw_text(body, 1, session);
    Raw *request = raw_request(f, "GetSession", NULL, body);
    size_t rest = REQUEST_BYTES_MAX - request->size - 5;
    raw_bytes(request, 14, filled(f, 'x', rest), rest);
    CHECK_EQ(request->size, REQUEST_BYTES_MAX);
    raw_send(f, request);
    raw_expect(f, "", "");
    request = raw_request(f, "GetSession", NULL, body);
    raw_bytes(request, 14, filled(f, 'x', rest + 1), rest + 1);
    raw_send(f, request);
    raw_expect(f, "TOO_LONG", "request");
}

static void fill_to_the_maximum(Fixture *f, NewMessage *message)
{
    char *longest = filled(f, 'x', STRING_BYTES_MAX);
    char **strings[] = {
        &message->other_role, &message->name,          &message->subtype,
        &message->target_id,  &message->finish_reason, &message->agent,
        &message->call_id,    &message->turn_id,       &message->reply_to_id,
    };
    for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
        *strings[i] = longest;
    message->kind = MESSAGE_KIND_CUSTOM;
    message->role = ROLE_OTHER;
    message->created_at = message->completed_at = TIME_MS_MAX;
    message->status = MESSAGE_STATUS_FAILED;
    message->duration_ms = INT64_MAX;
    message->hidden = true;
    message->producer = PRODUCER_EXTENSION;
    message->model = fixture_alloc(f, sizeof(ModelRef));
    *message->model = (ModelRef){.provider = longest, .name = longest};
    message->external = fixture_alloc(f, sizeof(External));
    *message->external = (External){.source = longest, .id = longest};
    message->usage = fixture_alloc(f, sizeof(Usage));
    *message->usage = (Usage){
        .input_tokens = -1,
        .output_tokens = -1,
        .cache_read_tokens = -1,
        .cache_write_tokens = -1,
        .cost_nano_usd = -1,
        .reasoning_tokens = -1,
        .total_tokens = -1,
    };
}

// Scans, deletes and purges read these fields off the first chunk alone (store/message.h).
TEST(size_of_all_metadata_at_its_maximum_fits_into_the_first_chunk)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "parent");
    NewMessage *message = image_message(f, 3 * VALUE_BYTES_MAX);
    fill_to_the_maximum(f, message);
    const char *id = entry_ok(f, session, message)->id;
    char *longest = filled(f, 'x', STRING_BYTES_MAX);

    ListMessagesResponse *page =
        CALL_OK(f, list_messages, ListMessages,
                {.session_id = CHARS(session), .subtype = longest, .target_id = longest});
    CHECK_EQ(page->n_messages, 1);
    GetMessageRequest by_external = {
        .by_case = GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL,
        .session_external =
            &(SessionExternal){.session_id = CHARS(session), .external = message->external},
    };
    CHECK_STR(CALL_OK(f, get_message, GetMessage, by_external)->message->id, id);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, -1);

    message_delete_ok(f, id);
    CHECK_EQ(get_ok(f, session)->own_totals->cost_nano_usd, 0);
    message_purge_ok(f, id);
    CALL_FAILS(f, get_message, GetMessage, "MESSAGE_NOT_FOUND", by_external);
    Message *purged = message_ok(f, id);
    CHECK_STR(purged->reply_to_id, longest);
    CHECK_STR(purged->model->name, longest);
    CHECK_EQ(purged->usage->total_tokens, -1);
    CHECK_EQ(purged->producer, PRODUCER_EXTENSION);
    CHECK_EQ(purged->deleted_at, f->now_ms);
    CHECK_EQ(purged->n_parts, 0);
    CHECK(!purged->external);
}
