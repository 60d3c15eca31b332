// A listing of a history whose pages are read between writes: it goes on as it began.

#include <stdlib.h>

#include "compare.h"
#include "operate.h"

// What the first page's moment shows; entries deleted since are left out when their turn comes.
static void pages_begin(Run *run, ModelSession *session)
{
    OpenPages *pages = &run->pages;
    size_t count;
    char *through;
    Entry *leaf = compare_random_leaf(run, session, &through);
    Entry **history = model_history(&run->model, leaf, &count);
    snprintf(pages->through, sizeof(pages->through), "%s", through);
    pages->session = session;
    pages->newest_first = run_chance(run, 50);
    pages->is_direct = run_chance(run, 30);
    pages->cursor[0] = '\0';
    pages->entries = realloc(pages->entries, (count + 1) * sizeof(Entry *));
    CHECK(pages->entries);
    pages->count = pages->position = 0;
    for (size_t i = 0; i < count; i++) {
        Entry *entry = history[pages->newest_first ? count - 1 - i : i];
        if (pages->is_direct && entry->owner != session) continue;
        if (!compare_kind_is_listed(NULL, 0, entry->kind)) continue;
        pages->entries[pages->count++] = entry;
    }
}

// Compares one page with what is left, and returns whether it was the last.
static void page_check(Run *run, Message **messages, size_t count, const char *cursor)
{
    OpenPages *pages = &run->pages;
    size_t at = 0;
    while (pages->position < pages->count) {
        Entry *entry = pages->entries[pages->position];
        if (entry->deleted_at) {
            pages->position++;
            continue;
        }
        if (at == count) break;
        content_check(run, messages[at++], entry);
        pages->position++;
    }
    if (at < count) run_differs(run, "a later page shows %s too much", messages[at]->id);
    snprintf(pages->cursor, sizeof(pages->cursor), "%s", cursor);
    if (*cursor) return;
    if (pages->position < pages->count) run_differs(run, "a later page ends too early");
    pages->session = NULL;
}

void operate_pages(Run *run)
{
    OpenPages *pages = &run->pages;
    if (!pages->session) {
        ModelSession *session = pick_session(run).session;
        if (!session) return;
        pages_begin(run, session);
    }
    uint32_t limit = (uint32_t)(1 + pages->count / 5);
    if (pages->is_direct) {
        MessagesDirectForSessionRequest request = MESSAGES_DIRECT_FOR_SESSION_REQUEST__INIT;
        request.session_id = pages->session->id;
        request.newest_first = pages->newest_first;
        request.cursor = pages->cursor;
        request.through_message_id = pages->through;
        request.limit = limit;
        MessagesDirectForSessionResponse *response =
            RUN_CALL(run, MESSAGES_DIRECT_FOR_SESSION, MessagesDirectForSession, &request, "");
        page_check(run, response->messages, response->n_messages, response->next_cursor);
    } else {
        MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
        request.session_id = pages->session->id;
        request.newest_first = pages->newest_first;
        request.cursor = pages->cursor;
        request.through_message_id = pages->through;
        request.limit = limit;
        MessagesForSessionResponse *response =
            RUN_CALL(run, MESSAGES_FOR_SESSION, MessagesForSession, &request, "");
        page_check(run, response->messages, response->n_messages, response->next_cursor);
    }
}
