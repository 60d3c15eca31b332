// The main function of tined, the daemon.

#include "daemon/daemon.h"
#include "text/print.h"

int main(int argument_count, char **arguments)
{
    static Config config;
    Printer out = print_to_stdout(), err = print_to_stderr();
    ErrorDetail detail = {{0}};
    print_set_buffers();
    Error error = config_read(argument_count, arguments, &detail, &config);
    if (error) {
        print(&err, "tined: %s\n", detail.text[0] ? detail.text : error_text(error));
        return TINED_EXIT_USAGE;
    }
    switch (config.action) {
    case CONFIG_RUN: return (int)daemon_run(&config);
    case CONFIG_CHECK: return (int)daemon_check(&config);
    case CONFIG_VERSION: print(&out, "tined " TINE_VERSION "\n"); return TINED_EXIT_STOPPED;
    case CONFIG_HELP: config_print_help(); return TINED_EXIT_STOPPED;
    }
    return TINED_EXIT_USAGE;
}
