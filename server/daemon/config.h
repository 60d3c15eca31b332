// The configuration of tined, from flags and environment variables (--log-level is TINE_LOG_LEVEL).
// A flag wins over its variable.

#pragma once

#include "base/limits.h"
#include "daemon/paths.h"
#include "report/error_detail.h"
#include "report/log.h"

typedef enum ConfigAction {
    CONFIG_RUN,
    CONFIG_CHECK, // print what would be run
    CONFIG_VERSION,
    CONFIG_HELP,
} ConfigAction;

typedef enum Durability {
    DURABILITY_SYNC,
    DURABILITY_RELAXED,
} Durability;

typedef struct Config {
    ConfigAction action;
    char data[PATH_BYTES_MAX];
    bool is_data_default; // `data` was not given
    char socket[PATH_BYTES_MAX];
    char listen[STRING_BYTES_MAX];   // the tcp URL; "": none
    char token_file[PATH_BYTES_MAX]; // "": none
    char token[TOKEN_BYTES_MAX + 1]; // its content
    bool is_ephemeral;
    bool is_safe, is_not_safe; // --safe, --no-safe; neither: as the crash notes say
    uint64_t fork_depth_max;   // 0: no limit
    uint64_t event_count_max, operation_count_max;
    int64_t event_age_ms_max, operation_age_ms_max;
    int64_t idle_exit_ms;           // 0: never
    int durability;                 // Durability
    int64_t flush_ms;               // of DURABILITY_RELAXED
    int log_level;                  // LogLevel
    int log_format;                 // LogFormat
    char log_file[PATH_BYTES_MAX];  // "": standard error
    unsigned long file_system_type; // of `data`; 0: ask the kernel. Not an option; tests set it
} Config;

// Reads flags, environment and the token's file. Changes nothing. Returns ERROR_INVALID_ARGUMENT;
// `detail` says which value is wrong and why.
MUST_USE Error config_read(int argument_count, char **arguments, ErrorDetail *detail, Config *out);

// Write to standard output.
void config_print(const Config *config);
void config_print_help(void);
