// One message as JSON on standard output.

#include "cli.h"
#include "json_message.h"

int cli_print_json(Cli *cli, const ProtobufCMessage *message)
{
    (void)cli;
    json_message_write(stdout, message, JSON_PRETTY);
    putchar('\n');
    return EXIT_OK;
}

// A line is seen at once by whoever reads a stream of them.
int cli_print_json_line(Cli *cli, const ProtobufCMessage *message)
{
    (void)cli;
    json_message_write(stdout, message, JSON_LINE);
    putchar('\n');
    return EXIT_OK;
}
