// Calls: their memory, and the checks that many handlers share.

#include "rpc/call.h"

#include "base/limits.h"

void call_init(Call *call)
{
    *call = (Call){.request = {NULL, 0}};
    arena_init(&call->arena, DECODE_BUDGET_BYTES_MIN);
}

void call_reset(Call *call)
{
    arena_reset(&call->arena, DECODE_BUDGET_BYTES_MIN);
    call->method = NULL;
    call->operation_id = call->body = (Slice){NULL, 0};
    call->deadline_ns = INT64_MAX;
    call->message = NULL;
    call->prepared = NULL;
    call->stores_nothing = false;
    call->wants_sync = false;
    call->txn = NULL;
    call->sink = NULL;
    call->wait_ms = 0;
    call->wait_after = 0;
    call->wait_until_ns = 0;
    call->error = ERROR_NONE;
    call->detail.text[0] = '\0';
    call->next = NULL;
}

void call_free(Call *call)
{
    arena_free(&call->arena);
    buffer_free(&call->reply);
}

Error call_id(Call *call, const char *field, const char *text, Ulid *out)
{
    if (!*text) return call_fail(call, ERROR_INVALID_ARGUMENT, "%s is required", field);
    if (ulid_parse(slice_of(text), out)) return ERROR_NONE;
    return call_fail(call, ERROR_INVALID_ARGUMENT,
                     "%s: '%.40s' is not an id; ids are 26 upper-case characters of Crockford's "
                     "base 32, as the server issued them",
                     field, text);
}

Error call_optional_id(Call *call, const char *field, const char *text, Ulid *out)
{
    *out = ULID_ZERO;
    return *text ? call_id(call, field, text, out) : ERROR_NONE;
}

Error call_required(Call *call, const char *field, const char *text)
{
    if (*text) return ERROR_NONE;
    return call_fail(call, ERROR_INVALID_ARGUMENT, "%s is required", field);
}

Error call_external(Call *call, const char *within, const char *field, const External *external)
{
    if (!external || (*external->source && *external->id)) return ERROR_NONE;
    return call_fail(call, ERROR_INVALID_ARGUMENT, "%s%s%s: source and id are required", within,
                     *within ? "." : "", field);
}

Error call_page(Call *call, uint32_t limit, uint32_t limit_default, uint32_t limit_max,
                uint32_t page_bytes, Page *out)
{
    if (limit > limit_max) {
        return call_fail(call, ERROR_INVALID_ARGUMENT, "limit: %u is over the maximum of %u", limit,
                         limit_max);
    }
    if (page_bytes > PAGE_BYTES_MAX) {
        return call_fail(call, ERROR_INVALID_ARGUMENT, "page_bytes: %u is over the maximum of %d",
                         page_bytes, PAGE_BYTES_MAX);
    }
    size_t bytes = page_bytes ? page_bytes : PAGE_BYTES_DEFAULT;
    out->limit = limit ? limit : limit_default;
    // What the envelope, a cursor and the other fields of the reply may take.
    out->bytes = bytes > 2 * PAGE_RESERVE_BYTES ? bytes - PAGE_RESERVE_BYTES : bytes / 2;
    return ERROR_NONE;
}
