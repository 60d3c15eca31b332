// tine: the command line of tined.

#include "cli.h"

int main(int argument_count, char **arguments)
{
    return cli_run(argument_count, arguments);
}
