// tine tree: draws forks and subagents. All sessions, or those of one tree, are read; then each is
// attached to its parent. A session whose parent is missing (in another project, deleted or purged)
// is a root.

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "connect.h"
#include "find.h"
#include "format.h"
#include "json_print.h"
#include "options.h"
#include "sessions.h"

typedef struct Node {
    Session *session; // owned
    struct Node *first_child, *last_child, *next;
    struct Node *parent;
} Node;

typedef struct Tree {
    Cli *cli;
    Node *nodes; // owned, sorted by id
    size_t count, capacity;
    Node roots; // the parent of all roots
} Tree;

enum { INDENT_COLUMNS = 3, INDENTS_MAX = 40, LABEL_COLUMNS_MIN = 16 };

static int on_session(void *context, const Session *session)
{
    Tree *tree = context;
    if (tree->count == tree->capacity) {
        size_t capacity = tree->capacity ? tree->capacity * 2 : 256;
        Node *nodes = realloc(tree->nodes, capacity * sizeof(Node));
        if (!nodes) return cli_say(EXIT_FAILED, "out of memory");
        tree->nodes = nodes;
        tree->capacity = capacity;
    }
    // Copies the session by packing it, because pages are freed after they are read.
    size_t size = protobuf_c_message_get_packed_size(&session->base);
    uint8_t *bytes = malloc(size ? size : 1);
    Session *copy = NULL;
    if (bytes) {
        (void)protobuf_c_message_pack(&session->base, bytes);
        copy = (Session *)protobuf_c_message_unpack(&session__descriptor, NULL, size, bytes);
    }
    free(bytes);
    if (!copy) return cli_say(EXIT_FAILED, "out of memory");
    tree->nodes[tree->count++] = (Node){.session = copy};
    return EXIT_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const Node *)a)->session->id, ((const Node *)b)->session->id);
}

static Node *find(Tree *tree, const char *id)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(tree->nodes[middle].session->id, id);
        if (order == 0) return &tree->nodes[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

// IDs are in order of creation, so children come after their parents, oldest first.
static void hang(Tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        Node *node = &tree->nodes[i];
        Node *parent = *node->session->parent_id ? find(tree, node->session->parent_id) : NULL;
        if (!parent || parent == node) parent = &tree->roots;
        node->parent = parent;
        if (parent->last_child) parent->last_child->next = node;
        if (!parent->first_child) parent->first_child = node;
        parent->last_child = node;
    }
}

// Returns the node that is drawn after this one: its first child, its next sibling, or that of an
// ancestor.
static Node *node_after(Node *node, const Node *top)
{
    if (node->first_child) return node->first_child;
    while (node != top && !node->next)
        node = node->parent;
    return node == top ? NULL : node->next;
}

// Prints the lines to the left of a node, from the root on, up to a limit. Returns their columns.
static size_t print_lines(const Printer *out, Node *node, const Node *top)
{
    size_t depth = 0;
    for (Node *above = node; above->parent != top; above = above->parent)
        depth++;
    size_t shown = depth < INDENTS_MAX ? depth : INDENTS_MAX;
    for (size_t i = shown; i > 0; i--) {
        Node *above = node;
        for (size_t up = 1; up < i; up++)
            above = above->parent;
        bool is_last = !above->next;
        print(out, i == 1 ? is_last ? "└─ " : "├─ " : is_last ? "   " : "│  ");
    }
    return shown * INDENT_COLUMNS;
}

static void print_node(const Tree *tree, Node *node, const Node *top)
{
    const Cli *cli = tree->cli;
    const Session *session = node->session;
    const char *name = *session->slug ? session->slug : session->title;
    if (!*name) name = session->first_message_preview;
    size_t used = print_lines(&cli->out, node, top);
    char end[128];
    snprintf(end, sizeof(end), "  %s%llu %s  %s%s",
             session->kind == SESSION_KIND_SUBAGENT ? "subagent  "
             : *session->fork_message_id            ? "fork  "
                                                    : "",
             (unsigned long long)session->message_count,
             session->message_count == 1 ? "msg" : "msgs",
             format_money(session->own_totals->cost_nano_usd).text,
             session->deleted_at ? "  deleted" : "");
    size_t taken = used + ID_BYTES + 1 + print_columns(end), columns = LABEL_COLUMNS_MIN;
    if ((size_t)cli->width > taken + columns) columns = (size_t)cli->width - taken;
    print(&cli->out, PRINT_YELLOW "%s" PRINT_NORMAL "  %.*s%s\n", session->id,
          cli->is_terminal ? (int)columns : -1, name, end);
}

// Draws everything below `top`, or prints it as one document.
static int print_tree(Tree *tree, Node *top)
{
    Node *first = top->first_child;
    if (!tree->cli->is_json) {
        for (Node *node = first; node; node = node_after(node, top))
            print_node(tree, node, top);
        return EXIT_OK;
    }
    ListSessionsResponse all = LIST_SESSIONS_RESPONSE__INIT;
    all.sessions = calloc(tree->count + 1, sizeof(Session *));
    if (!all.sessions) return cli_say(EXIT_FAILED, "out of memory");
    for (Node *node = first; node; node = node_after(node, top)) {
        all.sessions[all.n_sessions++] = node->session;
    }
    int code = cli_print_json(tree->cli, &all.base);
    free(all.sessions);
    return code;
}

static int draw(Tree *tree)
{
    if (tree->count > 0) qsort(tree->nodes, tree->count, sizeof(Node), compare);
    hang(tree);
    return print_tree(tree, &tree->roots);
}

static int get_session(Cli *cli, char *id, GetSessionResponse **out)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    request.session_id = id;
    return tine_get_session(cli->tine, &cli->call, &request, out);
}

// Finds the oldest ancestor of a session that exists and may be shown.
static int read_root(Tree *tree, const char *session_id, bool with_deleted)
{
    CLEANUP(message_freep) GetSessionResponse *found = NULL;
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "%s", session_id);
    if (get_session(tree->cli, id, &found)) return cli_fail(tree->cli, &tree->cli->status);
    if (found->session->deleted_at && !with_deleted) {
        return cli_say(EXIT_NOT_FOUND, "session %s is deleted; use --all", id);
    }
    while (*found->session->parent_id) {
        GetSessionResponse *parent = NULL;
        int code = get_session(tree->cli, found->session->parent_id, &parent);
        if (code == STATUS_NOT_FOUND) break; // purged a moment ago
        if (code) return cli_fail(tree->cli, &tree->cli->status);
        if (parent->session->deleted_at && !with_deleted) {
            message_freep(&parent);
            break;
        }
        message_freep(&found);
        found = parent;
    }
    return on_session(tree, found->session);
}

// Reads the root, then the children of each session that was read.
static int read_one_tree(Tree *tree, const char *session_id, ListSessionsRequest *request)
{
    int code = read_root(tree, session_id, request->deleted == DELETED_FILTER_INCLUDE);
    for (size_t i = 0; !code && i < tree->count; i++) {
        request->parent_id = tree->nodes[i].session->id;
        request->cursor = (char *)(uintptr_t) "";
        code = sessions_each(tree->cli, request, on_session, tree);
    }
    return code;
}

static int run(Cli *cli, int argument_count, char **arguments)
{
    Tree tree = {.cli = cli};
    Tine *tine;
    SessionName session;
    char directory[PATH_MAX];
    const char *project = option_text(cli, "project");
    int code = cli_connect(cli, &tine);
    if (!code && argument_count) code = cli_find_session(cli, arguments[0], &session);
    if (code) return code;
    ListSessionsRequest request = LIST_SESSIONS_REQUEST__INIT;
    if (project) request.project_dir = project_path(project, directory);
    if (option_is_given(cli, "all")) request.deleted = DELETED_FILTER_INCLUDE;
    code = argument_count ? read_one_tree(&tree, session.id, &request)
                          : sessions_each(cli, &request, on_session, &tree);
    if (!code) {
        cli_page(cli);
        code = draw(&tree);
    }
    for (size_t i = 0; i < tree.count; i++)
        message_freep(&tree.nodes[i].session);
    free(tree.nodes);
    return code;
}

static const Option OPTIONS[] = {
    {"project", 'p', "DIR", "only this project"},
    {"all", 'a', NULL, "deleted sessions, too"},
    {NULL, 0, NULL, NULL},
};

const Command command_tree = {
    .name = "tree",
    .arguments = "[SESSION]",
    .summary = "draws the tree of forks and subagents",
    .details = "With SESSION, only its tree. --json prints one document with all sessions,\n"
               "parents before children.",
    .options = OPTIONS,
    .examples = {"tine tree --project .", "tine tree @last"},
    .argument_count_max = 1,
    .run = run,
};
