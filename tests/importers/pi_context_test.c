// BuildContext on an imported session gives what pi's buildSessionContext gives, case by case and
// on random trees. The expected result is computed here, from pi's documented behaviour and the
// entries of the file alone.

#include <stdlib.h>
#include <string.h>

#include "os/random.h"
#include "pi_steps.h"

enum { TREE_COUNT_MAX = 60, ID_TEXT_BYTES = 24, CONTEXT_BYTES_MAX = 64 * 1024 };

static void user(PiStore *store, const char *id, const char *parent)
{
    char parent_json[64] = "null";
    if (parent) snprintf(parent_json, sizeof(parent_json), "\"%s\"", parent);
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,"
            "\"timestamp\":\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"user\","
            "\"content\":\"%s\",\"timestamp\":1}}",
            id, parent_json, id);
}

static void assistant(PiStore *store, const char *id, const char *parent, const char *model)
{
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":\"%s\","
            "\"timestamp\":\"2025-11-20T10:00:01.000Z\",\"message\":{\"role\":\"assistant\","
            "\"content\":[],\"api\":\"x\",\"provider\":\"p\",\"model\":\"%s\","
            "\"stopReason\":\"stop\",\"timestamp\":1}}",
            id, parent, model);
}

static void entry(PiStore *store, const char *type, const char *id, const char *parent,
                  const char *more)
{
    pi_line(store,
            "{\"type\":\"%s\",\"id\":\"%s\",\"parentId\":\"%s\","
            "\"timestamp\":\"2025-11-20T10:00:01.000Z\"%s}",
            type, id, parent, more);
}

static void compaction(PiStore *store, const char *id, const char *parent, const char *first_kept)
{
    char more[128];
    snprintf(more, sizeof(more),
             ",\"summary\":\"S\",\"firstKeptEntryId\":\"%s\",\"tokensBefore\":7", first_kept);
    entry(store, "compaction", id, parent, more);
}

TEST(pi_context_of_no_entries_is_empty)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "| off none");
}

TEST(pi_context_of_one_user_and_of_four_turns)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "1", NULL);
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | off none");
    assistant(store, "2", "1", "m");
    user(store, "3", "2");
    assistant(store, "4", "3", "m");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 assistant:2 user:3 assistant:4 | off p/m");
}

TEST(pi_context_settings_are_the_last_on_the_path_and_an_answer_sets_the_model_too)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "1", NULL);
    entry(store, "thinking_level_change", "2", "1", ",\"thinkingLevel\":\"high\"");
    entry(store, "model_change", "3", "2", ",\"provider\":\"q\",\"modelId\":\"n\"");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 | high q/n");
    assistant(store, "4", "3", "m");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 assistant:4 | high p/m");
    entry(store, "model_change", "5", "4", ",\"provider\":\"q\",\"modelId\":\"o\"");
    compaction(store, "6", "5", "5");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "compactionSummary:6=S,7 | high q/o");
    pi_rewind(store, "1");
    CHECK_STR(pi_context(store), "user:1 | off none");
}

static void four_turns(PiStore *store)
{
    pi_begin(store, "s");
    user(store, "1", NULL);
    assistant(store, "2", "1", "m");
    user(store, "3", "2");
    assistant(store, "4", "3", "m");
}

TEST(pi_context_of_a_compaction_has_the_summary_what_is_kept_and_what_follows)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    four_turns(store);
    compaction(store, "5", "4", "3");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "compactionSummary:5=S,7 user:3 assistant:4 | off p/m");
    user(store, "6", "5");
    assistant(store, "7", "6", "m");
    pi_import_ok(store);
    CHECK_STR(pi_context(store),
              "compactionSummary:5=S,7 user:3 assistant:4 user:6 assistant:7 | off p/m");
    pi_rewind(store, "5");
    CHECK_STR(pi_context(store), "compactionSummary:5=S,7 user:3 assistant:4 | off p/m");
    pi_rewind(store, "4"); // before it: the full history again
    CHECK_STR(pi_context(store), "user:1 assistant:2 user:3 assistant:4 | off p/m");
}

TEST(pi_context_of_a_compaction_that_keeps_from_the_first_entry)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    four_turns(store);
    compaction(store, "5", "4", "1");
    pi_import_ok(store);
    CHECK_STR(pi_context(store),
              "compactionSummary:5=S,7 user:1 assistant:2 user:3 assistant:4 | off p/m");
}

TEST(pi_context_of_a_compaction_whose_first_kept_entry_is_not_on_the_path_keeps_nothing)
{
    const char *dangling[] = {"nowhere", "5", "x", "6", ""};
    for (size_t i = 0; i < sizeof(dangling) / sizeof(*dangling); i++) {
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        four_turns(store);
        user(store, "x", "2"); // on another branch
        compaction(store, "5", "4", dangling[i]);
        user(store, "6", "5");
        pi_import_ok(store);
        CHECK_STR(pi_context(store), "compactionSummary:5=S,7 user:6 | off p/m");
    }
}

static void system_message(PiStore *store, const char *id, const char *parent)
{
    pi_line(
        store,
        "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":\"%s\",\"message\":{\"role\":\"system\","
        "\"content\":\"%s\",\"toolsAdded\":[\"t\"],\"timestamp\":1}}",
        id, parent, id);
}

// Since pi 0.87.
TEST(pi_context_of_a_compaction_begins_with_its_system_message)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "u1", NULL);
    system_message(store, "s1", "u1");
    user(store, "u2", "s1");
    system_message(store, "s2", "u2");
    user(store, "u3", "s2");
    entry(
        store, "compaction", "c", "u3",
        ",\"summary\":\"S\",\"firstKeptEntryId\":\"u2\",\"tokensBefore\":7,\"systemMessage\":{"
        "\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"all of it\"}],\"sections\":"
        "{\"a\":\"b\"},\"timestamp\":2}");
    user(store, "u4", "c");
    system_message(store, "s3", "u4");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "system=all of it compactionSummary:c=S,7 user:u2 user:u3 user:u4 "
                                 "system:s3 | off none");
    CHECK_STR(pi_context_at(store, "u3"), "user:u1 system:s1 user:u2 system:s2 user:u3 | off none");
    pi_export_is_same(store);
    pi_forget_lines(store); // written from the store it means the same
    pi_fork(store);
    snprintf(store->text, sizeof(store->text), "%s", pi_export_text(store));
    store->size = strlen(store->text);
    CHECK(strstr(store->text,
                 "\"systemMessage\":{\"role\":\"system\",\"content\":[{\"type\":\"text\","
                 "\"text\":\"all of it\"}],\"sections\":{\"a\":\"b\"}") != NULL);
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "system=all of it compactionSummary:c=S,7 user:u2 user:u3 user:u4 "
                                 "system:s3 | off none");
}

TEST(pi_context_has_the_latest_of_two_compactions_only)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    four_turns(store);
    compaction(store, "5", "4", "3");
    user(store, "6", "5");
    compaction(store, "7", "6", "4"); // keeps over the first one, which then is nothing
    user(store, "8", "7");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "compactionSummary:7=S,7 assistant:4 user:6 user:8 | off p/m");
}

TEST(pi_context_of_the_first_kept_of_any_kind)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    four_turns(store);
    entry(store, "custom", "c", "4", ",\"customType\":\"t\"");
    user(store, "5", "c");
    compaction(store, "6", "5", "c");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "compactionSummary:6=S,7 user:5 | off p/m");
}

TEST(pi_context_of_branches)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    four_turns(store);
    user(store, "a", "2");
    entry(store, "branch_summary", "b", "2", ",\"fromId\":\"a\",\"summary\":\"left\"");
    user(store, "c", "b");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 assistant:2 branchSummary:b user:c | off p/m");
    pi_rewind(store, "a");
    CHECK_STR(pi_context(store), "user:1 assistant:2 user:a | off p/m");
    pi_rewind(store, "4");
    CHECK_STR(pi_context(store), "user:1 assistant:2 user:3 assistant:4 | off p/m");
    pi_rewind(store, NULL); // resetLeaf
    CHECK_STR(pi_context(store), "| off none");
}

TEST(pi_context_of_notes_and_of_empty_branch_summaries_is_nothing)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "1", NULL);
    entry(store, "branch_summary", "2", "1", ",\"fromId\":\"root\",\"summary\":\"\"");
    entry(store, "label", "3", "2", ",\"targetId\":\"1\",\"label\":\"L\"");
    entry(store, "session_info", "4", "3", ",\"name\":\"N\"");
    entry(store, "custom", "5", "4", ",\"customType\":\"t\",\"data\":{\"a\":1}");
    entry(store, "mode_change", "6", "5", ",\"mode\":\"x\"");
    entry(store, "custom_message", "7", "6",
          ",\"customType\":\"t\",\"content\":\"hidden\",\"display\":false");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:1 custom:7 | off none");
}

TEST(pi_context_of_an_orphan_begins_with_it)
{
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    pi_begin(store, "s");
    user(store, "1", NULL);
    user(store, "2", "gone");
    pi_import_ok(store);
    CHECK_STR(pi_context(store), "user:2 | off none");
}

// A random tree, and the context that pi builds from it.

typedef enum NodeKind {
    NODE_USER,
    NODE_ASSISTANT,
    NODE_TOOL,
    NODE_BASH,
    NODE_THINKING,
    NODE_MODEL,
    NODE_COMPACTION,
    NODE_BRANCH_SUMMARY,
    NODE_CUSTOM,
    NODE_CUSTOM_MESSAGE,
    NODE_LABEL,
    NODE_UNKNOWN,
    NODE_KIND_COUNT,
} NodeKind;

typedef struct Node {
    NodeKind kind;
    char id[ID_TEXT_BYTES];
    char parent[ID_TEXT_BYTES];     // "": it has none
    char first_kept[ID_TEXT_BYTES]; // of a compaction
    unsigned value;                 // a level, a model, or whether a summary says anything
} Node;

typedef struct Tree {
    Node nodes[TREE_COUNT_MAX]; // as in the file
    size_t count;
    Random random;
} Tree;

static unsigned below(Tree *tree, unsigned bound)
{
    return (unsigned)(random_next(&tree->random) % bound);
}

static void grow(Tree *tree)
{
    size_t count = 1 + below(tree, TREE_COUNT_MAX);
    for (size_t i = 0; i < count; i++) {
        Node *node = &tree->nodes[tree->count++];
        *node = (Node){.kind = (NodeKind)below(tree, NODE_KIND_COUNT), .value = below(tree, 4)};
        snprintf(node->id, sizeof(node->id), "n%zu", i);
        unsigned choice = below(tree, 20);
        if (i > 0 && choice > 0) {
            size_t parent = choice < 5 ? below(tree, (unsigned)i) : i - 1;
            snprintf(node->parent, sizeof(node->parent), "n%zu", parent);
        }
        if (choice == 1) snprintf(node->parent, sizeof(node->parent), "gone");
        snprintf(node->first_kept, sizeof(node->first_kept), "n%u", below(tree, (unsigned)i + 2));
    }
    // In some files children come before their parents.
    for (size_t i = below(tree, 4); i > 0 && count > 1; i--) {
        Node *a = &tree->nodes[below(tree, (unsigned)count)];
        Node *b = &tree->nodes[below(tree, (unsigned)count)];
        Node swapped = *a;
        *a = *b;
        *b = swapped;
    }
}

static void write_message(PiStore *store, const Node *node, const char *parent, const char *message)
{
    pi_line(store,
            "{\"type\":\"message\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":\"2025-11-20T10:00:"
            "00.000Z\",\"message\":{\"role\":%s,\"timestamp\":1763632800000}}",
            node->id, parent, message);
}

static void write_node(PiStore *store, const Node *node)
{
    char parent[64] = "null", message[256], more[256] = "";
    const char *type = "message";
    if (*node->parent) snprintf(parent, sizeof(parent), "\"%s\"", node->parent);
    switch (node->kind) {
    case NODE_USER: write_message(store, node, parent, "\"user\",\"content\":\"x\""); return;
    case NODE_ASSISTANT:
        snprintf(message, sizeof(message),
                 "\"assistant\",\"content\":[],\"provider\":\"a\",\"model\":\"m%u\"", node->value);
        write_message(store, node, parent, message);
        return;
    case NODE_TOOL:
        write_message(store, node, parent,
                      "\"toolResult\",\"toolCallId\":\"t\",\"toolName\":\"n\",\"content\":[],"
                      "\"isError\":false");
        return;
    case NODE_BASH:
        write_message(store, node, parent,
                      "\"bashExecution\",\"command\":\"ls\",\"output\":\"\",\"cancelled\":false,"
                      "\"truncated\":false,\"excludeFromContext\":true");
        return;
    case NODE_THINKING:
        type = "thinking_level_change";
        snprintf(more, sizeof(more), ",\"thinkingLevel\":\"l%u\"", node->value);
        break;
    case NODE_MODEL:
        type = "model_change";
        snprintf(more, sizeof(more), ",\"provider\":\"c\",\"modelId\":\"m%u\"", node->value);
        break;
    case NODE_COMPACTION:
        type = "compaction";
        snprintf(more, sizeof(more),
                 ",\"summary\":\"S%u\",\"firstKeptEntryId\":\"%s\",\"tokensBefore\":%u",
                 node->value, node->first_kept, node->value);
        break;
    case NODE_BRANCH_SUMMARY:
        type = "branch_summary";
        snprintf(more, sizeof(more), ",\"fromId\":\"n0\",\"summary\":\"%s\"",
                 node->value > 0 ? "left" : "");
        break;
    case NODE_CUSTOM:
        type = "custom";
        snprintf(more, sizeof(more), ",\"customType\":\"t\",\"data\":{}");
        break;
    case NODE_CUSTOM_MESSAGE:
        type = "custom_message";
        snprintf(more, sizeof(more), ",\"customType\":\"t\",\"content\":[],\"display\":true");
        break;
    case NODE_LABEL:
        type = "label";
        snprintf(more, sizeof(more), ",\"targetId\":\"n0\",\"label\":\"L\"");
        break;
    case NODE_UNKNOWN:
    case NODE_KIND_COUNT: type = "mode_change"; break;
    }
    pi_line(store,
            "{\"type\":\"%s\",\"id\":\"%s\",\"parentId\":%s,\"timestamp\":\"2025-11-20T10:00:00."
            "000Z\"%s}",
            type, node->id, parent, more);
}

static const Node *node_of(const Tree *tree, const char *id)
{
    for (size_t i = tree->count; i > 0; i--) {
        if (strcmp(tree->nodes[i - 1].id, id) == 0) return &tree->nodes[i - 1];
    }
    return NULL;
}

// Rule E.
static void emit(FILE *out, const Node *node)
{
    static const char *const ROLES[NODE_KIND_COUNT] = {
        [NODE_USER] = "user",
        [NODE_ASSISTANT] = "assistant",
        [NODE_TOOL] = "toolResult",
        [NODE_BASH] = "bashExecution",
        [NODE_BRANCH_SUMMARY] = "branchSummary",
        [NODE_CUSTOM_MESSAGE] = "custom",
    };
    if (node->kind == NODE_BRANCH_SUMMARY && node->value == 0) return;
    if (ROLES[node->kind]) fprintf(out, "%s:%s ", ROLES[node->kind], node->id);
}

// Steps 3 to 5, on a path from its root to its leaf.
static void emit_path(FILE *out, const Node *const *path, size_t count)
{
    const Node *thinking = NULL, *model = NULL, *compaction = NULL;
    for (size_t i = 0; i < count; i++) {
        if (path[i]->kind == NODE_THINKING) thinking = path[i];
        if (path[i]->kind == NODE_MODEL || path[i]->kind == NODE_ASSISTANT) model = path[i];
        if (path[i]->kind == NODE_COMPACTION) compaction = path[i];
    }
    size_t at = 0;
    if (compaction) {
        fprintf(out, "compactionSummary:%s=S%u,%u ", compaction->id, compaction->value,
                compaction->value);
        bool is_kept = false;
        for (; path[at] != compaction; at++) {
            if (strcmp(path[at]->id, compaction->first_kept) == 0) is_kept = true;
            if (is_kept) emit(out, path[at]);
        }
        at++;
    }
    for (; at < count; at++)
        emit(out, path[at]);
    if (thinking) {
        fprintf(out, "| l%u ", thinking->value);
    } else {
        fputs("| off ", out);
    }
    if (!model) {
        fputs("none", out);
    } else {
        fprintf(out, "%s/m%u", model->kind == NODE_MODEL ? "c" : "a", model->value);
    }
}

// Steps 1 and 2. `leaf` NULL is pi's null; if it is unknown, the last entry is the leaf.
static const char *context_of(const Tree *tree, const char *leaf)
{
    static char text[CONTEXT_BYTES_MAX];
    const Node *path[TREE_COUNT_MAX];
    size_t count = 0;
    if (!leaf || tree->count == 0) return "| off none";
    const Node *node = node_of(tree, leaf);
    if (!node) node = &tree->nodes[tree->count - 1];
    for (; node; node = *node->parent ? node_of(tree, node->parent) : NULL) {
        path[TREE_COUNT_MAX - ++count] = node;
    }
    FILE *out = fmemopen(text, sizeof(text), "w");
    emit_path(out, path + TREE_COUNT_MAX - count, count);
    fclose(out);
    return text;
}

TEST(pi_context_of_random_trees_is_what_pi_makes_of_them_from_every_leaf)
{
    uint64_t seed = test_seed();
    CLEANUP(pi_store_close) PiStore *store = pi_store_open();
    for (size_t round = 0; round < test_scaled(150); round++) {
        static Tree tree;
        char id[32];
        tree = (Tree){.count = 0};
        random_seed(&tree.random, seed + round);
        grow(&tree);
        snprintf(id, sizeof(id), "session %zu", round);
        pi_begin(store, id);
        for (size_t i = 0; i < tree.count; i++)
            write_node(store, &tree.nodes[i]);
        pi_import_ok(store);
        CHECK_STR(pi_context(store), context_of(&tree, "unknown"));
        for (size_t i = 0; i < tree.count; i++) {
            CHECK_STR(pi_context_at(store, tree.nodes[i].id), context_of(&tree, tree.nodes[i].id));
        }
        for (size_t i = 0; i < tree.count; i++) {
            pi_rewind(store, tree.nodes[i].id);
            CHECK_STR(pi_context(store), context_of(&tree, tree.nodes[i].id));
        }
        pi_rewind(store, NULL);
        CHECK_STR(pi_context(store), context_of(&tree, NULL));
        pi_import_ok(store); // again: nothing new
    }
    CHECK_EQ(store->importer.report.sessions_new, test_scaled(150));
}
