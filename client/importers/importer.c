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

void reply_freep(void *pointer)
{
    ProtobufCMessage *message = *(ProtobufCMessage **)pointer;
    if (message) protobuf_c_message_free_unpacked(message, NULL);
}
