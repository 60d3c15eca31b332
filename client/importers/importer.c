// The parts of an importer that do not depend on what it reads.

#include "importers/importer.h"

#include <stdarg.h>

void importer_init(Importer *importer, Tine *tine, const TineCallOptions *call)
{
    *importer = (Importer){.tine = tine};
    if (call) importer->call = *call;
    importer->call.out_status = &importer->status;
}

int importer_fail(Importer *importer, StatusCode code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    import_report_say_list(&importer->report, format, arguments);
    va_end(arguments);
    return (int)code;
}

bool importer_store_failed(int code)
{
    switch ((StatusCode)code) {
    case STATUS_CANCELLED:
    case STATUS_DEADLINE_EXCEEDED:
    case STATUS_PERMISSION_DENIED:
    case STATUS_RESOURCE_EXHAUSTED:
    case STATUS_UNIMPLEMENTED:
    case STATUS_INTERNAL:
    case STATUS_UNAVAILABLE:
    case STATUS_DATA_LOSS:
    case STATUS_UNAUTHENTICATED: return true;
    case STATUS_OK:
    case STATUS_UNKNOWN:
    case STATUS_INVALID_ARGUMENT:
    case STATUS_NOT_FOUND:
    case STATUS_ALREADY_EXISTS:
    case STATUS_FAILED_PRECONDITION:
    case STATUS_ABORTED:
    case STATUS_OUT_OF_RANGE:
    default: return false;
    }
}

void reply_freep(void *pointer)
{
    ProtobufCMessage *message = *(ProtobufCMessage **)pointer;
    if (message) protobuf_c_message_free_unpacked(message, NULL);
}
