// How a run fails, and the call that several of its steps make.

#include "importers/pi/pi_run.h"

int pi_run_fail(PiRun *run, Error error, const ErrorDetail *detail)
{
    // Errors here are the file's, whatever they are called, except for memory.
    bool is_memory = error == ERROR_OUT_OF_MEMORY;
    StatusCode code = is_memory ? STATUS_RESOURCE_EXHAUSTED : STATUS_INVALID_ARGUMENT;
    const char *text = detail && *detail->text ? detail->text : error_text(error);
    return importer_fail(run->importer, code, "%s: %s", run->name, text);
}

int pi_run_fail_status(PiRun *run, uint32_t entry, const TineStatus *status)
{
    StatusCode code = (StatusCode)status->code;
    if (entry == ENTRY_NONE) {
        return importer_fail(run->importer, code, "%s: %s", run->name, status->message);
    }
    return importer_fail(run->importer, code, "%s: line %u or soon after: %s", run->name,
                         run->file.entries[entry].line, status->message);
}

int pi_run_fail_call(PiRun *run, uint32_t entry)
{
    return pi_run_fail_status(run, entry, &run->importer->status);
}

int pi_run_put_original(PiRun *run, uint32_t entry)
{
    Importer *importer = run->importer;
    Slice bytes;
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    CLEANUP(reply_freep) PutOriginalResponse *reply = NULL;
    Error error = pi_file_source(&run->file, entry, &bytes);
    if (error) return pi_run_fail(run, error, NULL);
    request.message_id = run->file.entries[entry].store_id;
    request.content.data = (uint8_t *)(uintptr_t)bytes.bytes;
    request.content.len = bytes.size;
    int status = tine_put_original(importer->tine, &importer->call, &request, &reply);
    return status ? pi_run_fail_call(run, entry) : STATUS_OK;
}
