// Listings to their end: each page is one call, from the cursor that the page before it named.

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "status.h"
#include "tine.h"

static const void *find_member(const ProtobufCMessage *message, const char *field_name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, field_name);
    bool is_text = field && field->type == PROTOBUF_C_TYPE_STRING;
    return is_text ? (const uint8_t *)message + field->offset : NULL;
}

static void page_free(TinePages *pages)
{
    if (pages->page) protobuf_c_message_free_unpacked(pages->page, pages->allocator);
    pages->page = NULL;
}

// Copies the request, with the cursor in place of its own. NULL: out of memory.
static ProtobufCMessage *copy_request(const ProtobufCMessage *request, char *cursor)
{
    ProtobufCMessage *copy = malloc(request->descriptor->sizeof_message);
    if (!copy) return NULL;
    memcpy(copy, request, request->descriptor->sizeof_message);
    char **place = (char **)(uintptr_t)find_member(copy, "cursor");
    if (place) *place = cursor;
    return copy;
}

static int fetch(Tine *tine, const TineCallOptions *options, const TineListing *listing,
                 const ProtobufCMessage *request, TinePages *pages)
{
    TineStatus *status = options ? options->out_status : NULL;
    int code = tine_call(tine, options, listing->method, request, listing->page_type, &pages->page);
    if (code) return code;
    const char *const *next = find_member(pages->page, "next_cursor");
    size_t size = next && *next ? strlen(*next) : 0;
    if (size >= sizeof(pages->cursor)) {
        page_free(pages);
        return status_undecodable(status);
    }
    if (size > 0) memcpy(pages->cursor, *next, size);
    pages->cursor[size] = '\0';
    pages->is_last = size == 0;
    return STATUS_OK;
}

ProtobufCMessage *tine_next_page(Tine *tine, const TineCallOptions *options,
                                 const TineListing *listing, const ProtobufCMessage *request,
                                 TinePages *pages)
{
    page_free(pages);
    if (pages->is_last || pages->code) return NULL;
    pages->allocator = options ? options->allocator : NULL;
    ProtobufCMessage *copy = NULL;
    if (*pages->cursor) {
        copy = copy_request(request, pages->cursor);
        if (!copy) pages->code = status_out_of_memory(options ? options->out_status : NULL);
    }
    if (!pages->code) pages->code = fetch(tine, options, listing, copy ? copy : request, pages);
    free(copy);
    return pages->page;
}

void tine_pages_end(TinePages *pages)
{
    page_free(pages);
    pages->is_last = true;
}
