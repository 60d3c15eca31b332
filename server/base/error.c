// Errors: the tables behind the list in error.h.

#include "base/error.h"

#include <assert.h>
typedef struct ErrorRow {
    const char *name;
    StatusCode status;
    const char *reason;
    const char *text;
} ErrorRow;

// clang-format off
static const ErrorRow ERROR_ROWS[] = {
    [ERROR_NONE] = {"", STATUS_OK, "", ""},
#define X(name, code, reason, text) [ERROR_##name] = {#name, STATUS_##code, reason, text},
    ERROR_LIST(X)
#undef X
};
// clang-format on

static const ErrorRow *error_row(Error error)
{
    assert((size_t)error < ERROR_COUNT);
    return &ERROR_ROWS[error];
}

const char *error_name(Error error)
{
    return error_row(error)->name;
}

StatusCode error_status(Error error)
{
    return error_row(error)->status;
}

const char *error_reason(Error error)
{
    return error_row(error)->reason;
}

const char *error_text(Error error)
{
    return error_row(error)->text;
}

bool error_is_environment(Error error)
{
    return error == ERROR_STORE_FULL || error == ERROR_OUT_OF_MEMORY || error == ERROR_IO ||
           error == ERROR_CORRUPT;
}
