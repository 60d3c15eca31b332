// tine compact: adds a marker with a summary. A model then reads the summary instead of what was
// before.

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "input.h"
#include "json_print.h"
#include "options.h"

static int fill(Cli *cli, const char *session_id, MessageName *before, Marker *marker)
{
    const char *point = option_text(cli, "before");
    if (option_is_given(cli, "keep-all")) {
        if (point) return cli_usage(cli, "use --before or --keep-all, not both");
        marker->keep_all = true;
        return EXIT_OK;
    }
    int code = cli_find_message(cli, session_id, point ? point : "@head", before);
    marker->before_message_id = before->id;
    return code;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    Tine *tine;
    SessionName session;
    MessageName before;
    Marker marker = MARKER__INIT;
    int code = option_number(cli, "tokens-saved", 0, INT64_MAX, &marker.tokens_saved);
    if (!code) code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, arguments[0], &session);
    if (!code) code = fill(cli, session.id, &before, &marker);
    if (code) return code;
    CLEANUP(text_freep) char *summary = NULL;
    code = input_read(cli, arguments[1], &summary);
    if (code) return code;
    marker.summary = summary;
    AddCompactionMarkerRequest request = ADD_COMPACTION_MARKER_REQUEST__INIT;
    request.session_id = session.id;
    request.marker = &marker;
    CLEANUP(message_freep) AddCompactionMarkerResponse *reply = NULL;
    if (tine_add_compaction_marker(tine, &cli->call, &request, &reply)) {
        return cli_fail(cli, &cli->status);
    }
    if (cli->is_json) return cli_print_json(cli, &reply->entry->base);
    print(&cli->out, "%s\n", reply->entry->id);
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"before", 0, "MESSAGE", "the last message that is summarized (default: @head)"},
    {"keep-all", 0, NULL, "summarize nothing: only add the marker"},
    {"tokens-saved", 0, "N", "tokens that are saved"},
    {NULL, 0, NULL, NULL},
};

const Command command_compact = {
    .name = "compact",
    .arguments = "SESSION [SUMMARY]",
    .summary = "adds a compaction marker with a summary and prints its ID",
    .details = "The summary is the argument, or standard input. `tine log --since-marker` then\n"
               "shows the live window.",
    .options = OPTIONS,
    .examples = {"tine compact @last 'We agreed on LMDB.'",
                 "tine compact plan --before @head~4 <summary.txt"},
    .argument_count_min = 1,
    .argument_count_max = 2,
    .run = run,
};
