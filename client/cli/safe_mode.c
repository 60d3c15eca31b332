// What Describe tells about safe mode.

#include "safe_mode.h"

#include <inttypes.h>
#include <string.h>

SafeModeState safe_mode_ask(Cli *cli)
{
    DescribeRequest request = DESCRIBE_REQUEST__INIT;
    CLEANUP(message_freep) DescribeResponse *reply = NULL;
    SafeModeState state = {.is_on = false};
    if (tine_describe(cli->tine, &cli->call, &request, &reply)) return state;
    for (size_t i = 0; i < reply->n_limits; i++) {
        const Limit *limit = reply->limits[i];
        if (strcmp(limit->name, "safe_mode") == 0) state.is_on = limit->value > 0;
        if (strcmp(limit->name, "sessions_left_out") == 0) state.left_out = limit->value;
    }
    return state;
}

int safe_mode_warn(Cli *cli)
{
    SafeModeState state = safe_mode_ask(cli);
    if (state.left_out == 0) return EXIT_OK;
    return cli_say(EXIT_FAILED,
                   "tined is in safe mode: %" PRIu64 " %s cannot be read and %s left out; its log "
                   "names %s",
                   state.left_out, state.left_out == 1 ? "session" : "sessions",
                   state.left_out == 1 ? "is" : "are", state.left_out == 1 ? "it" : "them");
}
