// tine watch: prints events as they happen.

#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "json_print.h"
#include "options.h"

static void watch_closep(TineWatch **watch)
{
    tine_watch_close(*watch);
}

static void print_event(const Cli *cli, const Event *event)
{
    Shown created = format_time(event->created_at);
    const char *what = *event->message_id ? event->message_id : event->record_id;
    if (cli->is_terminal) {
        char time[sizeof("15:11:24.000")];
        snprintf(time, sizeof(time), "%.12s", created.text + strlen("2026-11-18T"));
        print(&cli->out, "%6llu  %s  " PRINT_BOLD "%-18.40s" PRINT_NORMAL "  %s  %s%s%.200s\n",
              (unsigned long long)event->sequence, time, event->type, event->session_id, what,
              *event->data_json ? "  " : "", event->data_json);
    } else {
        print(&cli->out, "%llu\t%s\t%.40s\t%s\t%s\t%.200s\n", (unsigned long long)event->sequence,
              created.text, event->type, event->session_id, what, event->data_json);
    }
}

static int fill(const Cli *cli, TineWatchOptions *options, int64_t *count)
{
    int64_t after = -1;
    int code = option_number(cli, "after", 0, INT64_MAX, &after);
    if (!code) code = option_number(cli, "count", 1, INT64_MAX, count);
    if (code) return code;
    if (after >= 0 && option_is_given(cli, "oldest")) {
        return cli_usage(cli, "use --after or --oldest, not both");
    }
    options->type_prefix = option_text(cli, "type");
    if (option_is_given(cli, "oldest")) options->start = TINE_WATCH_OLDEST;
    if (after >= 0) {
        options->start = TINE_WATCH_AFTER;
        options->after_sequence = (uint64_t)after;
    }
    return EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    TineWatchOptions options = {0};
    Tine *tine;
    SessionName session;
    int64_t count = INT64_MAX;
    int code = fill(cli, &options, &count);
    if (!code) code = cli_connect(cli, &tine);
    if (!code && argument_count) {
        code = cli_find_session(cli, arguments[0], &session);
        options.session_id = session.id;
    }
    if (code) return code;
    CLEANUP(watch_closep) TineWatch *watch = NULL;
    if (tine_watch(tine, &options, &cli->status, &watch)) return cli_fail(cli, &cli->status);
    for (; count > 0; count--) {
        CLEANUP(message_freep) Event *event = NULL;
        if (tine_watch_next(watch, -1, &cli->status, &event)) return cli_fail(cli, &cli->status);
        if (!event) continue;
        if (cli->is_json) {
            (void)cli_print_json_line(cli, &event->base);
        } else {
            print_event(cli, event);
        }
        if (!print_flush(&cli->out)) return EXIT_FAILED;
    }
    return EXIT_OK;
}

static const Option OPTIONS[] = {
    {"type", 't', "PREFIX", "only events with a type that begins with PREFIX: message."},
    {"oldest", 0, NULL, "begin with the oldest event that is kept"},
    {"after", 0, "N", "begin after the event with this sequence number"},
    {"count", 'n', "N", "end after N events"},
    {NULL, 0, NULL, NULL},
};

const Command command_watch = {
    .name = "watch",
    .arguments = "[SESSION]",
    .summary = "prints events as they happen, of all sessions or of one",
    .details = "It misses nothing when tined restarts. It ends with Ctrl-C, or when tined is\n"
               "away for 10 s. In a pipe each event is a line: sequence, time, type, session,\n"
               "message or record, and data, separated by tabs. --json prints one line each,\n"
               "with all fields.",
    .options = OPTIONS,
    .examples = {"tine watch", "tine watch plan --type message. --json | jq -r .message_id"},
    .argument_count_max = 1,
    .run = run,
};
