// Random messages.

#include "content.h"

#include <stdlib.h>

enum { JOINED_BYTES_MAX = 400 };

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))

static const char *const SUBTYPES[] = {"model", "thinking", "tools", "theme", "mode", "custom.x"};
static const char *const PROVIDERS[] = {"anthropic", "openai", "local"};
static const char *const MODELS[] = {"large", "small", "größer"};
static const char *const TOOLS[] = {"bash", "read", "größer"};
static const char *const JSONS[] = {"{}", "[1,2,{\"a\":null}]", "\"text\"", "{\"k\":[true,1e9]}"};

const char *content_pick(Run *run, const char *const *words, size_t count)
{
    uint64_t index = run_below(run, count + 1);
    return index == count ? "" : words[index];
}

static size_t text_bytes(Run *run)
{
    uint64_t die = run_below(run, 1000);
    if (die < 50) return 0;
    if (die < 850) return 1 + run_below(run, 60);
    if (die < 960) return 100 + run_below(run, 300);
    if (die < 970) return run_below(run, 4096);
    if (die < 995) return 3850 + run_below(run, 250); // the message is about a chunk
    return run_below(run, 20 * 1024);
}

char *content_text(Run *run)
{
    static const char *const PIECES[] = {"a", "B", " ", "ß", "€", "𝄞", "Word", "é", "\n", "xyz "};
    size_t size = text_bytes(run), at = 0;
    char *text = run_alloc(run, size + 8);
    size_t repeated = 0; // long texts repeat their beginning: they are for the chunks
    while (at < size) {
        if (at >= 400) {
            text[at++] = (char)('a' + repeated++ % 26);
            continue;
        }
        const char *piece = PIECES[run_below(run, LENGTH(PIECES))];
        memcpy(text + at, piece, strlen(piece));
        at += strlen(piece);
    }
    text[at] = '\0';
    return text;
}

ModelRef *content_model(Run *run)
{
    ModelRef *model = RUN_NEW(run, ModelRef);
    tine__v1__model_ref__init(model);
    model->provider = text_of(PROVIDERS[run_below(run, LENGTH(PROVIDERS))]);
    model->name = text_of(MODELS[run_below(run, LENGTH(MODELS))]);
    return model;
}

Totals *content_totals(Run *run)
{
    Totals *totals = RUN_NEW(run, Totals);
    tine__v1__totals__init(totals);
    int64_t *fields[] = {&totals->input_tokens, &totals->output_tokens, &totals->cache_read_tokens,
                         &totals->cache_write_tokens, &totals->cost_nano_usd};
    for (size_t i = 0; i < LENGTH(fields); i++) {
        *fields[i] = (int64_t)run_below(run, 100000) - 20000;
        if (run_below(run, 200) == 0) *fields[i] = INT64_MAX - 5;
        if (run_below(run, 200) == 0) *fields[i] = INT64_MIN + 5;
    }
    return totals;
}

Usage *content_usage(Run *run)
{
    Usage *usage = RUN_NEW(run, Usage);
    tine__v1__usage__init(usage);
    usage->input_tokens = (int64_t)run_below(run, 10000);
    usage->output_tokens = (int64_t)run_below(run, 1000);
    usage->cache_read_tokens = (int64_t)run_below(run, 3);
    usage->cache_write_tokens = (int64_t)run_below(run, 3);
    usage->cost_nano_usd = (int64_t)run_below(run, UINT64_C(1000000000000));
    usage->reasoning_tokens = (int64_t)run_below(run, 3);
    usage->total_tokens = (int64_t)run_below(run, 3);
    return usage;
}

static ProtobufCBinaryData random_data(Run *run)
{
    size_t size = 1 + run_below(run, run_chance(run, 5) ? 9000 : 40);
    ProtobufCBinaryData data = {size, run_alloc(run, size)};
    random_fill(&run->random, data.data, size);
    return data;
}

static Image *random_image(Run *run)
{
    Image *image = RUN_NEW(run, Image);
    tine__v1__image__init(image);
    image->mime_type = text_of("image/png");
    image->source_case = run_chance(run, 50) ? IMAGE__SOURCE_URL : IMAGE__SOURCE_DATA;
    if (image->source_case == IMAGE__SOURCE_URL) {
        image->url = text_of("https://example.org/i.png");
    } else {
        image->data = random_data(run);
    }
    return image;
}

static File *random_file(Run *run)
{
    File *file = RUN_NEW(run, File);
    tine__v1__file__init(file);
    file->mime_type = text_of("text/x-c");
    file->filename = text_of("main.c");
    file->source_case = FILE__SOURCE_DATA;
    file->data = random_data(run);
    return file;
}

static ToolUse *random_tool_use(Run *run)
{
    ToolUse *use = RUN_NEW(run, ToolUse);
    tine__v1__tool_use__init(use);
    use->id = run_text(run, "call-%u", run->next_number++);
    use->name = text_of(TOOLS[run_below(run, LENGTH(TOOLS))]);
    if (run_chance(run, 70)) {
        use->input_case = TOOL_USE__INPUT_INPUT_JSON;
        use->input_json = text_of(JSONS[run_below(run, LENGTH(JSONS))]);
    } else {
        use->input_case = TOOL_USE__INPUT_INPUT_TEXT;
        use->input_text = content_text(run);
    }
    use->state = (ToolState)run_below(run, 5);
    return use;
}

static ToolResult *random_tool_result(Run *run)
{
    ToolResult *result = RUN_NEW(run, ToolResult);
    tine__v1__tool_result__init(result);
    unsigned back = (unsigned)run_below(run, run->next_number < 40 ? run->next_number + 1 : 40);
    result->tool_use_id = run_text(run, "call-%u", run->next_number - back);
    result->tool_name = text_of(CONTENT_PICK(run, TOOLS));
    result->content = content_text(run);
    result->is_error = run_chance(run, 10);
    result->data_json = text_of(CONTENT_PICK(run, JSONS));
    if (run_chance(run, 80)) return result;
    Attachment *attachment = RUN_NEW(run, Attachment);
    tine__v1__attachment__init(attachment);
    attachment->kind_case = ATTACHMENT__KIND_IMAGE;
    attachment->image = random_image(run);
    result->attachments = run_alloc(run, sizeof(Attachment *));
    result->attachments[0] = attachment;
    result->n_attachments = 1;
    return result;
}

Part *content_part(Run *run)
{
    Part *part = RUN_NEW(run, Part);
    tine__v1__part__init(part);
    if (run_chance(run, 15)) part->id = run_text(run, "part-%u", run->next_number++);
    if (run_chance(run, 10)) part->started_at = run->now_ms;
    if (run_chance(run, 5)) part->signature = random_data(run);
    uint64_t die = run_below(run, 20);
    if (die < 12) {
        part->kind_case = PART__KIND_TEXT;
        part->text = RUN_NEW(run, Text);
        tine__v1__text__init(part->text);
        part->text->text = content_text(run);
        part->text->synthetic = run_chance(run, 5);
    } else if (die < 13) {
        part->kind_case = PART__KIND_THINKING;
        part->thinking = RUN_NEW(run, Thinking);
        tine__v1__thinking__init(part->thinking);
        part->thinking->text = content_text(run);
    } else if (die < 15) {
        part->kind_case = PART__KIND_TOOL_USE;
        part->tool_use = random_tool_use(run);
    } else if (die < 17) {
        part->kind_case = PART__KIND_TOOL_RESULT;
        part->tool_result = random_tool_result(run);
    } else if (die < 18) {
        part->kind_case = PART__KIND_IMAGE;
        part->image = random_image(run);
    } else if (die < 19) {
        part->kind_case = PART__KIND_FILE;
        part->file = random_file(run);
    } else {
        part->kind_case = PART__KIND_EXTENSION;
        part->extension = RUN_NEW(run, Extension);
        tine__v1__extension__init(part->extension);
        part->extension->type = text_of("step");
        part->extension->json = text_of(CONTENT_PICK(run, JSONS));
    }
    return part;
}

static Role random_role(Run *run, MessageKind kind)
{
    bool is_required = kind == MESSAGE_KIND_CONVERSATION || kind == MESSAGE_KIND_INJECTED;
    uint64_t die = run_below(run, 20);
    if (!is_required && die < 15) return ROLE_UNSPECIFIED;
    if (die < 9) return ROLE_USER;
    if (die < 16) return ROLE_ASSISTANT;
    return (Role)(ROLE_TOOL + run_below(run, 3));
}

// Fields that are seldom set, at times all at their longest.
static void fill_seldom(Run *run, NewMessage *message)
{
    char *word = run_text(run, "word-%u", run->next_number++);
    if (run_chance(run, 20)) {
        word = run_alloc(run, 257);
        memset(word, 'w', 256);
    }
    message->name = message->finish_reason = message->agent = word;
    message->call_id = message->turn_id = message->reply_to_id = word;
    message->hidden = run_chance(run, 50);
    message->producer = (Producer)run_below(run, 3);
    message->duration_ms = (int64_t)run_below(run, 1000);
    message->completed_at = run->now_ms;
    message->data_json = text_of(CONTENT_PICK(run, JSONS));
    if (run_chance(run, 30)) {
        message->error = RUN_NEW(run, Tine__V1__Error);
        tine__v1__error__init(message->error);
        message->error->code = text_of("overloaded");
        message->error->message = content_text(run);
    }
}

NewMessage *content_message(Run *run, MessageKind kind)
{
    NewMessage *message = RUN_NEW(run, NewMessage);
    tine__v1__new_message__init(message);
    message->kind =
        kind == MESSAGE_KIND_CONVERSATION && run_chance(run, 30) ? MESSAGE_KIND_UNSPECIFIED : kind;
    message->role = random_role(run, kind);
    if (message->role == ROLE_OTHER) message->other_role = text_of("critic");
    uint64_t status = run_below(run, 20);
    if (status < 5) message->status = (MessageStatus)status;
    if (run_chance(run, 10)) {
        message->created_at = run->now_ms - (int64_t)run_below(run, 20000000) + 10000000;
    }
    if (run_chance(run, 30)) message->usage = content_usage(run);
    bool is_agent = kind == MESSAGE_KIND_CONVERSATION && message->role == ROLE_ASSISTANT;
    if (is_agent ? run_chance(run, 50) : kind == MESSAGE_KIND_SETTING) {
        message->model = content_model(run);
    }
    bool has_subtype = kind == MESSAGE_KIND_SETTING || kind == MESSAGE_KIND_CUSTOM;
    if (has_subtype) message->subtype = text_of(SUBTYPES[run_below(run, LENGTH(SUBTYPES))]);
    if (kind == MESSAGE_KIND_LABEL) message->target_id = run_text(run, "x%s", run->last_id + 1);
    bool is_turn = kind == MESSAGE_KIND_CONVERSATION || kind == MESSAGE_KIND_INJECTED;
    if (!is_turn) message->text = content_text(run);
    if (run_chance(run, 8)) fill_seldom(run, message);
    size_t count = is_turn || run_chance(run, 10) ? run_below(run, 3) : 0;
    if (is_turn && run_chance(run, 3)) count += run_below(run, 12);
    message->parts = run_alloc(run, count * sizeof(Part *));
    message->n_parts = count;
    for (size_t i = 0; i < count; i++)
        message->parts[i] = content_part(run);
    return message;
}

// Adds a part that is broken in one way.
static const char *break_part(Run *run, NewMessage *message)
{
    static uint8_t unknown[] = {1, 'x'};
    Part **parts = run_alloc(run, (message->n_parts + 1) * sizeof(Part *));
    memcpy(parts, message->parts, message->n_parts * sizeof(Part *));
    message->parts = parts;
    Part *part = RUN_NEW(run, Part);
    tine__v1__part__init(part);
    parts[message->n_parts++] = part;
    switch (run_below(run, 6)) {
    case 0: return "INVALID_PART"; // of no kind
    case 1:
        part->base.unknown_fields = RUN_NEW(run, ProtobufCMessageUnknownField);
        *part->base.unknown_fields =
            (ProtobufCMessageUnknownField){.tag = 90,
                                           .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                           .len = 2,
                                           .data = unknown};
        part->base.n_unknown_fields = 1;
        return "UNKNOWN_PART_KIND";
    case 2:
        part->kind_case = PART__KIND_IMAGE;
        part->image = random_image(run);
        part->image->mime_type = text_of("");
        return "INVALID_PART";
    case 3:
        part->kind_case = PART__KIND_TOOL_USE;
        part->tool_use = random_tool_use(run);
        part->tool_use->input_case = TOOL_USE__INPUT_INPUT_JSON;
        part->tool_use->input_json = text_of("{\"open\":");
        return "INVALID_JSON";
    case 4:
        part->kind_case = PART__KIND_TEXT;
        part->text = RUN_NEW(run, Text);
        tine__v1__text__init(part->text);
        part->text->text = text_of("\xC3(");
        return "INVALID_UTF8";
    default:
        part->kind_case = PART__KIND_EXTENSION;
        part->extension = RUN_NEW(run, Extension);
        tine__v1__extension__init(part->extension);
        return "INVALID_PART";
    }
}

const char *content_break(Run *run, NewMessage *message)
{
    char *long_word = run_alloc(run, 258);
    memset(long_word, 'l', 257);
    switch (run_below(run, 8)) {
    case 0:
        message->other_role = text_of(message->role == ROLE_OTHER ? "" : "nobody");
        return "INVALID_ARGUMENT";
    case 1: message->created_at = -1; return "INVALID_ARGUMENT";
    case 2: message->turn_id = long_word; return "TOO_LONG";
    case 3:
        message->external = RUN_NEW(run, External);
        tine__v1__external__init(message->external);
        message->external->source = text_of("half");
        return "INVALID_ARGUMENT";
    default: return break_part(run, message);
    }
}

Message content_expected(const NewMessage *sent, const Receipt *receipt)
{
    for (size_t i = 0; i < sent->n_parts; i++)
        sent->parts[i]->id = receipt->part_ids[i];
    Message message = MESSAGE__INIT;
    message.id = receipt->id;
    message.session_id = receipt->session_id;
    message.parent_id = receipt->parent_id;
    message.sequence = receipt->sequence;
    message.created_at = receipt->created_at;
    message.kind = sent->kind ? sent->kind : MESSAGE_KIND_CONVERSATION;
    message.role = sent->role ? sent->role : ROLE_SYSTEM;
    message.status = sent->status ? sent->status : MESSAGE_STATUS_COMPLETE;
    message.completed_at = sent->completed_at;
    message.usage = sent->usage;
    message.model = sent->model;
    message.duration_ms = sent->duration_ms;
    message.other_role = sent->other_role;
    message.name = sent->name;
    message.subtype = sent->subtype;
    message.target_id = sent->target_id;
    message.hidden = sent->hidden;
    message.finish_reason = sent->finish_reason;
    message.agent = sent->agent;
    message.call_id = sent->call_id;
    message.turn_id = sent->turn_id;
    message.reply_to_id = sent->reply_to_id;
    message.producer = sent->producer;
    message.external = sent->external;
    message.error = sent->error;
    message.text = sent->text;
    message.data_json = sent->data_json;
    message.marker = sent->marker;
    message.parts = sent->parts;
    message.n_parts = sent->n_parts;
    return message;
}

static const char *interned(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) return words[i];
    }
    return "";
}

char *content_texts(Part *const *parts, size_t count)
{
    char text[JOINED_BYTES_MAX + 1] = "";
    size_t size = 0;
    for (size_t i = 0; i < count && size < JOINED_BYTES_MAX; i++) {
        if (parts[i]->kind_case != PART__KIND_TEXT || !*parts[i]->text->text) continue;
        int more = snprintf(text + size, sizeof(text) - size, "%s%s", size > 0 ? " " : "",
                            parts[i]->text->text);
        CHECK(more > 0);
        size += (size_t)more < sizeof(text) - size ? (size_t)more : sizeof(text) - 1 - size;
    }
    if (size == 0) return NULL;
    char *joined = strdup(text);
    CHECK(joined);
    return joined;
}

void content_note(Entry *entry, const NewMessage *sent)
{
    entry->kind = sent->kind ? sent->kind : MESSAGE_KIND_CONVERSATION;
    entry->role = sent->role ? sent->role : ROLE_SYSTEM;
    entry->status = sent->status ? sent->status : MESSAGE_STATUS_COMPLETE;
    entry->subtype = interned(sent->subtype, SUBTYPES, LENGTH(SUBTYPES));
    snprintf(entry->target_id, sizeof(entry->target_id), "%s", sent->target_id);
    if (sent->usage) {
        entry->has_usage = true;
        entry->usage = (Totals)TOTALS__INIT;
        entry->usage.input_tokens = sent->usage->input_tokens;
        entry->usage.output_tokens = sent->usage->output_tokens;
        entry->usage.cache_read_tokens = sent->usage->cache_read_tokens;
        entry->usage.cache_write_tokens = sent->usage->cache_write_tokens;
        entry->usage.cost_nano_usd = sent->usage->cost_nano_usd;
    }
    if (sent->model) {
        entry->model_provider = interned(sent->model->provider, PROVIDERS, LENGTH(PROVIDERS));
        entry->model_name = interned(sent->model->name, MODELS, LENGTH(MODELS));
    }
    entry->text = content_texts(sent->parts, sent->n_parts);
    entry->has_parts = sent->n_parts > 0;
}

Hash content_hash(Run *run, const Message *message)
{
    size_t size = tine__v1__message__get_packed_size(message);
    uint8_t *bytes = arena_alloc(&run->scratch, size + 1);
    CHECK(bytes);
    tine__v1__message__pack(message, bytes);
    return hash_bytes(slice(bytes, size));
}

void content_set(Run *run, Entry *entry, const Message *message)
{
    entry->content = content_hash(run, message);
    entry->is_verified = false;
    if (!*entry->call_id) return;
    Message bare = *message;
    bare.call_id = text_of("");
    entry->content_bare = content_hash(run, &bare);
}

void content_forget_call(Entry *entry)
{
    entry->call_id[0] = '\0';
    entry->content = entry->content_bare;
    entry->is_verified = false;
}

void content_check(Run *run, const Message *actual, Entry *entry)
{
    if (strcmp(actual->id, entry->id) != 0) {
        run_differs(run, "entry %s stands where %s should", actual->id, entry->id);
    }
    if (entry->is_verified && run_below(run, 16) != 0) return;
    entry->is_verified = true;
    Hash hash = content_hash(run, actual);
    if (memcmp(hash.bytes, entry->content.bytes, HASH_BYTES) != 0) {
        run_differs(run, "entry %s of session %s, kind %d, reads otherwise than it was written",
                    entry->id, entry->owner->id, (int)entry->kind);
    }
}
