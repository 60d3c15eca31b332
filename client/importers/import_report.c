// Formatting the problems of an import.

#include "importers/import_report.h"

#include <stdio.h>

void import_report_say_list(ImportReport *report, const char *format, va_list arguments)
{
    char text[IMPORT_PROBLEM_BYTES_MAX];
    vsnprintf(text, sizeof(text), format, arguments);
    if (report->say) report->say(report->context, text);
}

void import_report_say(ImportReport *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    import_report_say_list(report, format, arguments);
    va_end(arguments);
}
