// Random files of all versions, with IDs used twice, rings, missing parents and parents that come
// late: the store gives the same context as pi, message by message, from every leaf, and the export
// is the file again. The expected context is computed here, from pi's documented behaviour and the
// lines of the file alone. In a ring, where pi would loop forever, the first entry begins a
// history.

#include <stdlib.h>
#include <string.h>

#include "os/random.h"
#include "pi_steps.h"

enum { ROW_COUNT_MAX = 40, ID_TEXT_BYTES = 24, CONTEXT_BYTES_MAX = 64 * 1024, NOBODY = -1 };

#define START_MS 1763632800000

typedef enum RowKind {
    ROW_USER,
    ROW_ASSISTANT,
    ROW_TOOL,
    ROW_BASH,
    ROW_SYSTEM,
    ROW_HOOK,
    ROW_CUSTOM_MESSAGE,
    ROW_BRANCH_SUMMARY,
    ROW_COMPACTION,
    ROW_THINKING,
    ROW_MODEL,
    ROW_NOTE,
    ROW_UNKNOWN,
    ROW_KIND_COUNT,
} RowKind;

// An entry. Its index in the file identifies it.
typedef struct Row {
    RowKind kind;
    char id[ID_TEXT_BYTES], parent[ID_TEXT_BYTES]; // "": it has none
    char first_kept[ID_TEXT_BYTES];                // of a compaction
    int first_kept_index;                          // in version 1
} Row;

typedef struct RandomFile {
    unsigned version;
    bool has_system; // messages of the system, and compactions that carry one, as since 0.87
    Row rows[ROW_COUNT_MAX];
    int count;
    size_t ends[ROW_COUNT_MAX]; // where each line ends in the text
    Random random;
} RandomFile;

static unsigned below(RandomFile *file, unsigned bound)
{
    return (unsigned)(random_next(&file->random) % bound);
}

static void grow(RandomFile *file, unsigned version)
{
    file->version = version;
    file->has_system = below(file, 2) == 0;
    file->count = (int)(1 + below(file, ROW_COUNT_MAX));
    bool has_twice = below(file, 3) == 0, has_late = below(file, 3) == 0;
    for (int i = 0; i < file->count; i++) {
        Row *row = &file->rows[i];
        *row = (Row){.kind = (RowKind)below(file, ROW_KIND_COUNT)};
        if (row->kind == ROW_SYSTEM && !file->has_system) row->kind = ROW_USER;
        bool is_twice = has_twice && below(file, 8) == 0;
        snprintf(row->id, sizeof(row->id), "n%u",
                 is_twice ? below(file, (unsigned)i + 1) : (unsigned)i);
        unsigned choice = below(file, 16);
        unsigned parent = choice < 4 && i > 0 ? below(file, (unsigned)i) : (unsigned)i - 1;
        if (has_late && choice == 15) parent = below(file, (unsigned)file->count);
        bool is_root = choice == 4 || (i == 0 && !(has_late && choice == 15));
        if (!is_root) snprintf(row->parent, sizeof(row->parent), "n%u", parent);
        if (choice == 5) snprintf(row->parent, sizeof(row->parent), "gone");
        snprintf(row->first_kept, sizeof(row->first_kept), "n%u", below(file, (unsigned)i + 2));
        row->first_kept_index = (int)below(file, (unsigned)i + 4) - 1;
    }
}

// Writing the file.

static void put_ends(PiStore *store, const RandomFile *file, int i)
{
    const Row *row = &file->rows[i];
    int64_t time_ms = START_MS + i * 2000;
    char line[256];
    snprintf(line, sizeof(line), ",\"timestamp\":\"2025-11-20T10:%02d:%02d.000Z\"",
             (int)((time_ms - START_MS) / 60000), (int)((time_ms - START_MS) / 1000 % 60));
    pi_bytes(store, line);
    if (file->version > 1) {
        bool has_parent = *row->parent;
        snprintf(line, sizeof(line), ",\"id\":\"%s\",\"parentId\":%s%s%s", row->id,
                 has_parent ? "\"" : "", has_parent ? row->parent : "null", has_parent ? "\"" : "");
        pi_bytes(store, line);
    }
    pi_bytes(store, "}\n");
}

static void put_message(PiStore *store, int i, const char *message)
{
    char line[512];
    snprintf(line, sizeof(line),
             "{\"type\":\"message\",\"message\":{\"role\":%s,\"timestamp\":%lld}", message,
             (long long)(START_MS + i * 2000 + 1));
    pi_bytes(store, line);
}

static void put_row(PiStore *store, RandomFile *file, int i)
{
    const Row *row = &file->rows[i];
    char text[256], kept[64];
    snprintf(kept, sizeof(kept), "\"firstKeptEntryId\":\"%s\"", row->first_kept);
    if (file->version < 2) {
        snprintf(kept, sizeof(kept), "\"firstKeptEntryIndex\":%d", row->first_kept_index);
    }
    switch (row->kind) {
    case ROW_USER: snprintf(text, sizeof(text), "\"user\",\"content\":\"x%d\"", i); break;
    case ROW_ASSISTANT:
        snprintf(text, sizeof(text),
                 "\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x%d\"}],\"provider\":"
                 "\"a\",\"model\":\"m%d\"",
                 i, i);
        break;
    case ROW_TOOL:
        snprintf(text, sizeof(text),
                 "\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"t\",\"content\":[{\"type\":"
                 "\"text\",\"text\":\"x%d\"}],\"isError\":false",
                 i);
        break;
    case ROW_BASH:
        snprintf(text, sizeof(text), "\"bashExecution\",\"command\":\"c\",\"output\":\"x%d\"", i);
        break;
    case ROW_SYSTEM: snprintf(text, sizeof(text), "\"system\",\"content\":\"x%d\"", i); break;
    case ROW_HOOK:
        snprintf(text, sizeof(text),
                 "\"hookMessage\",\"customType\":\"t\",\"content\":\"x%d\",\"display\":true", i);
        break;
    case ROW_CUSTOM_MESSAGE:
        snprintf(text, sizeof(text),
                 "{\"type\":\"custom_message\",\"customType\":\"t\",\"content\":\"x%d\","
                 "\"display\":false",
                 i);
        break;
    case ROW_BRANCH_SUMMARY:
        snprintf(text, sizeof(text),
                 "{\"type\":\"branch_summary\",\"fromId\":\"root\",\"summary\":"
                 "\"%s\"",
                 i % 2 ? "left" : "");
        break;
    case ROW_COMPACTION:
        snprintf(
            text, sizeof(text),
            "{\"type\":\"compaction\",\"summary\":\"S%d\",%s,\"tokensBefore\":%d%s", i, kept, i,
            file->has_system ? ",\"systemMessage\":{\"role\":\"system\",\"content\":\"P\"}" : "");
        break;
    case ROW_THINKING:
        snprintf(text, sizeof(text),
                 "{\"type\":\"thinking_level_change\",\"thinkingLevel\":\"l%d\"", i);
        break;
    case ROW_MODEL:
        snprintf(text, sizeof(text),
                 "{\"type\":\"model_change\",\"provider\":\"c\",\"modelId\":\"m%d\"", i);
        break;
    case ROW_NOTE: snprintf(text, sizeof(text), "{\"type\":\"custom\",\"customType\":\"t\""); break;
    case ROW_UNKNOWN:
    case ROW_KIND_COUNT: snprintf(text, sizeof(text), "{\"type\":\"mode_change\""); break;
    }
    if (row->kind <= ROW_HOOK) {
        put_message(store, i, text);
    } else {
        pi_bytes(store, text);
    }
    put_ends(store, file, i);
    file->ends[i] = store->size;
}

static void write_file(PiStore *store, RandomFile *file)
{
    store->size = 0;
    if (file->version > 1) {
        pi_line(store, "{\"type\":\"session\",\"version\":%u,\"id\":\"s\",\"cwd\":\"/p\"}",
                file->version);
    } else {
        pi_line(store, "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/p\"}");
    }
    for (int i = 0; i < file->count; i++)
        put_row(store, file, i);
}

// What pi does with the file.

// Version 1 is a chain, and a compaction names its first kept entry by index. The header is 0.
static void migrate(RandomFile *file)
{
    for (int i = 0; i < file->count && file->version < 2; i++) {
        Row *row = &file->rows[i];
        snprintf(row->id, sizeof(row->id), "n%d", i);
        snprintf(row->parent, sizeof(row->parent), i > 0 ? "n%d" : "", i - 1);
        bool is_earlier = row->first_kept_index >= 1 && row->first_kept_index <= i;
        snprintf(row->first_kept, sizeof(row->first_kept), is_earlier ? "n%d" : "none",
                 row->first_kept_index - 1);
    }
}

// The latest entry with an ID.
static int row_of(const RandomFile *file, const char *id)
{
    int i = file->count - 1;
    while (i >= 0 && strcmp(file->rows[i].id, id) != 0)
        i--;
    return i;
}

static int parent_of(const RandomFile *file, int i)
{
    int parent = *file->rows[i].parent ? row_of(file, file->rows[i].parent) : NOBODY;
    bool is_first = true;
    int at = parent;
    for (int steps = 0; steps < file->count && at != NOBODY && at != i; steps++) {
        is_first &= at > i;
        at = *file->rows[at].parent ? row_of(file, file->rows[at].parent) : NOBODY;
    }
    return at == i && is_first ? NOBODY : parent; // in a ring
}

static void emit(FILE *out, const RandomFile *file, int i)
{
    static const char *const ROLES[ROW_KIND_COUNT] = {
        [ROW_USER] = "user",          [ROW_ASSISTANT] = "assistant",   [ROW_TOOL] = "toolResult",
        [ROW_BASH] = "bashExecution", [ROW_CUSTOM_MESSAGE] = "custom", [ROW_SYSTEM] = "system",
    };
    const Row *row = &file->rows[i];
    const char *role = ROLES[row->kind];
    if (row->kind == ROW_HOOK) role = file->version < 3 ? "custom" : "hookMessage";
    bool is_message = row->kind <= ROW_HOOK;
    long long time_ms = START_MS + i * 2000 + is_message;
    if (role) fprintf(out, "%s=x%d@%lld ", role, i, time_ms);
    if (row->kind == ROW_BRANCH_SUMMARY && i % 2) fprintf(out, "branchSummary=left@%lld ", time_ms);
}

static void emit_settings(FILE *out, const RandomFile *file, const int *path, int count)
{
    int thinking = NOBODY, model = NOBODY;
    for (int i = 0; i < count; i++) {
        RowKind kind = file->rows[path[i]].kind;
        if (kind == ROW_THINKING) thinking = path[i];
        if (kind == ROW_MODEL || kind == ROW_ASSISTANT) model = path[i];
    }
    fprintf(out, thinking == NOBODY ? "| off " : "| l%d ", thinking);
    if (model == NOBODY) {
        fputs("none", out);
    } else {
        fprintf(out, "%s/m%d", file->rows[model].kind == ROW_MODEL ? "c" : "a", model);
    }
}

// buildSessionContext from this leaf on.
static const char *context_of(const RandomFile *file, int leaf)
{
    static char text[CONTEXT_BYTES_MAX];
    int path[ROW_COUNT_MAX], count = 0, compaction = NOBODY, at = 0;
    for (int i = leaf; i != NOBODY; i = parent_of(file, i))
        path[ROW_COUNT_MAX - ++count] = i;
    memmove(path, path + ROW_COUNT_MAX - count, (size_t)count * sizeof(*path));
    for (int i = 0; i < count; i++) {
        if (file->rows[path[i]].kind == ROW_COMPACTION) compaction = i;
    }
    FILE *out = fmemopen(text, sizeof(text), "w");
    if (compaction != NOBODY) {
        const Row *row = &file->rows[path[compaction]];
        if (file->has_system) fputs("system=P ", out);
        fprintf(out, "compactionSummary=S%d,%d@%lld ", path[compaction], path[compaction],
                (long long)(START_MS + path[compaction] * 2000));
        bool is_kept = false;
        for (; at < compaction; at++) {
            is_kept |= strcmp(file->rows[path[at]].id, row->first_kept) == 0;
            if (is_kept && file->rows[path[at]].kind != ROW_SYSTEM) emit(out, file, path[at]);
        }
        at++;
    }
    for (; at < count; at++)
        emit(out, file, path[at]);
    emit_settings(out, file, path, count);
    fclose(out);
    return text;
}

// Whether parents come before their children. Such a file may be imported in parts. An entry whose
// ID is used again later is on no path; its parent is looked for before it.
static bool is_in_order(const RandomFile *file)
{
    for (int i = 0; i < file->count; i++) {
        const Row *row = &file->rows[i];
        int parent = parent_of(file, i);
        if (row_of(file, row->id) != i && *row->parent) {
            int earlier = i - 1;
            while (earlier >= 0 && strcmp(file->rows[earlier].id, row->parent) != 0)
                earlier--;
            if (earlier >= 0) parent = earlier;
        }
        if (parent > i) return false;
    }
    return true;
}

static bool has_ids_twice(const RandomFile *file)
{
    for (int i = 0; i < file->count; i++) {
        if (row_of(file, file->rows[i].id) != i) return true;
    }
    return false;
}

// Imports the first part of the file. Each ID must mean in it what it means in the whole file.
static void import_first_part(PiStore *store, RandomFile *file)
{
    int first = (int)below(file, (unsigned)file->count);
    char kept = store->text[file->ends[first]];
    size_t size = store->size;
    store->size = file->ends[first];
    store->text[store->size] = '\0';
    pi_import_ok(store);
    pi_export_is_same(store);
    store->text[store->size] = kept;
    store->size = size;
}

static void check_leaves(PiStore *store, const RandomFile *file)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *log = NULL;
    request.session_id = store->session;
    CHECK_EQ(tine_list_messages(store->importer.tine, NULL, &request, &log), 0);
    CHECK_EQ(log->n_messages, (size_t)file->count);
    for (int i = 0; i < file->count; i++) {
        if (row_of(file, file->rows[i].id) != i) continue; // its ID belongs to a later entry
        if (file->version < 2) {
            pi_rewind_to(store, log->messages[i]->id);
        } else {
            pi_rewind(store, file->rows[i].id);
        }
        CHECK_STR(pi_context_texts(store), context_of(file, i));
    }
    pi_rewind(store, NULL);
    CHECK_STR(pi_context_texts(store), "| off none");
}

TEST(pi_random_files_mean_to_us_what_they_mean_to_pi)
{
    uint64_t seed = test_seed();
    size_t round_count = test_scaled(120);
    for (size_t round = 0; round < round_count; round++) {
        static RandomFile file;
        CLEANUP(pi_store_close) PiStore *store = pi_store_open();
        random_seed(&file.random, seed + round);
        grow(&file, 1 + (unsigned)(round % 3));
        write_file(store, &file);
        migrate(&file);
        bool is_ordered = is_in_order(&file);
        if (is_ordered && !has_ids_twice(&file) && below(&file, 2)) import_first_part(store, &file);
        pi_import_ok(store);
        CHECK_STR(pi_context_texts(store), context_of(&file, file.count - 1));
        check_leaves(store, &file);
        pi_export_is_same(store);
        pi_import_ok(store);
        CHECK_EQ(store->importer.report.entries_new, (size_t)file.count);
    }
}
