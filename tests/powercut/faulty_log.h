// Planted faults of the log. The calls that have them are wrapped in this program.

#pragma once

typedef enum LogFault {
    LOG_IS_RIGHT,
    LOG_TRIMS_EARLY,   // records are not needed as soon as they are not in the current segment
    LOG_TAKES_ANYTHING // a record is believed without its chain
} LogFault;

// From now on: LOG_TRIMS_EARLY of all logs that are opened.
void log_fault(LogFault planted);
