// Messages as JSON on standard output.

#pragma once

#include "cli.h"

// Prints one message as a document of its own, on one line when a command prints a stream of them.
// Returns EXIT_OK.
int cli_print_json(Cli *cli, const ProtobufCMessage *message);
int cli_print_json_line(Cli *cli, const ProtobufCMessage *message);

// The same as a part of a document that the caller prints, without a line feed.
void cli_print_json_piece(Cli *cli, const ProtobufCMessage *message);

// Prints a message as a UIMessage, on one line (ui_message.h).
void cli_print_ui(Cli *cli, const Message *message);
