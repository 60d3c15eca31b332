// How an export fails, and the calls that several of its steps make.

#include "importers/pi/pi_export_run.h"

#include <stdarg.h>
#include <stdlib.h>

int pi_export_fail_call(const PiExport *export)
{
    return export->call->out_status->code;
}

int pi_export_fail(const PiExport *export, StatusCode code, const char *format, ...)
{
    TineStatus *status = export->call->out_status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->message, sizeof(status->message), format, arguments);
    va_end(arguments);
    status->code = (int)code;
    return (int)code;
}

int pi_export_fail_memory(const PiExport *export)
{
    return pi_export_fail(export, STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

int pi_export_check_output(const PiExport *export)
{
    if (!ferror(export->out)) return STATUS_OK;
    return pi_export_fail(export, STATUS_UNKNOWN, "the output could not be written: %m");
}

int pi_export_get(const PiExport *export, const char *id, GetMessageResponse **out)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = (char *)(uintptr_t)id;
    return tine_get_message(export->tine, export->call, &request, out);
}

static unsigned version_of(const Session *session)
{
    unsigned long version = strtoul(session->data_version, NULL, 10);
    return version < 1 || version > 1000 ? 3 : (unsigned)version;
}

void pi_export_use_originals(PiExport *export, const Session *session, bool is_verbatim)
{
    pi_originals_begin(&export->originals, session->id);
    export->is_verbatim = is_verbatim;
    export->version = version_of(session);
}
