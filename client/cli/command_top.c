// tine top: shows the server at work: on a terminal as a screen that is redrawn each second,
// elsewhere as one sample.

#include "cli.h"
#include "connect.h"
#include "json_print.h"
#include "options.h"
#include "os/clock.h"
#include "screen.h"
#include "top_frame.h"

enum { INTERVAL_MS = 1000, INTERVAL_MS_MIN = 100, INTERVAL_MS_MAX = 3600 * 1000 };

typedef struct Top {
    Cli *cli;
    TopSample before, now;
    int64_t interval_ms, count;
} Top;

static void print_json(Cli *cli, const TopSample *sample)
{
    print(&cli->out, "{\"health\":");
    cli_print_json_piece(cli, &sample->health->base);
    print(&cli->out, ",\"stats\":");
    cli_print_json_piece(cli, &sample->stats->base);
    print(&cli->out, ",\"sessions\":[");
    for (size_t i = 0; i < sample->sessions->n_sessions; i++) {
        if (i > 0) print(&cli->out, ",");
        cli_print_json_piece(cli, &sample->sessions->sessions[i]->base);
    }
    print(&cli->out, "]}\n");
}

static int print_once(Top *top)
{
    if (top_sample(top->cli, &top->now)) return cli_fail(top->cli, &top->cli->status);
    if (top->cli->is_json) {
        print_json(top->cli, &top->now);
    } else {
        TopFrame frame = {.out = &top->cli->out};
        top_draw(top->cli, &frame, &top->before, &top->now);
    }
    return EXIT_OK;
}

// Standard output is buffered, so a frame appears at once, without flicker.
static void draw(Top *top, int code)
{
    TopFrame frame = {.out = &top->cli->out, .is_live = true};
    screen_size(&frame.columns, &frame.rows);
    print(frame.out, "\033[H");
    if (code) {
        top_draw_failure(&frame, &top->cli->status);
    } else {
        top_draw(top->cli, &frame, &top->before, &top->now);
    }
    print(frame.out, "\033[J");
    print_flush(frame.out);
}

// Samples until the user, a signal or --count ends it. Waits for a server that is away.
static int run_live(Top *top)
{
    int64_t next_ns = clock_monotonic_ns();
    int code = EXIT_OK;
    for (bool is_due = true;;) {
        if (is_due) {
            TopSample sample;
            code = top_sample(top->cli, &sample);
            if (!code) {
                top_sample_free(&top->before);
                top->before = top->now;
                top->now = sample;
            }
            next_ns = clock_monotonic_ns() + top->interval_ms * 1000000;
        }
        draw(top, code);
        if (is_due && --top->count == 0) return EXIT_OK;
        int64_t wait_ns = next_ns - clock_monotonic_ns();
        char key = 0;
        ScreenEvent event = screen_wait(wait_ns > 0 ? (int)(wait_ns / 1000000) + 1 : 0, &key);
        if (event == SCREEN_SIGNAL || (event == SCREEN_KEY && key == 'q')) return EXIT_OK;
        is_due = clock_monotonic_ns() >= next_ns || (event == SCREEN_KEY && key == ' ');
    }
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    Top top = {.cli = cli, .interval_ms = INTERVAL_MS};
    Tine *tine;
    int code = option_number(cli, "interval", INTERVAL_MS_MIN, INTERVAL_MS_MAX, &top.interval_ms);
    if (!code) code = option_number(cli, "count", 1, INT64_MAX, &top.count);
    if (!code) code = cli_connect(cli, &tine);
    if (code) return code;
    bool is_live = cli->is_terminal && !cli->is_json && screen_open();
    code = is_live ? run_live(&top) : print_once(&top);
    screen_close();
    top_sample_free(&top.before);
    top_sample_free(&top.now);
    screen_obey();
    return code;
}

static const Option OPTIONS[] = {
    {"interval", 'i', "MS", "milliseconds between two samples (default: 1000)"},
    {"count", 'n', "N", "end after N samples"},
    {NULL, 0, NULL, NULL},
};

const Command command_top = {
    .name = "top",
    .arguments = "",
    .summary = "shows the server at work: sessions, requests, latency, readers, disk",
    .details = "q or Ctrl-C ends it, space takes a sample at once. Latencies are upper ends of\n"
               "buckets that are powers of two; ListEvents, which waits, is not in the sum\n"
               "over all calls. In a pipe and with --json it takes one sample, with the rates\n"
               "since tined started.",
    .options = OPTIONS,
    .examples = {"tine top", "tine top --json | jq .stats.readers"},
    .run = run,
};
