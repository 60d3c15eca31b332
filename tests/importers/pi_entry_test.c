// What each field of pi becomes, as docs/systems/pi.md says.

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "pi_steps.h"
#include "shell.h"

static void message(PiStore *store, const char *id, const char *parent, const char *more)
{
    char quoted[64] = "null";
    if (parent) snprintf(quoted, sizeof(quoted), "\"%s\"", parent);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":"
            "\"2025-11-20T10:00:01.000Z\",\"message\":{%s}}",
            id, quoted, more);
}

static void entry(PiStore *store, const char *type, const char *id, const char *parent,
                  const char *more)
{
    pi_line(store, "{\"type\":\"%s\",\"id\":\"%s\",\"parentId\":\"%s\"%s}", type, id, parent, more);
}

TEST(pi_images_and_signatures_are_parts_of_messages)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL,
            "\"role\":\"user\",\"content\":[{\"type\":\"image\",\"data\":\"AAEC\",\"mimeType\":"
            "\"image/png\"}]");
    message(store, "2", "1",
            "\"role\":\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":"
            "\"n\",\"arguments\":{},\"thoughtSignature\":\"thought\"}]");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "1");
    CHECK_EQ(first->message->n_parts, 1);
    const Image *image = first->message->parts[0]->image;
    CHECK_EQ(first->message->parts[0]->kind_case, PART__KIND_IMAGE);
    CHECK_STR(image->mime_type, "image/png");
    CHECK_EQ(image->data.len, 3);
    CHECK(memcmp(image->data.data, "\0\1\2", 3) == 0);
    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "2");
    const Part *call = second->message->parts[0];
    CHECK_EQ(call->signature.len, 7);
    CHECK(memcmp(call->signature.data, "thought", 7) == 0);
}

TEST(pi_answer_that_failed_is_failed)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL,
            "\"role\":\"assistant\",\"content\":[],\"stopReason\":\"error\",\"errorMessage\":"
            "\"overloaded\"");
    message(store, "2", "1", "\"role\":\"assistant\",\"content\":[],\"stopReason\":\"stop\"");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "1");
    CHECK_EQ(first->message->status, MESSAGE_STATUS_FAILED);
    CHECK_STR(first->message->finish_reason, "error");
    CHECK_STR(first->message->error->message, "overloaded");
    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "2");
    CHECK_EQ(second->message->status, MESSAGE_STATUS_COMPLETE);
}

// Adds a text of `size` bytes that ends in '.'.
static void long_text(PiStore *store, size_t size)
{
    char *text = malloc(size + 1);
    CHECK(text != NULL);
    memset(text, 'e', size);
    text[size - 1] = '.';
    text[size] = '\0';
    pi_bytes(store, text);
    free(text);
}

TEST(pi_error_message_that_is_too_long_for_its_field_is_kept_whole)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    pi_bytes(store, "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"timestamp\":"
                    "\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"assistant\",\"content\":"
                    "[],\"stopReason\":\"error\",\"timestamp\":5,\"errorMessage\":\"");
    long_text(store, ERROR_MESSAGE_BYTES_MAX + 1);
    pi_bytes(store, "\"}}\n");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, "1");
    CHECK_EQ(strlen(reply->message->error->message), ERROR_MESSAGE_BYTES_MAX);
    CHECK_EQ(strlen(reply->message->data_json),
             strlen("{\"message\":{\"errorMessage\":\"\"}}") + ERROR_MESSAGE_BYTES_MAX + 1);
    pi_forget_lines(store); // so it is written from the store
    pi_fork(store);
    const char *text = strstr(pi_export_text(store), "\"errorMessage\":\"eee");
    CHECK(text != NULL && strstr(text + 2, "errorMessage") == NULL);
    CHECK(strstr(text, "eee.\"") != NULL);
}

TEST(pi_messages_of_role_custom_are_hidden_if_they_are_not_displayed)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL,
            "\"role\":\"custom\",\"customType\":\"t\",\"content\":\"x\",\"display\":false");
    message(store, "2", "1",
            "\"role\":\"custom\",\"customType\":\"t\",\"content\":\"x\",\"display\":true");
    message(store, "3", "2", "\"role\":\"custom\",\"content\":\"x\",\"display\":false");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "1");
    CHECK_EQ(first->message->role, ROLE_OTHER);
    CHECK_STR(first->message->other_role, "custom");
    CHECK_STR(first->message->subtype, "t");
    CHECK(first->message->hidden);
    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "2");
    CHECK(!second->message->hidden);
    pi_forget_lines(store); // written from the store it is still hidden
    pi_fork(store);
    const char *third = strstr(pi_export_text(store), "\"id\":\"3\"");
    CHECK(third != NULL && strstr(third, "\"display\":false") != NULL);
}

TEST(pi_from_hook_has_three_states)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL, "\"role\":\"user\",\"content\":\"x\"");
    entry(store, "compaction", "2", "1", ",\"summary\":\"S\"");
    entry(store, "branch_summary", "3", "1", ",\"fromId\":\"root\",\"summary\":\"S\"");
    entry(store, "compaction", "4", "1", ",\"summary\":\"S\",\"fromHook\":false");
    entry(store, "branch_summary", "5", "1", ",\"summary\":\"S\",\"fromHook\":true");
    pi_import_ok(store);
    static const Producer PRODUCERS[] = {PRODUCER_UNSPECIFIED, PRODUCER_UNSPECIFIED, PRODUCER_AGENT,
                                         PRODUCER_EXTENSION};
    static const char *const IDS[] = {"2", "3", "4", "5"};
    for (size_t i = 0; i < 4; i++) {
        CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, IDS[i]);
        CHECK_EQ(reply->message->producer, PRODUCERS[i]);
    }
}

TEST(pi_usage_of_compactions_summaries_and_tools_counts)
{
    static const char USAGE[] =
        "\"usage\":{\"input\":1,\"output\":20,\"cacheRead\":300,"
        "\"cacheWrite\":4000,\"totalTokens\":4321,\"cost\":{\"total\":0.5}}";
    char more[512];
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    snprintf(more, sizeof(more),
             "\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"t\","
             "\"content\":[],\"isError\":false,%s",
             USAGE);
    message(store, "1", NULL, more);
    snprintf(more, sizeof(more), ",\"summary\":\"S\",\"tokensBefore\":1,%s", USAGE);
    entry(store, "compaction", "2", "1", more);
    snprintf(more, sizeof(more), ",\"fromId\":\"1\",\"summary\":\"S\",%s", USAGE);
    entry(store, "branch_summary", "3", "2", more);
    snprintf(more, sizeof(more), ",\"fromId\":\"1\",\"summary\":\"\",%s", USAGE);
    entry(store, "branch_summary", "4", "3", more);
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *session = pi_session(store);
    const Totals *totals = session->session->own_totals;
    CHECK_EQ(totals->input_tokens, 4);
    CHECK_EQ(totals->output_tokens, 80);
    CHECK_EQ(totals->cache_read_tokens, 1200);
    CHECK_EQ(totals->cache_write_tokens, 16000);
    CHECK_EQ(totals->cost_nano_usd, INT64_C(2000000000));
    CLEANUP(reply_freep) GetMessageResponse *compaction = pi_entry(store, "2");
    CHECK_EQ(compaction->message->usage->total_tokens, 4321);
    CHECK_STR(compaction->message->data_json, "");
    pi_forget_lines(store); // written from the store they are still there
    pi_fork(store);
    const char *text = pi_export_text(store);
    for (int i = 0; i < 4; i++) {
        text = strstr(text, "\"usage\":{\"input\":1,");
        CHECK(text != NULL);
        text++;
    }
    CHECK(strstr(text, "\"usage\"") == NULL);
}

TEST(pi_content_that_is_null_is_an_empty_list)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL, "\"role\":\"user\",\"content\":null");
    message(store, "2", "1", "\"role\":\"assistant\",\"provider\":\"p\",\"model\":\"m\"");
    message(store, "3", "2",
            "\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"t\",\"content\":null");
    entry(store, "custom_message", "4", "3", ",\"customType\":\"t\",\"content\":null");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 assistant:2 toolResult:3 custom:4 | off p/m");
    static const char *const IDS[] = {"1", "2", "4"};
    for (size_t i = 0; i < 3; i++) {
        CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, IDS[i]);
        CHECK_EQ(reply->message->n_parts, 0);
        CHECK_STR(reply->message->data_json, "");
    }
    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, "3");
    CHECK_EQ(reply->message->n_parts, 1);
    CHECK_STR(reply->message->parts[0]->tool_result->content, "");
    CHECK_EQ(reply->message->parts[0]->tool_result->n_attachments, 0);
    pi_export_is_same(store);
    pi_forget_lines(store);
    pi_fork(store);
    const char *text = pi_export_text(store);
    for (int i = 0; i < 4; i++) {
        text = strstr(text, "\"content\":[]");
        CHECK(text != NULL);
        text++;
    }
}

TEST(pi_usage_and_context_edit_are_notes)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL, "\"role\":\"user\",\"content\":\"x\"");
    entry(store, "usage", "2", "1", ",\"provider\":\"p\",\"model\":\"m\",\"usage\":{\"input\":5}");
    entry(store, "context_edit", "3", "2", ",\"targetId\":\"1\",\"replacement\":null");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | off none");
    CLEANUP(reply_freep) GetMessageResponse *target = pi_entry(store, "1");
    CLEANUP(reply_freep) GetMessageResponse *usage = pi_entry(store, "2");
    CHECK_EQ(usage->message->kind, MESSAGE_KIND_CUSTOM);
    CHECK_STR(usage->message->subtype, "usage");
    CLEANUP(reply_freep) GetMessageResponse *edit = pi_entry(store, "3");
    CHECK_EQ(edit->message->kind, MESSAGE_KIND_CUSTOM);
    CHECK_STR(edit->message->subtype, "context_edit");
    CHECK_STR(edit->message->target_id, target->message->id);
    CLEANUP(reply_freep) GetSessionResponse *session = pi_session(store);
    CHECK_EQ(session->session->own_totals->input_tokens, 0);
}

TEST(pi_lines_have_sequences_in_their_order)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    for (int i = 0; i < 5; i++) {
        char id[16], parent[16];
        snprintf(id, sizeof(id), "%d", i);
        snprintf(parent, sizeof(parent), "%d", i - 1);
        message(store, id, i > 0 ? parent : NULL, "\"role\":\"user\",\"content\":\"x\"");
    }
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "0");
    for (int i = 1; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof(id), "%d", i);
        CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, id);
        CHECK_EQ(reply->message->sequence, first->message->sequence + (uint64_t)i);
    }
}

TEST(pi_label_of_an_entry_that_comes_later_names_it_in_pis_words)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    message(store, "1", NULL, "\"role\":\"user\",\"content\":\"x\"");
    entry(store, "label", "2", "1", ",\"targetId\":\"3\",\"label\":\"L\"");
    entry(store, "custom", "3", "2", "");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *label = pi_entry(store, "2");
    CHECK_EQ(label->message->kind, MESSAGE_KIND_LABEL);
    CHECK_STR(label->message->target_id, "3");
}

TEST(pi_header_may_lack_what_it_usually_says)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char here[PATH_BYTES_MAX + 1];
    pi_bytes(store, "torn\n\n");
    size_t start = store->size;
    pi_line(store, "{\"type\":\"session\",\"id\":\"bare\"}");
    message(store, "1", NULL, "\"role\":\"user\",\"content\":\"x\"");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    CHECK_STR(reply->session->data_version, "1");
    CHECK_STR(reply->session->project_dir, getcwd(here, sizeof(here)));
    CHECK_STR(pi_export_text(store), store->text + start); // what is before the header is lost
}

TEST(pi_long_parent_sessions_are_cut)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char path[401] = "";
    memset(path, 'p', 400);
    pi_line(store,
            "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\",\"parentSession\":"
            "\"%s\"}",
            path);
    message(store, "1", NULL, "\"role\":\"user\",\"content\":\"x\"");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    const char *parent = reply->session->source_parent;
    CHECK_EQ(strlen(parent), STRING_BYTES_MAX);
    CHECK_EQ(strspn(parent, "p"), STRING_BYTES_MAX - 33); // then a hash
    pi_export_is_same(store);
}

TEST(pi_project_option_takes_the_place_of_the_headers)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "echo '{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"cwd\":\"/p\"}' |"
                    " tine --url embedded:s import --project /other pi -");
    shell_ok(shell, "tine --url embedded:s ls --json --all | jq -r .project_dir");
    shell_shows(shell, "/other\n");
}

// The cut would be in the middle of a character, so the name is shorter than the longest one.
TEST(pi_long_names_of_wide_characters_are_found_again)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    for (size_t shift = 0; shift < 4; shift++) {
        char name[512] = "nnnn", session[16];
        for (size_t i = 0; i < 100; i++)
            memcpy(name + shift + 4 * i, "\xf0\x9f\x98\x80", 5);
        snprintf(session, sizeof(session), "%zu", shift);
        pi_begin(store, session);
        pi_line(store, "{\"type\":\"custom\",\"id\":\"%s\",\"parentId\":null}", name);
        pi_line(store, "{\"type\":\"custom\",\"id\":\"2\",\"parentId\":\"%s\"}", name);
        pi_line(store, "{\"type\":\"custom\",\"id\":\"%s\",\"parentId\":null}", name);
        for (size_t i = 0; i < 3; i++)
            pi_import_ok(store);
        CHECK_EQ(store->importer.report.entries_new, 3 * (shift + 1));
        pi_line(store, "{\"type\":\"custom\",\"id\":\"%s\",\"parentId\":null}", name);
        for (size_t i = 0; i < 3; i++)
            pi_import_ok(store);
        store->importer.report.entries_new--;
        CHECK_EQ(store->importer.report.entries_new, 3 * (shift + 1));
    }
}

TEST(pi_deep_arguments_with_bytes_that_are_no_utf_8_are_mended)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char deep[400], open[151] = "", close[151] = "";
    memset(open, '[', 150);
    memset(close, ']', 150);
    snprintf(deep, sizeof(deep), "%s\"a\xff\"%s", open, close);
    pi_begin(store, "deep");
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{\"role\":"
            "\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"n\","
            "\"arguments\":%s}]}}",
            deep);
    pi_import_ok(store);
    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, "1");
    CHECK(strstr(reply->message->parts[0]->tool_use->input_text, "\"a\xef\xbf\xbd\"") != NULL);
    pi_export_is_same(store);
}

TEST(pi_previews_join_the_text_blocks)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{\"role\":\"user\","
            "\"content\":[{\"type\":\"text\",\"text\":\"look\"},{\"type\":\"image\",\"data\":"
            "\"AAEC\",\"mimeType\":\"image/png\"},{\"type\":\"text\",\"text\":\"here\"}]}}");
    pi_import_ok(store);
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    CHECK_STR(reply->session->first_message_preview, "look here");
    CHECK_STR(reply->session->last_user_message, "look here");
}
