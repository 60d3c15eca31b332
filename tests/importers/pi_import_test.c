// Files of pi are imported whole, whatever they contain, and exported as they were.

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/random.h"
#include "pi_steps.h"
#include "shell.h"

// Adds turns that have unknown fields at every level.
static void turns(PiStore *store)
{
    pi_line(store, "%s",
            "{\"type\":\"model_change\",\"id\":\"m0\",\"parentId\":null,\"timestamp\":"
            "\"2025-11-20T10:00:01.000Z\",\"provider\":\"anthropic\",\"modelId\":\"claude\"}");
    pi_line(store, "%s",
            "{\"type\":\"thinking_level_change\",\"id\":\"t0\",\"parentId\":\"m0\",\"timestamp\":"
            "\"2025-11-20T10:00:02.000Z\",\"thinkingLevel\":\"high\"}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"u1\",\"parentId\":\"t0\",\"timestamp\":"
            "\"2025-11-20T10:00:03.500Z\",\"message\":{\"role\":\"user\",\"content\":"
            "\"hello \\u00e9\",\"timestamp\":1763632803123},\"extra\":[1,2]}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"a1\",\"parentId\":\"u1\",\"timestamp\":"
            "\"2025-11-20T10:00:05.000Z\",\"message\":{\"role\":\"assistant\",\"content\":["
            "{\"type\":\"thinking\",\"thinking\":\"hm\",\"thinkingSignature\":\"c2ln\"},"
            "{\"type\":\"thinking\",\"thinking\":\"\",\"redacted\":true},"
            "{\"type\":\"text\",\"text\":\"I look\",\"textSignature\":\"{\\\"v\\\":1}\"},"
            "{\"type\":\"toolCall\",\"id\":\"call|1\",\"name\":\"bash\",\"arguments\":{\"command\":"
            "\"ls\",\"n\":1e21},\"thoughtSignature\":\"th\",\"partialJson\":\"{\\\"c\"}],"
            "\"api\":\"anthropic-messages\",\"provider\":\"anthropic\",\"model\":\"claude-4\","
            "\"usage\":{\"input\":10,\"output\":20,\"cacheRead\":30,\"cacheWrite\":40,"
            "\"totalTokens\":100,\"cost\":{\"input\":0.1,\"output\":0.2,\"cacheRead\":0,"
            "\"cacheWrite\":0,\"total\":0.0007750000000000001}},\"stopReason\":\"toolUse\","
            "\"timestamp\":1763632804000}}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"r1\",\"parentId\":\"a1\",\"timestamp\":"
            "\"2025-11-20T10:00:06.000Z\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":"
            "\"call|1\",\"toolName\":\"bash\",\"content\":[{\"type\":\"text\",\"text\":\"a.txt\"}],"
            "\"details\":{\"fullOutputPath\":\"/x\"},\"isError\":true,"
            "\"timestamp\":1763632806000}}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"r2\",\"parentId\":\"r1\",\"timestamp\":"
            "\"2025-11-20T10:00:06.000Z\",\"message\":{\"role\":\"toolResult\",\"toolCallId\":"
            "\"call|2\",\"toolName\":\"read\",\"content\":[{\"type\":\"text\",\"text\":\"see\"},"
            "{\"type\":\"image\",\"data\":\"AAEC\",\"mimeType\":\"image/png\"}],\"isError\":false,"
            "\"timestamp\":1763632806000}}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"b1\",\"parentId\":\"r2\",\"timestamp\":"
            "\"2025-11-20T10:00:07.000Z\",\"message\":{\"role\":\"bashExecution\",\"command\":"
            "\"make\",\"output\":\"done\",\"exitCode\":0,\"cancelled\":false,\"truncated\":false,"
            "\"timestamp\":1763632807000,\"excludeFromContext\":true}}");
    pi_line(store, "%s",
            "{\"type\":\"message\",\"id\":\"a2\",\"parentId\":\"b1\",\"timestamp\":"
            "\"2025-11-20T10:00:08.000Z\",\"message\":{\"role\":\"assistant\",\"content\":[],"
            "\"api\":\"x\",\"provider\":\"anthropic\",\"model\":\"claude-4\",\"stopReason\":"
            "\"aborted\",\"timestamp\":1763632808000,\"errorMessage\":\"stopped\"}}");
}

// Adds a line of each type.
static void every_type(PiStore *store)
{
    pi_begin(store, "every-type");
    turns(store);
    pi_line(store, "%s",
            "{\"type\":\"custom\",\"customType\":\"todo\",\"data\":{\"a\":null},\"id\":\"c1\","
            "\"parentId\":\"a2\",\"timestamp\":\"2025-11-20T10:00:09.000Z\"}");
    pi_line(store, "%s",
            "{\"type\":\"custom_message\",\"customType\":\"hint\",\"content\":[{\"type\":\"text\","
            "\"text\":\"psst\"}],\"display\":false,\"details\":{\"d\":1},\"id\":\"i1\","
            "\"parentId\":\"c1\",\"timestamp\":\"2025-11-20T10:00:10.000Z\"}");
    pi_line(store, "%s",
            "{\"type\":\"compaction\",\"id\":\"k1\",\"parentId\":\"i1\",\"timestamp\":"
            "\"2025-11-20T10:00:11.000Z\",\"summary\":\"so far\",\"firstKeptEntryId\":\"r1\","
            "\"tokensBefore\":1234,\"details\":{\"readFiles\":[\"a\"]},\"fromHook\":false}");
    pi_line(store, "%s",
            "{\"type\":\"branch_summary\",\"id\":\"s1\",\"parentId\":\"u1\",\"timestamp\":"
            "\"2025-11-20T10:00:12.000Z\",\"fromId\":\"k1\",\"summary\":\"we tried\","
            "\"fromHook\":true}");
    pi_line(store, "%s",
            "{\"type\":\"label\",\"id\":\"l1\",\"parentId\":\"s1\",\"timestamp\":"
            "\"2025-11-20T10:00:13.000Z\",\"targetId\":\"a1\",\"label\":\"here\"}");
    pi_line(store, "%s",
            "{\"type\":\"session_info\",\"id\":\"n1\",\"parentId\":\"l1\",\"timestamp\":"
            "\"2025-11-20T10:00:14.000Z\",\"name\":\" My work \"}");
    pi_line(store, "%s",
            "{\"type\":\"mode_change\",\"id\":\"x1\",\"parentId\":\"n1\",\"timestamp\":"
            "\"2025-11-20T10:00:15.000Z\",\"mode\":\"plan\",\"big\":9007199254740993}");
}

static PiStore *imported_every_type(void)
{
    PiStore *store = pi_store_open();
    every_type(store);
    pi_import_ok(store);
    return store;
}

TEST(pi_every_type_comes_back_byte_for_byte_and_again_is_nothing_new)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CHECK_EQ(store->importer.report.entries_new, 15);
    pi_export_is_same(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 15);
    CHECK_EQ(store->importer.report.entries_known, 15);
    CHECK_EQ(store->importer.report.sessions_new, 1);
    pi_export_is_same(store);
}

TEST(pi_header_becomes_the_session)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CLEANUP(reply_freep) GetSessionResponse *reply = pi_session(store);
    const Session *session = reply->session;
    CHECK_STR(session->external->source, "pi");
    CHECK_STR(session->external->id, "every-type");
    CHECK_STR(session->project_dir, "/p");
    CHECK_STR(session->data_version, "3");
    CHECK_EQ(session->created_at, 1763632800000);
    CHECK_STR(session->title, "My work");
    CHECK_STR(session->model->name, "claude-4");
    CHECK_EQ(session->entry_count, 15);
    CHECK_EQ(session->message_count, 6); // every entry of type message, as pi counts
    CHECK_STR(session->first_message_preview, "hello \xc3\xa9");
    CHECK_EQ(session->own_totals->cost_nano_usd, 775000);
    CHECK_EQ(session->own_totals->input_tokens, 10);
    CHECK_EQ(session->last_active_at, 1763632815000);
}

TEST(pi_messages_become_conversation)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CLEANUP(reply_freep) GetMessageResponse *user = pi_entry(store, "u1");
    CHECK_EQ(user->message->kind, MESSAGE_KIND_CONVERSATION);
    CHECK_EQ(user->message->role, ROLE_USER);
    CHECK_STR(user->message->parts[0]->text->text, "hello \xc3\xa9");
    CHECK_EQ(user->message->created_at, 1763632803123);
    CHECK_EQ(user->message->completed_at, 1763632803500);
    CHECK_STR(user->message->data_json, "{\"extra\":[1,2]}");

    CLEANUP(reply_freep) GetMessageResponse *reply = pi_entry(store, "a1");
    const Message *assistant = reply->message;
    CHECK_EQ(assistant->role, ROLE_ASSISTANT);
    CHECK_STR(assistant->model->provider, "anthropic");
    CHECK_STR(assistant->model->name, "claude-4");
    CHECK_STR(assistant->finish_reason, "toolUse");
    CHECK_STR(assistant->parent_id, user->message->id);
    CHECK_EQ(assistant->usage->total_tokens, 100);
    CHECK_EQ(assistant->usage->cache_write_tokens, 40);
    CHECK_EQ(assistant->n_parts, 4);
    CHECK_STR(assistant->parts[0]->thinking->text, "hm");
    CHECK_EQ(assistant->parts[0]->signature.len, 4);
    CHECK(assistant->parts[1]->thinking->redacted);
    CHECK_STR(assistant->parts[2]->text->text, "I look");
    CHECK_EQ(assistant->parts[2]->signature.len, 7);
    CHECK_STR(assistant->parts[3]->tool_use->id, "call|1");
    CHECK_STR(assistant->parts[3]->tool_use->input_json, "{\"command\":\"ls\",\"n\":1e21}");
    CHECK_STR(assistant->parts[3]->metadata_json, "{\"partialJson\":\"{\\\"c\"}");
    CHECK_STR(assistant->data_json, "{\"message\":{\"api\":\"anthropic-messages\"}}");

    CLEANUP(reply_freep) GetMessageResponse *aborted = pi_entry(store, "a2");
    CHECK_EQ(aborted->message->status, MESSAGE_STATUS_INTERRUPTED);
    CHECK_STR(aborted->message->error->message, "stopped");
    CHECK_EQ(aborted->message->n_parts, 0);
}

TEST(pi_tool_results_and_commands_become_conversation)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "r1");
    const ToolResult *result = first->message->parts[0]->tool_result;
    CHECK_EQ(first->message->role, ROLE_TOOL);
    CHECK_STR(result->tool_use_id, "call|1");
    CHECK_STR(result->tool_name, "bash");
    CHECK_STR(result->content, "a.txt");
    CHECK_STR(result->data_json, "{\"fullOutputPath\":\"/x\"}");
    CHECK(result->is_error);

    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "r2");
    result = second->message->parts[0]->tool_result;
    CHECK_EQ(result->n_attachments, 2);
    CHECK_STR(result->attachments[0]->text->text, "see");
    CHECK_EQ(result->attachments[1]->image->data.len, 3);

    CLEANUP(reply_freep) GetMessageResponse *bash = pi_entry(store, "b1");
    CHECK_EQ(bash->message->role, ROLE_OTHER);
    CHECK_STR(bash->message->other_role, "bashExecution");
    CHECK_STR(bash->message->parts[0]->text->text, "done");
    CHECK(bash->message->parts[0]->text->ignored);
    CHECK_STR(bash->message->data_json, "{\"message\":{\"command\":\"make\",\"exitCode\":0,"
                                        "\"cancelled\":false,\"truncated\":false}}");
}

TEST(pi_settings_notes_and_injections_have_kinds_of_their_own)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CLEANUP(reply_freep) GetMessageResponse *model = pi_entry(store, "m0");
    CHECK_EQ(model->message->kind, MESSAGE_KIND_SETTING);
    CHECK_STR(model->message->subtype, "model");
    CHECK_STR(model->message->model->name, "claude");
    CLEANUP(reply_freep) GetMessageResponse *thinking = pi_entry(store, "t0");
    CHECK_EQ(thinking->message->kind, MESSAGE_KIND_SETTING);
    CHECK_STR(thinking->message->subtype, "thinking_level");
    CHECK_STR(thinking->message->text, "high");
    CLEANUP(reply_freep) GetMessageResponse *custom = pi_entry(store, "c1");
    CHECK_EQ(custom->message->kind, MESSAGE_KIND_CUSTOM);
    CHECK_STR(custom->message->subtype, "todo");
    CHECK_STR(custom->message->data_json, "{\"data\":{\"a\":null}}");
    CLEANUP(reply_freep) GetMessageResponse *injected = pi_entry(store, "i1");
    CHECK_EQ(injected->message->kind, MESSAGE_KIND_INJECTED);
    CHECK_STR(injected->message->other_role, "custom");
    CHECK_STR(injected->message->subtype, "hint");
    CHECK_STR(injected->message->parts[0]->text->text, "psst");
    CHECK(injected->message->hidden);
    CHECK_STR(injected->message->data_json, "{\"details\":{\"d\":1}}");
    CLEANUP(reply_freep) GetMessageResponse *unknown = pi_entry(store, "x1");
    CHECK_EQ(unknown->message->kind, MESSAGE_KIND_CUSTOM);
    CHECK_STR(unknown->message->subtype, "mode_change");
    CHECK_STR(unknown->message->data_json, "{\"mode\":\"plan\",\"big\":9007199254740993}");
}

TEST(pi_compactions_summaries_labels_and_names_have_kinds_of_their_own)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    CLEANUP(reply_freep) GetMessageResponse *assistant = pi_entry(store, "a1");
    CLEANUP(reply_freep) GetMessageResponse *compaction = pi_entry(store, "k1");
    const Marker *marker = compaction->message->marker;
    CHECK_EQ(compaction->message->kind, MESSAGE_KIND_COMPACTION);
    CHECK_EQ(compaction->message->producer, PRODUCER_AGENT);
    CHECK_STR(marker->summary, "so far");
    CHECK_STR(marker->first_kept_external, "r1");
    CHECK_STR(marker->before_message_id, assistant->message->id);
    CHECK_EQ(marker->tokens_before, 1234);
    CHECK_STR(marker->details_json, "{\"readFiles\":[\"a\"]}");
    CLEANUP(reply_freep) GetMessageResponse *summary = pi_entry(store, "s1");
    CHECK_EQ(summary->message->kind, MESSAGE_KIND_BRANCH_SUMMARY);
    CHECK_EQ(summary->message->producer, PRODUCER_EXTENSION);
    CHECK_STR(summary->message->text, "we tried");
    CHECK_STR(summary->message->target_id, compaction->message->id);
    CLEANUP(reply_freep) GetMessageResponse *label = pi_entry(store, "l1");
    CHECK_EQ(label->message->kind, MESSAGE_KIND_LABEL);
    CHECK_STR(label->message->text, "here");
    CHECK_STR(label->message->target_id, assistant->message->id);
    CLEANUP(reply_freep) GetMessageResponse *name = pi_entry(store, "n1");
    CHECK_EQ(name->message->kind, MESSAGE_KIND_NAME);
    CHECK_STR(name->message->text, " My work ");
}

static const char LINE[] = "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":"
                           "\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"user\","
                           "\"content\":\"x\",\"timestamp\":1}}%s";

static void user(PiStore *store, const char *id, const char *parent, const char *end)
{
    char line[512], quoted[64] = "null";
    if (parent) snprintf(quoted, sizeof(quoted), "\"%s\"", parent);
    CHECK(snprintf(line, sizeof(line), LINE, id, quoted, end) < (int)sizeof(line));
    pi_bytes(store, line);
}

TEST(pi_torn_lines_blank_lines_and_crlf_are_kept_and_are_no_entries)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "robust");
    pi_bytes(store, "\n \r\n");
    user(store, "1", NULL, "\r\n");
    pi_bytes(store, "not json\n42\n{\"type\":\"session\",\"id\":\"again\"}\n");
    user(store, "2", "1", "\n\n");
    user(store, "3", "2", ""); // two on one line
    user(store, "4", "3", "\n");
    user(store, "5", "2", "\n");
    pi_bytes(store, "{\"type\":\"message\",\"id\":\"6\",\"par"); // torn
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 3);
    CHECK_STR(pi_context(store), "user:1 user:2 user:5 | off none");
    pi_export_is_same(store);
}

TEST(pi_torn_line_that_was_completed_later_comes_back_once)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "torn");
    user(store, "1", NULL, "\n");
    size_t size = store->size;
    user(store, "2", "1", "\n");
    char rest[512];
    snprintf(rest, sizeof(rest), "%s", store->text + size + 30);
    store->text[size + 30] = '\0';
    store->size = size + 30;
    pi_import_ok(store);
    pi_export_is_same(store);
    pi_bytes(store, rest);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 2);
    pi_export_is_same(store);
}

TEST(pi_byte_order_mark_is_skipped)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_bytes(store, "\xef\xbb\xbf");
    pi_bytes(store, "{\"type\":\"session\",\"version\":3,\"id\":\"bom\",\"cwd\":\"/p\"}\n");
    user(store, "1", NULL, "\n");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | off none");
    CHECK_STR(pi_export_text(store), store->text + 3);
}

// JavaScript treats it as white space, which pi trims from the whole file.
TEST(pi_byte_order_mark_behind_blank_lines_is_skipped)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_bytes(store, "\n \xef\xbb\xbf");
    pi_bytes(store, "{\"type\":\"session\",\"version\":3,\"id\":\"bom\",\"cwd\":\"/p\"}\n");
    user(store, "1", NULL, "\n");
    pi_bytes(store, "\xef\xbb\xbf");
    user(store, "2", "1", "\n"); // in the middle of the file it makes a line no JSON
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | off none");
    CHECK_STR(pi_export_text(store), store->text + 5);
}

TEST(pi_id_used_twice_means_the_later_entry)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "twice");
    user(store, "r", NULL, "\n");
    user(store, "d", "r", "\n");
    user(store, "c", "d", "\n");
    user(store, "d", NULL, "\n");
    user(store, "e", "c", "\n");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 5);
    CHECK_STR(pi_context(store), "user:d user:c user:e | off none");
    CLEANUP(reply_freep) GetMessageResponse *earlier = pi_entry(store, "d@3");
    CHECK(*earlier->message->parent_id);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 5);
}

TEST(pi_rings_of_parents_are_opened_at_their_first_entry)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "rings");
    user(store, "a", "b", "\n");
    user(store, "b", "c", "\n");
    user(store, "c", "a", "\n");
    user(store, "s", "s", "\n");
    user(store, "t", "a", "\n");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 5);
    CHECK_STR(pi_context(store), "user:a user:t | off none");
    pi_rewind(store, "b");
    CHECK_STR(pi_context(store), "user:a user:c user:b | off none");
    pi_rewind(store, "s");
    CHECK_STR(pi_context(store), "user:s | off none");
}

TEST(pi_strange_values_are_kept)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char deep[6001];
    memset(deep, '[', 3000);
    memset(deep + 3000, ']', 3000);
    deep[6000] = '\0';
    pi_begin(store, "strange");
    pi_line(store, "{\"type\":\"message\",\"id\":\"1\",\"parentId\":0,\"timestamp\":\"never\","
                   "\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                   "\"a\\u0000b\\ud800c\xff\"},{\"type\":\"image\",\"data\":\"no base64\","
                   "\"mimeType\":\"x\"},7,{\"type\":\"odd\"}]}}");
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"2\",\"parentId\":\"1\",\"message\":{\"role\":"
            "\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"n\","
            "\"arguments\":%s},{\"type\":\"toolCall\",\"id\":\"\",\"name\":\"\"}]}}",
            deep);
    pi_line(store, "{\"id\":\"3\",\"parentId\":\"2\",\"x\":-0,\"deep\":%s}", deep);
    pi_line(store, "{\"type\":\"compaction\",\"id\":\"4\",\"parentId\":\"3\",\"summary\":7}");
    pi_line(store, "{\"type\":\"label\",\"id\":\"5\",\"parentId\":\"4\"}");
    pi_line(store, "{\"type\":\"message\",\"id\":\"6\",\"parentId\":\"5\",\"message\":null}");
    pi_line(store, "{\"type\":\"message\",\"parentId\":\"6\",\"message\":{\"role\":\"weird\"}}");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 7);
    pi_export_is_same(store);
    CLEANUP(reply_freep) GetMessageResponse *first = pi_entry(store, "1");
    CHECK_STR(first->message->parts[0]->text->text, "a\xef\xbf\xbd"
                                                    "b\xef\xbf\xbd"
                                                    "c\xef\xbf\xbd");
    CHECK_STR(first->message->parts[1]->extension->type, "image");
    CHECK_STR(first->message->parts[2]->extension->type, "unknown");
    CHECK_STR(first->message->parts[3]->extension->type, "odd");
    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "2");
    CHECK_STR(second->message->parts[0]->tool_use->input_text, deep);
    CHECK_EQ(second->message->parts[1]->kind_case, PART__KIND_EXTENSION);
}

TEST(pi_long_names_are_cut_the_same_everywhere)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    char name[1001];
    memset(name, 'n', 1000);
    name[1000] = '\0';
    pi_begin(store, name);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":null,\"message\":{\"role\":"
            "\"assistant\",\"content\":[{\"type\":\"toolCall\",\"id\":\"%s\",\"name\":\"n\"}]}}",
            name, name);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"2\",\"parentId\":\"%s\",\"message\":{\"role\":"
            "\"toolResult\",\"toolCallId\":\"%s\",\"toolName\":\"n\",\"content\":[]}}",
            name, name);
    pi_import_ok(store);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 2);
    CLEANUP(reply_freep) GetMessageResponse *second = pi_entry(store, "2");
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    CLEANUP(reply_freep) GetMessageResponse *first = NULL;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = second->message->parent_id;
    CHECK_EQ(tine_get_message(store->importer.tine, NULL, &request, &first), 0);
    CHECK_STR(first->message->parts[0]->tool_use->id,
              second->message->parts[0]->tool_result->tool_use_id);
    pi_export_is_same(store);
}

static void version_1(PiStore *store, const char *index)
{
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\",\"provider\":\"x\"}");
    for (int i = 0; i < 3; i++) {
        pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}");
    }
    pi_line(store, "broken");
    pi_line(store,
            "{\"type\":\"compaction\",\"summary\":\"S\",\"firstKeptEntryIndex\":%s,"
            "\"tokensBefore\":1}",
            index);
    pi_line(store, "{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}");
}

// Returns the number of messages in the context. Their IDs are not known, because they are made.
static size_t count(const char *text, const char *word)
{
    size_t found = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        found++;
    return found;
}

TEST(pi_version_1_is_a_chain_and_its_index_counts_the_header)
{
    static const struct {
        const char *index;
        size_t user_count;
    } CASES[] = {
        {"2", 3},  // keeps the second message on
        {"1", 4},  // the first
        {"0", 1},  // the header: nothing
        {"4", 1},  // itself
        {"5", 1},  // what comes later
        {"99", 1}, // what is not there
        {"-1", 1},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        version_1(store, CASES[i].index);
        pi_import_ok(store);
        CHECK_EQ(count(pi_context(store), "user:"), CASES[i].user_count);
        CHECK_EQ(count(pi_context(store), "compactionSummary:"), 1);
        pi_export_is_same(store);
        pi_import_ok(store); // the same ids are made again
        CHECK_EQ(store->importer.report.entries_new, 5);
    }
}

TEST(pi_version_1_with_new_entries_is_written_as_version_3)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    version_1(store, "2");
    pi_import_ok(store);
    pi_append_text(store, "later");
    const char *text = pi_export_text(store);
    CHECK(strstr(text, "{\"type\":\"session\",\"version\":3,\"id\":\"v1\"") == text);
    CHECK_EQ(count(text, "\"parentId\":\""), 5);
    CHECK_EQ(count(text, "later"), 1);
}

TEST(pi_version_1_with_ids_keeps_its_tree)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"id\":\"v1\",\"cwd\":\"/p\"}");
    user(store, "1", NULL, "\n");
    user(store, "2", "1", "\n");
    user(store, "3", "1", "\n");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 user:3 | off none");
    pi_export_is_same(store);
}

TEST(pi_version_2_calls_custom_messages_of_hooks_so)
{
    static const struct {
        unsigned version;
        const char *role;
    } CASES[] = {{2, "custom:1 | off none"}, {3, "hookMessage:1 | off none"}};
    for (size_t i = 0; i < 2; i++) {
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        pi_line(store, "{\"type\":\"session\",\"version\":%u,\"id\":\"v\",\"cwd\":\"/p\"}",
                CASES[i].version);
        pi_line(store, "{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":{\"role\":"
                       "\"hookMessage\",\"customType\":\"t\",\"content\":\"x\",\"display\":true}}");
        pi_import_ok(store);
        CHECK_STR(pi_context(store), CASES[i].role);
        pi_export_is_same(store);
    }
}

TEST(pi_forked_files_with_equal_entry_ids_are_two_sessions)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "parent");
    user(store, "1", NULL, "\n");
    user(store, "2", "1", "\n");
    pi_import_ok(store);
    store->size = 0;
    pi_line(store, "{\"type\":\"session\",\"version\":3,\"id\":\"child\",\"timestamp\":"
                   "\"2025-11-20T10:00:00.000Z\",\"cwd\":\"/p\",\"parentSession\":\"../a.jsonl\"}");
    user(store, "1", NULL, "\n");
    user(store, "3", "1", "\n");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.sessions_new, 2);
    CHECK_EQ(store->importer.report.entries_new, 4);
    CHECK_STR(pi_context(store), "user:1 user:3 | off none");
    CLEANUP(reply_freep) GetSessionResponse *child = pi_session(store);
    CHECK_STR(child->session->source_parent, "../a.jsonl");
    CHECK_STR(child->session->parent_id, "");
    pi_export_is_same(store);
}

TEST(pi_file_that_has_grown_adds_what_is_new)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "grows");
    user(store, "1", NULL, ""); // no line's end yet
    pi_import_ok(store);
    pi_bytes(store, "\n");
    user(store, "2", "1", "\n");
    user(store, "3", "1", "\n");
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.entries_new, 3);
    CHECK_STR(pi_context(store), "user:1 user:3 | off none");
    pi_export_is_same(store);
}

TEST(pi_entries_appended_here_follow_in_pis_words)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    pi_append_text(store, "from \"tine\"\n");
    const char *text = pi_export_text(store);
    CHECK(strncmp(text, store->text, store->size) == 0);
    text += store->size;
    CHECK(strstr(text, "{\"type\":\"message\",\"id\":\"01") == text);
    CHECK(strstr(text, "\"parentId\":\"x1\",\"timestamp\":\"") != NULL);
    CHECK(strstr(text, "\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                       "\"from \\\"tine\\\"\\n\"}],\"timestamp\":") != NULL);
}

// Lines that are written from the store give the same session when they are imported.
TEST(pi_lines_written_from_the_store_mean_the_same)
{
    CLEANUP(pi_store_close) PiStore *store = imported_every_type();
    char before[4096];
    pi_rewind(store, "k1");
    snprintf(before, sizeof(before), "%s", pi_context(store));
    // The fork has no entries of its own: all its lines are written from what it inherited.
    CHECK(strstr(before, "compactionSummary:k1=so far,1234 toolResult:r1") == before);
    pi_forget_lines(store);
    pi_fork(store);
    snprintf(store->text, sizeof(store->text), "%s", pi_export_text(store));
    store->size = strlen(store->text);
    CHECK_EQ(count(store->text, "\n"), 13); // with the label of a1 from another branch
    CHECK(strstr(store->text, "\"cost\":{\"input\":0,\"output\":0,\"cacheRead\":0,\"cacheWrite\":0,"
                              "\"total\":0.000775}") != NULL);
    CHECK(strstr(store->text, "\"partialJson\":\"{\\\"c\"}]") != NULL);
    CHECK(strstr(store->text, "\"excludeFromContext\":true") != NULL);
    pi_import_ok(store);
    CHECK_EQ(store->importer.report.sessions_new, 2);
    CHECK_STR(pi_context(store), before);
    pi_export_is_same(store);
}

TEST(pi_import_and_export_on_the_command_line)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    shell_ok(shell, "printf '%%s\\n' '{\"type\":\"session\",\"version\":3,\"id\":\"cli\",\"cwd\":"
                    "\"/p\"}' '{\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"message\":"
                    "{\"role\":\"user\",\"content\":\"hello\"}}' '{\"torn' > a.jsonl && "
                    "tine --url embedded:s import pi a.jsonl");
    shell_shows(shell, "sessions: 1 new, 0 there already; entries: 1 new, 0 there already\n");
    shell_says(shell, "tine: a.jsonl: line 3: not JSON; kept, but not an entry\n");
    shell_ok(shell, "cat a.jsonl | tine --url embedded:s import --json pi -");
    shell_shows(shell, "\"entries_new\": 0, \"entries_known\": 1");
    shell_ok(shell, "tine --url embedded:s export pi @last | cmp - a.jsonl && "
                    "tine --url embedded:s export pi @last -o b.jsonl && cmp a.jsonl b.jsonl");
    shell_ok(shell, "tine --url embedded:s import pi a.jsonl b.jsonl --project /other");
    shell_ok(shell, "tine --url embedded:s ls --json --all");
    shell_shows(shell, "\"/p\"");
    shell_fails(shell, 2, "tine --url embedded:s export pi @last other");
    shell_fails(shell, 1, "echo '{\"type\":\"message\"}' | tine --url embedded:s import pi -");
    shell_says(shell, "line 1: not a session of pi");
    shell_fails(shell, 1, "tine --url embedded:s import pi /dev/null");
    shell_says(shell, "not a session of pi: no line is JSON");
    shell_fails(shell, 1, "tine --url embedded:s import pi nowhere.jsonl");
    shell_says(shell, "cannot read nowhere.jsonl");
}

// Adds at least `bytes_min` bytes: lines of 2 KiB in the median and 64 KiB at most, with some
// branches.
static void write_large(FILE *file, size_t bytes_min, bool has_branches)
{
    enum { MEDIAN = 2048, LONGEST = 60 * 1024 };
    static char text[LONGEST + 1];
    Random random;
    random_seed(&random, 7);
    size_t bytes = 0, parent = 0;
    fputs("{\"type\":\"session\",\"version\":3,\"id\":\"large\",\"cwd\":\"/p\"}\n", file);
    for (size_t i = 0; bytes < bytes_min; i++) {
        size_t size = random_below(&random, MEDIAN);
        if (random_below(&random, 2)) size = MEDIAN << random_below(&random, 3);
        if (random_below(&random, 500) == 0) size = LONGEST;
        memset(text, 'a' + (int)(i % 26), size);
        text[size] = '\0';
        char quoted[32] = "null";
        if (i > 0) snprintf(quoted, sizeof(quoted), "\"%08zx\"", parent);
        bytes += (size_t)fprintf(file,
                                 "{\"type\":\"message\",\"id\":\"%08zx\",\"parentId\":%s,"
                                 "\"timestamp\":\"2025-11-20T10:00:00.000Z\",\"message\":{\"role\":"
                                 "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"%s\"}],"
                                 "\"timestamp\":1}}\n",
                                 i, quoted, text);
        bool is_branch = has_branches && random_below(&random, 200) == 0;
        parent = is_branch ? random_below(&random, i + 1) : i;
    }
    CHECK_EQ(fclose(file), 0);
}

TEST(pi_large_file_is_imported_in_bounded_memory)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    char path[1024];
    snprintf(path, sizeof(path), "%s/large.jsonl", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    write_large(file, test_scaled(50 * 1000 * 1000), /* has_branches= */ true);
    shell_tined_start(shell);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    shell_ok(shell, "tine import pi large.jsonl"); // their own memory is not ours to bound
#else
    // The client of a tined may use 48 MiB of data, which is less than the file has.
    shell_ok(shell, "ulimit -d 49152 && tine import pi large.jsonl");
#endif
    shell_shows(shell, "sessions: 1 new");
    shell_ok(shell, "tine export pi @last | cmp - large.jsonl");
    shell_ok(shell, "tine import pi large.jsonl --json | jq -e '.entries_new == 0'");
}

typedef struct Intruder {
    char id[STORE_ID_BYTES]; // of the session
    atomic_bool is_over;
    atomic_uint appended;
} Intruder;

// Appends to the session while it is imported.
static void *intrude(void *context)
{
    Intruder *intruder = context;
    Tine *tine;
    External external = EXTERNAL__INIT;
    external.source = "pi";
    external.id = "large";
    CHECK_EQ(tine_open(shell_url(), NULL, &tine), 0);
    while (!*intruder->id) {
        ResolveSessionRequest request = RESOLVE_SESSION_REQUEST__INIT;
        ResolveSessionResponse *reply;
        request.by_case = TINE__V1__RESOLVE_SESSION_REQUEST__BY_EXTERNAL;
        request.external = &external;
        CHECK_EQ(tine_resolve_session(tine, NULL, &request, &reply), 0);
        if (reply->n_sessions > 0) {
            snprintf(intruder->id, STORE_ID_BYTES, "%s", reply->sessions[0]->id);
        }
        protobuf_c_message_free_unpacked(&reply->base, NULL);
    }
    while (!atomic_load(&intruder->is_over)) {
        NewMessage message = NEW_MESSAGE__INIT;
        AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
        AppendMessageResponse *reply;
        message.role = ROLE_USER;
        request.session_id = intruder->id;
        request.message = &message;
        CHECK_EQ(tine_append_message(tine, NULL, &request, &reply), 0);
        protobuf_c_message_free_unpacked(&reply->base, NULL);
        atomic_fetch_add(&intruder->appended, 1);
    }
    tine_close(tine);
    return NULL;
}

// Each line of the file is stored once, as the child of the line before it. `number` counts them.
static void check_chain(const Message *message, char last_id[STORE_ID_BYTES], unsigned *number)
{
    if (!message->external) return;
    CHECK_EQ(strtoul(message->external->id, NULL, 16), (*number)++);
    CHECK_STR(message->parent_id, last_id);
    snprintf(last_id, STORE_ID_BYTES, "%s", message->id);
}

static unsigned count_chain(const char *session)
{
    Tine *tine;
    char cursor[512] = "", last_id[STORE_ID_BYTES] = "";
    unsigned number = 0;
    CHECK_EQ(tine_open(shell_url(), NULL, &tine), 0);
    do {
        ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
        ListMessagesResponse *page;
        request.session_id = (char *)(uintptr_t)session;
        request.cursor = cursor;
        CHECK_EQ(tine_list_messages(tine, NULL, &request, &page), 0);
        for (size_t i = 0; i < page->n_messages; i++) {
            check_chain(page->messages[i], last_id, &number);
        }
        snprintf(cursor, sizeof(cursor), "%s", page->next_cursor);
        protobuf_c_message_free_unpacked(&page->base, NULL);
    } while (*cursor);
    tine_close(tine);
    return number;
}

TEST(pi_import_keeps_its_chain_beside_another_writer)
{
    CLEANUP(shell_close) Shell *shell = shell_open();
    char path[1024];
    snprintf(path, sizeof(path), "%s/large.jsonl", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    write_large(file, 3 * 1000 * 1000 + test_scaled(7 * 1000 * 1000), /* has_branches= */ false);
    shell_tined_start(shell);
    Intruder intruder = {.id = ""};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, intrude, &intruder), 0);
    shell_ok(shell, "tine import pi large.jsonl");
    atomic_store(&intruder.is_over, true);
    pthread_join(thread, NULL);
    CHECK(atomic_load(&intruder.appended) > 0);
    unsigned count = count_chain(intruder.id);
    shell_ok(shell, "test $(wc -l <large.jsonl) -eq %u", count + 1);
    shell_ok(shell, "tine import pi large.jsonl --json | jq -e '.entries_new == 0'");
}
