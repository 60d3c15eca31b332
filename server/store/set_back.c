// Set-back stores. No ID or sequence may be issued before all of this is on the disk. Otherwise the
// next power cut would cause the same IDs to be issued a third time.

#include "store/set_back.h"

#include "base/limits.h"
#include "kv/durable/file_names.h"
#include "report/log.h"
#include "store/copy.h"

// Skips IDs. The last ID was taken back with the rest. If the clock is behind it or stands still,
// the next IDs would be ones that clients have already seen.
static Error skip_ids(Store *store, ErrorDetail *detail)
{
    static const uint8_t LOW_BYTES[10];
    Txn txn;
    Error error = txn_begin(store, /* is_write= */ true, NULL, detail, &txn);
    if (error) return error;
    Ulid next = ulid_make(ulid_time_ms(txn.state.last_id) + SET_BACK_SKIP_MS, LOW_BYTES);
    if (ulid_compare(next, txn.state.last_id) > 0) { // false if the time would overflow
        txn.state.last_id = next;
        txn.state_is_dirty = true;
    }
    error = txn_commit(&txn);
    txn_abort(&txn);
    return error;
}

Error store_note_set_back(Store *store, ErrorDetail *detail, bool *out_is_renewed)
{
    const StoreOptions *options = store_options(store);
    *out_is_renewed = store_is_set_back(store) && !options->is_read_only;
    if (!*out_is_renewed) return ERROR_NONE;
    Error error = skip_ids(store, detail);
    if (!error) error = store_renew(store, detail);
    if (error) return error;
    store_forget_set_back(store);
    if (store_is_failed(store)) {
        return error_say(detail, ERROR_IO, "cannot flush %s/" KV_FILE_DATA, options->directory);
    }
    log_write(LOG_WARNING, "a power cut or a disk error took the store back to its last flush",
              "directory=\"%s\"", options->directory);
    return ERROR_NONE;
}
