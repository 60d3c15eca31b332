// The memory of an Rpc, and the checks that many handlers share.

#include "rpc/rpc.h"

#include "base/limits.h"

void rpc_init(Rpc *rpc)
{
    *rpc = (Rpc){.request = {NULL, 0}};
    arena_init(&rpc->arena, DECODE_BUDGET_BYTES_MIN);
}

void rpc_reset(Rpc *rpc)
{
    loan_end(&rpc->loan);
    arena_reset(&rpc->arena, DECODE_BUDGET_BYTES_MIN);
    rpc->method = NULL;
    rpc->operation_id = rpc->body = (Slice){NULL, 0};
    rpc->deadline_ns = INT64_MAX;
    rpc->message = NULL;
    rpc->prepared = NULL;
    rpc->stores_nothing = false;
    rpc->wants_sync = false;
    rpc->txn = NULL;
    rpc->sink = NULL;
    rpc->wait_ms = 0;
    rpc->wait_after = 0;
    rpc->wait_until_ns = 0;
    rpc->error = ERROR_NONE;
    rpc->detail.text[0] = '\0';
    rpc->next = NULL;
}

void rpc_free(Rpc *rpc)
{
    loan_end(&rpc->loan);
    arena_free(&rpc->arena);
    buffer_free(&rpc->reply);
}

Error rpc_id(Rpc *rpc, const char *field, const char *text, Ulid *out)
{
    if (!*text) return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s is required", field);
    if (ulid_parse(slice_of(text), out)) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT,
                    "%s: '%.40s' is not an id; ids are 26 upper-case characters of Crockford's "
                    "base 32, as the server issued them",
                    field, text);
}

Error rpc_optional_id(Rpc *rpc, const char *field, const char *text, Ulid *out)
{
    *out = ULID_ZERO;
    return *text ? rpc_id(rpc, field, text, out) : ERROR_NONE;
}

Error rpc_required(Rpc *rpc, const char *field, const char *text)
{
    if (*text) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s is required", field);
}

Error rpc_external(Rpc *rpc, const char *within, const char *field, const External *external)
{
    if (!external || (*external->source && *external->id)) return ERROR_NONE;
    return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "%s%s%s: source and id are required", within,
                    *within ? "." : "", field);
}

Error rpc_page(Rpc *rpc, uint32_t limit, uint32_t limit_default, uint32_t limit_max,
               uint32_t page_bytes, Page *out)
{
    if (limit > limit_max) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "limit: %u is over the maximum of %u", limit,
                        limit_max);
    }
    if (page_bytes > PAGE_BYTES_MAX) {
        return rpc_fail(rpc, ERROR_INVALID_ARGUMENT, "page_bytes: %u is over the maximum of %d",
                        page_bytes, PAGE_BYTES_MAX);
    }
    size_t bytes = page_bytes ? page_bytes : PAGE_BYTES_DEFAULT;
    out->limit = limit ? limit : limit_default;
    // Reserves room for the envelope, a cursor and the other fields of the reply.
    out->bytes = bytes > 2 * PAGE_RESERVE_BYTES ? bytes - PAGE_RESERVE_BYTES : bytes / 2;
    return ERROR_NONE;
}
