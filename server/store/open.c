// Opening: attaches the file, checks its format, migrates it, loads its state, and renews it after
// a power cut.

#include "store/open.h"

#include "store/migrate.h"
#include "store/set_back.h"

// Returns an error unless the file can be used as it is or after a migration.
static Error format_check(const StoreOptions *options, uint64_t format, ErrorDetail *detail)
{
    if (format == 0 || format == STORE_FORMAT_VERSION) return ERROR_NONE;
    if (format < MIGRATE_FORMAT_MIN || format > STORE_FORMAT_VERSION) {
        return error_say(detail, ERROR_INVALID_ARGUMENT,
                         "%s has storage format %llu, but this program reads format %d; use the "
                         "version of tine that wrote it, or a newer one",
                         options->directory, (unsigned long long)format, STORE_FORMAT_VERSION);
    }
    if (!options->is_read_only) return ERROR_NONE;
    return error_say(detail, ERROR_INVALID_ARGUMENT,
                     "%s has storage format %llu, but this program reads format %d; start tined on "
                     "it once to migrate it",
                     options->directory, (unsigned long long)format, STORE_FORMAT_VERSION);
}

static Error open_attached(Store *store, uint64_t format, ErrorDetail *detail)
{
    const StoreOptions *options = store_options(store);
    bool is_new = format == 0, is_renewed = false;
    Error error = format_check(options, format, detail);
    if (!error && !is_new && format < STORE_FORMAT_VERSION) {
        error = migrate_store(store, format, detail);
    }
    if (!error) error = store_load(store, is_new, detail);
    if (!error) error = store_note_set_back(store, detail, &is_renewed);
    return error || !is_renewed ? error : store_load(store, /* is_new= */ false, detail);
}

Error store_open(const StoreOptions *options, ErrorDetail *detail, Store **out_store)
{
    Store *store = NULL;
    uint64_t format;
    Error error = store_attach(options, detail, &store, &format);
    if (error) return error;
    error = open_attached(store, format, detail);
    if (error) {
        store_close(store);
        return error;
    }
    store_note_use(store);
    *out_store = store;
    return ERROR_NONE;
}
