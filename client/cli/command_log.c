// tine log: prints the history of a session. Each page is printed when it arrives and then freed,
// so that a long history starts at once and needs little memory. Only the last N messages (-n) are
// kept, until they can be printed in order.

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "follow.h"
#include "json_print.h"
#include "message_print.h"
#include "options.h"
#include "ui_message.h"

enum { PAGE_BYTES_FIRST = 16 * 1024, LAST_COUNT_MAX = 10000 };

// One page, from any of the three calls. `messages` borrows from `reply`.
typedef struct Page {
    ProtobufCMessage *reply; // owned
    Message **messages;
    size_t count;
    const char *next_cursor;
    Message *marker;
} Page;

typedef struct Log {
    Cli *cli;
    SessionName session;
    MessageName through; // of --at; "" is the head
    MessageKind kinds[MESSAGE_KIND_CUSTOM];
    size_t kind_count;
    bool is_direct, is_since_marker, newest_first, is_ui;
    uint32_t limit, page_bytes;
    MessageStyle style;
    char newest_id[ID_BYTES]; // of the messages that were printed
    char marker_id[ID_BYTES]; // of --since-marker
} Log;

static int page_history(Log *log, char *cursor, Page *out)
{
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = log->session.id;
    request.kinds = log->kinds;
    request.n_kinds = log->kind_count;
    request.newest_first = log->newest_first;
    request.limit = log->limit;
    request.page_bytes = log->page_bytes;
    request.cursor = cursor;
    request.through_message_id = log->through.id;
    MessagesForSessionResponse *reply = NULL;
    int code = tine_messages_for_session(log->cli->tine, &log->cli->call, &request, &reply);
    if (!code) {
        *out = (Page){&reply->base, reply->messages, reply->n_messages, reply->next_cursor, NULL};
    }
    return code;
}

static int page_direct(Log *log, char *cursor, Page *out)
{
    MessagesDirectForSessionRequest request = MESSAGES_DIRECT_FOR_SESSION_REQUEST__INIT;
    request.session_id = log->session.id;
    request.kinds = log->kinds;
    request.n_kinds = log->kind_count;
    request.newest_first = log->newest_first;
    request.limit = log->limit;
    request.page_bytes = log->page_bytes;
    request.cursor = cursor;
    request.through_message_id = log->through.id;
    MessagesDirectForSessionResponse *reply = NULL;
    int code = tine_messages_direct_for_session(log->cli->tine, &log->cli->call, &request, &reply);
    if (!code) {
        *out = (Page){&reply->base, reply->messages, reply->n_messages, reply->next_cursor, NULL};
    }
    return code;
}

static int page_since_marker(Log *log, char *cursor, Page *out)
{
    MessagesSinceLatestMarkerRequest request = MESSAGES_SINCE_LATEST_MARKER_REQUEST__INIT;
    request.session_id = log->session.id;
    request.kinds = log->kinds;
    request.n_kinds = log->kind_count;
    request.page_bytes = log->page_bytes;
    request.cursor = cursor;
    request.through_message_id = log->through.id;
    MessagesSinceLatestMarkerResponse *reply = NULL;
    int code = tine_messages_since_latest_marker(log->cli->tine, &log->cli->call, &request, &reply);
    if (!code) {
        *out = (Page){&reply->base, reply->messages, reply->n_messages, reply->next_cursor,
                      reply->marker};
    }
    return code;
}

static int page_read(Log *log, const char *cursor, Page *out)
{
    char *place = (char *)(uintptr_t)cursor;
    int code = log->is_since_marker ? page_since_marker(log, place, out)
               : log->is_direct     ? page_direct(log, place, out)
                                    : page_history(log, place, out);
    return code ? cli_fail(log->cli, &log->cli->status) : EXIT_OK;
}

static void page_free(Page *page)
{
    message_freep(&page->reply);
    *page = (Page){0};
}

static void print_one(Log *log, const Message *message)
{
    if (log->is_ui) {
        if (!ui_message_is_shown(message)) return;
        cli_print_ui(log->cli, message);
    } else if (log->cli->is_json) {
        (void)cli_print_json_line(log->cli, &message->base);
    } else {
        message_print(log->cli, message, &log->style);
    }
    if (strcmp(message->id, log->newest_id) > 0) {
        snprintf(log->newest_id, sizeof(log->newest_id), "%s", message->id);
    }
}

static int print_pages(Log *log, int64_t count)
{
    CLEANUP(page_free) Page page = {.next_cursor = ""};
    log->page_bytes = PAGE_BYTES_FIRST;
    do {
        Page next = {0};
        int code = page_read(log, page.next_cursor, &next);
        if (code) return code;
        page_free(&page);
        page = next;
        if (page.marker) {
            print_one(log, page.marker);
            snprintf(log->marker_id, sizeof(log->marker_id), "%s", page.marker->id);
        }
        for (size_t i = 0; i < page.count && count > 0; i++, count--) {
            // The marker was printed first; it is not repeated in the window.
            if (strcmp(page.messages[i]->id, log->marker_id) == 0) continue;
            print_one(log, page.messages[i]);
        }
        print_flush(&log->cli->out);
        log->page_bytes = 0;
    } while (count > 0 && *page.next_cursor);
    return EXIT_OK;
}

// Prints the last `count` messages, oldest first. They are read backwards.
static int print_last(Log *log, size_t count)
{
    Page *pages = NULL;
    size_t page_count = 0;
    int code = EXIT_OK;
    const char *cursor = "";
    log->newest_first = true;
    while (count > 0) {
        Page *larger = realloc(pages, (page_count + 1) * sizeof(Page));
        if (!larger) {
            code = cli_say(EXIT_FAILED, "out of memory");
            break;
        }
        pages = larger;
        log->limit = (uint32_t)count;
        code = page_read(log, cursor, &pages[page_count]);
        if (code) break;
        const Page *page = &pages[page_count++];
        count -= page->count;
        cursor = page->next_cursor;
        if (!*cursor) break;
    }
    while (page_count > 0) {
        Page *page = &pages[--page_count];
        for (size_t i = page->count; !code && i > 0; i--)
            print_one(log, page->messages[i - 1]);
        page_free(page);
    }
    free(pages);
    print_flush(&log->cli->out);
    return code;
}

static void on_message(void *context, const Message *message)
{
    Log *log = context;
    if (strcmp(message->id, log->newest_id) <= 0) return; // it is in the history that was printed
    for (size_t i = 0; i < log->kind_count; i++) {
        if (log->kinds[i] == message->kind) print_one(log, message);
    }
    print_flush(&log->cli->out);
}

static int fill_kinds(Log *log)
{
    static const MessageKind SHOWN[] = {MESSAGE_KIND_CONVERSATION, MESSAGE_KIND_INJECTED,
                                        MESSAGE_KIND_BRANCH_SUMMARY, MESSAGE_KIND_COMPACTION};
    const Cli *cli = log->cli;
    const char *wanted;
    for (size_t i = 0; (wanted = option_text_at(cli, "kind", i)); i++) {
        size_t kind = 0;
        while (MESSAGE_KIND_NAMES[kind] && strcmp(MESSAGE_KIND_NAMES[kind], wanted) != 0)
            kind++;
        if (!MESSAGE_KIND_NAMES[kind]) {
            return cli_usage(cli,
                             "--kind: '%s' is not one of: conversation, injected, "
                             "branch-summary, compaction, setting, label, name, custom",
                             wanted);
        }
        if (log->kind_count < MESSAGE_KIND_CUSTOM) {
            log->kinds[log->kind_count++] = (MessageKind)(kind + 1);
        }
    }
    if (log->kind_count > 0) return EXIT_OK;
    if (log->is_ui) {
        log->kinds[log->kind_count++] = MESSAGE_KIND_CONVERSATION;
        return EXIT_OK;
    }
    bool all = option_is_given(cli, "all");
    log->kind_count = all ? MESSAGE_KIND_CUSTOM : sizeof(SHOWN) / sizeof(*SHOWN);
    for (size_t i = 0; i < log->kind_count; i++) {
        log->kinds[i] = all ? (MessageKind)(i + 1) : SHOWN[i];
    }
    return EXIT_OK;
}

static int fill(Log *log, int64_t *out_count)
{
    const Cli *cli = log->cli;
    log->is_direct = option_is_given(cli, "direct");
    log->is_since_marker = option_is_given(cli, "since-marker");
    log->newest_first = option_is_given(cli, "reverse");
    log->is_ui = option_is_given(cli, "ui");
    log->style = (MessageStyle){option_is_given(cli, "oneline"), option_is_given(cli, "full"),
                                cli->is_terminal};
    int code = option_number(cli, "limit", 1, LAST_COUNT_MAX, out_count);
    if (!code) code = fill_kinds(log);
    if (code) return code;
    if (log->is_since_marker && (log->is_direct || log->newest_first || *out_count != INT64_MAX)) {
        return cli_usage(cli, "--since-marker cannot be combined with --direct, --reverse or -n");
    }
    if (log->is_ui && (log->style.one_line || log->style.is_full)) {
        return cli_usage(cli, "--ui cannot be combined with --oneline or --full");
    }
    if (log->newest_first && option_is_given(cli, "follow")) {
        return cli_usage(cli, "use --reverse or --follow, not both");
    }
    if (option_is_given(cli, "at") && option_is_given(cli, "follow")) {
        return cli_usage(cli, "use --at or --follow, not both");
    }
    return EXIT_OK;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tine *tine;
    Log log = {.cli = cli};
    int64_t count = INT64_MAX;
    int code = fill(&log, &count);
    if (!code) code = cli_connect(cli, &tine);
    if (!code) code = cli_find_session(cli, argument_count ? arguments[0] : "@last", &log.session);
    const char *at = option_text(cli, "at");
    if (!code && at) code = cli_find_message(cli, log.session.id, at, &log.through);
    if (code) return code;
    bool is_followed = option_is_given(cli, "follow");
    CLEANUP(follow_closep) Follow *follow = NULL;
    if (is_followed) {
        code = follow_open(cli, log.session.id,
                           &follow); // before the history is read, so nothing is missed
        if (code) return code;
    } else {
        cli_page(cli);
    }
    bool is_turned = count != INT64_MAX && !log.newest_first;
    code = is_turned ? print_last(&log, (size_t)count) : print_pages(&log, count);
    return code || !is_followed ? code : follow_run(follow, on_message, &log);
}

static const Option OPTIONS[] = {
    {"limit", 'n', "N", "only the last N messages"},
    {"reverse", 'r', NULL, "newest first"},
    {"oneline", 0, NULL, "one line each"},
    {"follow", 'f', NULL, "wait for new messages and print them"},
    {"at", 0, "MESSAGE", "the history through this message, on any branch"},
    {"direct", 'd', NULL, "only messages of the session itself, none inherited"},
    {"since-marker", 'm', NULL, "the live window: the latest compaction and what follows it"},
    {"kind", 'k', "KIND", "only this kind; may be repeated"},
    {"all", 'a', NULL, "all kinds"},
    {"ui", 0, NULL, "turns as UIMessages of the AI SDK, one line of JSON each"},
    {"full", 0, NULL, "do not cut long tool results and texts"},
    {NULL, 0, NULL, NULL},
};

const Command command_log = {
    .name = "log",
    .arguments = "[SESSION]",
    .summary = "prints the history of a session, oldest first",
    .details = "Default session: @last. --json prints one line for each message. --at shows\n"
               "what a rewind to that message would show, but moves nothing.",
    .options = OPTIONS,
    .examples = {"tine log plan", "tine log @last --follow", "tine log plan --at @head~2",
                 "tine log plan --json | jq -r '.parts[]?.text?.text // empty'"},
    .argument_count_max = 1,
    .run = run,
};
