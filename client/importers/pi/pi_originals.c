// Originals and entries have the same order, so one walk over both finds all pairs.

#include "importers/pi/pi_originals.h"

#include <stdio.h>
#include <string.h>

void pi_originals_begin(PiOriginals *originals, const char *session)
{
    reply_freep(&originals->page);
    *originals = (PiOriginals){.page = NULL};
    snprintf(originals->session, sizeof(originals->session), "%s", session);
}

void pi_originals_end(PiOriginals *originals)
{
    pi_originals_begin(originals, "");
}

static int next_page(PiOriginals *originals, Tine *tine, const TineCallOptions *call)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    ListOriginalsResponse *page = NULL;
    request.session_id = originals->session;
    if (originals->page) request.cursor = originals->page->next_cursor;
    int code = tine_list_originals(tine, call, &request, &page);
    if (code) return code;
    reply_freep(&originals->page);
    originals->page = page;
    originals->next = 0;
    return STATUS_OK;
}

static bool is_at_end(const PiOriginals *originals)
{
    return !*originals->session || (originals->page && !*originals->page->next_cursor);
}

int pi_originals_take(PiOriginals *originals, Tine *tine, const TineCallOptions *call,
                      const char *entry, Original **out)
{
    *out = NULL;
    for (;;) {
        ListOriginalsResponse *page = originals->page;
        if (!page || originals->next == page->n_originals) {
            if (is_at_end(originals)) return STATUS_OK;
            int code = next_page(originals, tine, call);
            if (code) return code;
            continue;
        }
        Original *original = page->originals[originals->next];
        int order = strcmp(original->message_id, entry);
        if (order > 0) return STATUS_OK;
        page->originals[originals->next++] = NULL;
        if (order == 0) {
            *out = original;
            return STATUS_OK;
        }
        protobuf_c_message_free_unpacked(&original->base, NULL);
    }
}

int pi_originals_count(const char *session, Tine *tine, const TineCallOptions *call, uint64_t *out)
{
    PiOriginals originals = {.page = NULL};
    int code = STATUS_OK;
    *out = 0;
    pi_originals_begin(&originals, session);
    do {
        code = next_page(&originals, tine, call);
        if (!code) *out += originals.page->n_originals;
    } while (!code && !is_at_end(&originals));
    pi_originals_end(&originals);
    return code;
}
