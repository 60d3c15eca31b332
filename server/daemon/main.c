// tined: the daemon.

#include <stdio.h>

#include "daemon/daemon.h"

int main(int argument_count, char **arguments)
{
    static Config config;
    ErrorDetail detail = {{0}};
    Error error = config_read(argument_count, arguments, &detail, &config);
    if (error) {
        fprintf(stderr, "tined: %s\n", detail.text[0] ? detail.text : error_text(error));
        return EXIT_CODE_USAGE;
    }
    switch (config.action) {
    case CONFIG_RUN: return (int)daemon_run(&config);
    case CONFIG_CHECK: return (int)daemon_check(&config);
    case CONFIG_VERSION: puts("tined " TINE_VERSION); return EXIT_CODE_STOPPED;
    case CONFIG_HELP: config_print_help(); return EXIT_CODE_STOPPED;
    }
    return EXIT_CODE_USAGE;
}
