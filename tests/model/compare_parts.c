// Comparing listings of parts and of originals with the messages that they are of.

#include "compare.h"

enum { PART_KIND_COUNT_MAX = 2 };

typedef struct PartText {
    PartKind kind; // PART_KIND_UNSPECIFIED: not indexed
    const char *name, *call_id;
} PartText;

static PartText text_of_part(const Part *part)
{
    switch ((int)part->kind_case) {
    case PART__KIND_TOOL_USE:
        return (PartText){PART_KIND_TOOL_USE, part->tool_use->name, part->tool_use->id};
    case PART__KIND_TOOL_RESULT:
        return (PartText){PART_KIND_TOOL_RESULT, part->tool_result->tool_name,
                          part->tool_result->tool_use_id};
    case PART__KIND_FILE: return (PartText){PART_KIND_FILE, part->file->filename, ""};
    case PART__KIND_EXTENSION: return (PartText){PART_KIND_EXTENSION, part->extension->type, ""};
    default: return (PartText){PART_KIND_UNSPECIFIED, "", ""};
    }
}

static bool part_matches(const ListPartsRequest *request, const Part *part)
{
    PartText text = text_of_part(part);
    if (text.kind == PART_KIND_UNSPECIFIED) return false;
    bool is_of_kind = request->n_kinds == 0;
    for (size_t i = 0; i < request->n_kinds; i++)
        is_of_kind = is_of_kind || request->kinds[i] == text.kind;
    return is_of_kind && (!*request->name || strcmp(request->name, text.name) == 0) &&
           (!*request->call_id || strcmp(request->call_id, text.call_id) == 0);
}

// The session's log without deleted entries, each as the model knows it.
static Pages log_read(Run *run, ModelSession *session)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    request.session_id = session->id;
    Pages pages = compare_read_pages(run, RUN_LIST_MESSAGES, &request.base, session->entry_count);
    size_t at = 0;
    for (size_t i = 0; i < session->entry_count; i++) {
        if (session->entries[i]->deleted_at) continue;
        RUN_CHECK(run, at < pages.count);
        content_check(run, (const Message *)pages.records[at++], session->entries[i]);
    }
    RUN_CHECK(run, at == pages.count);
    return pages;
}

static FoundPart *found_parts(Run *run, const Pages *log, size_t *out_count)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < log->count; i++)
        count += ((const Message *)log->records[i])->n_parts;
    FoundPart *found = run_alloc(run, count * sizeof(FoundPart));
    for (size_t i = 0; i < log->count; i++) {
        const Message *message = (const Message *)log->records[i];
        for (size_t j = 0; j < message->n_parts; j++) {
            tine__v1__found_part__init(&found[at]);
            found[at].message_id = message->id;
            found[at].index = (uint32_t)j;
            found[at++].part = message->parts[j];
        }
    }
    *out_count = count;
    return found;
}

// A name or a call that some part has, so that the filters find something.
static void random_query(Run *run, ListPartsRequest *request, const FoundPart *found, size_t count)
{
    request->n_kinds = run_below(run, PART_KIND_COUNT_MAX + 1);
    for (size_t i = 0; i < request->n_kinds; i++)
        request->kinds[i] = (PartKind)(1 + run_below(run, 4));
    if (count == 0) return;
    PartText text = text_of_part(found[run_below(run, count)].part);
    if (run_chance(run, 30)) request->name = text_of(text.name);
    if (run_chance(run, 30)) request->call_id = text_of(text.call_id);
}

void compare_parts(Run *run, ModelSession *session)
{
    PartKind kinds[PART_KIND_COUNT_MAX];
    Pages log = log_read(run, session);
    size_t count, wanted = 0, at = 0;
    FoundPart *found = found_parts(run, &log, &count);
    ListPartsRequest request = LIST_PARTS_REQUEST__INIT;
    request.session_id = session->id;
    request.kinds = kinds;
    random_query(run, &request, found, count);
    for (size_t i = 0; i < count; i++)
        wanted += part_matches(&request, found[i].part);
    Pages pages = compare_read_pages(run, RUN_LIST_PARTS, &request.base, wanted);
    if (pages.count != wanted) {
        run_differs(run, "ListParts of session %s ends after %zu of %zu parts", session->id,
                    pages.count, wanted);
    }
    for (size_t i = 0; i < count; i++) {
        if (!part_matches(&request, found[i].part)) continue;
        run_compare(run, "found part", pages.records[at++], &found[i].base);
    }
}

void compare_originals(Run *run, ModelSession *session)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    request.session_id = session->id;
    size_t wanted = 0, at = 0;
    for (size_t i = 0; i < session->entry_count; i++)
        wanted += session->entries[i]->has_original;
    Pages pages = compare_read_pages(run, RUN_LIST_ORIGINALS, &request.base, wanted);
    if (pages.count != wanted) {
        run_differs(run, "ListOriginals of session %s ends after %zu of %zu", session->id,
                    pages.count, wanted);
    }
    for (size_t i = 0; i < session->entry_count; i++) {
        const Entry *entry = session->entries[i];
        if (!entry->has_original) continue;
        const Original *original = (const Original *)pages.records[at++];
        if (strcmp(original->message_id, entry->id) != 0) {
            run_differs(run, "the original of %s stands where that of %s should",
                        original->message_id, entry->id);
        }
        Hash hash = hash_bytes(slice(original->content.data, original->content.len));
        if (memcmp(hash.bytes, entry->original.bytes, HASH_BYTES) != 0) {
            run_differs(run, "the original of %s reads otherwise than it was put", entry->id);
        }
    }
}
