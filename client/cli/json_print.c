// Prints messages as JSON.

#include "json_print.h"
#include "json_message.h"
#include "ui_message.h"

int cli_print_json(Cli *cli, const ProtobufCMessage *message)
{
    json_message_write(cli->out.file, message, JSON_PRETTY);
    print(&cli->out, "\n");
    return EXIT_OK;
}

int cli_print_json_line(Cli *cli, const ProtobufCMessage *message)
{
    cli_print_json_piece(cli, message);
    print(&cli->out, "\n");
    return EXIT_OK;
}

void cli_print_json_piece(Cli *cli, const ProtobufCMessage *message)
{
    json_message_write(cli->out.file, message, JSON_LINE);
}

void cli_print_ui(Cli *cli, const Message *message)
{
    ui_message_write(cli->out.file, message);
    print(&cli->out, "\n");
}
