// JSONL: a file a session, a line an entry, as several agents keep them. A line is appended by one
// write(2) and is not flushed; a fork copies the file up to its point; totals have no home but a
// line of their own. There is no index: what is asked is read from the files.

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_arena.h"
#include "json_parts.h"
#include "os/random.h"

enum { TAIL_BYTES = 64 * 1024 };

typedef struct Client {
    char directory[PLACE_BYTES_MAX];
    Random random;
    uint64_t created; // sessions, for names that sort by creation
    JsonText line, file;
} Client;

static void *jsonl_connect(const Place *place)
{
    Client *client = calloc(1, sizeof(Client));
    require(client != NULL, "out of memory");
    snprintf(client->directory, sizeof(client->directory), "%s", place->directory);
    random_seed_system(&client->random);
    return client;
}

static void jsonl_disconnect(void *context)
{
    Client *client = context;
    json_text_free(&client->line);
    json_text_free(&client->file);
    free(client);
}

static void path_of(const Client *client, const Id *session, char out[2 * PLACE_BYTES_MAX])
{
    snprintf(out, 2 * PLACE_BYTES_MAX, "%s/%s", client->directory, session->text);
}

static void write_line(Client *client, const Id *session)
{
    char path[2 * PLACE_BYTES_MAX];
    path_of(client, session, path);
    json_text_add(&client->line, "\n", 1);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    require(file >= 0 &&
                write(file, client->line.text, client->line.size) == (ssize_t)client->line.size &&
                close(file) == 0,
            "cannot write %s", path);
}

static void add_text(JsonText *json, const char *text)
{
    json_text_add(json, text, strlen(text));
}

static void jsonl_create(void *context, const SessionSpec *spec, Id *out)
{
    Client *client = context;
    snprintf(out->text, sizeof(out->text), "%012llu-%016llx.jsonl",
             (unsigned long long)++client->created,
             (unsigned long long)random_next(&client->random));
    client->line.size = 0;
    add_text(&client->line, "{\"type\":\"session\",\"slug\":");
    json_text_add_string(&client->line, spec->slug, strlen(spec->slug));
    add_text(&client->line, ",\"project_dir\":\"" PROJECT_DIR "\",\"model\":\"" MODEL_NAME "\"}");
    write_line(client, out);
}

static void jsonl_append(void *context, const Id *session, const Entry *entry, Id *out)
{
    Client *client = context;
    Id id;
    snprintf(id.text, sizeof(id.text), "%016llx", (unsigned long long)random_next(&client->random));
    client->line.size = 0;
    add_text(&client->line, "{\"type\":\"message\",\"id\":\"");
    add_text(&client->line, id.text);
    add_text(&client->line, "\",\"role\":\"");
    add_text(&client->line, entry_role(entry));
    add_text(&client->line, "\",\"parts\":");
    json_parts_write(&client->line, entry);
    add_text(&client->line, entry->kind == ENTRY_ASSISTANT
                                ? ",\"usage\":{\"input\":900,\"output\":100,\"cache_read\":12000,"
                                  "\"cache_write\":300,\"cost_usd\":0.0123}}"
                                : "}");
    write_line(client, session);
    if (out) *out = id;
}

// The whole file into client->file.
static void read_file(Client *client, const Id *session)
{
    char path[2 * PLACE_BYTES_MAX];
    struct stat stat;
    path_of(client, session, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    require(file >= 0 && fstat(file, &stat) == 0, "cannot read %s", path);
    size_t size = (size_t)stat.st_size;
    if (size + 1 > client->file.capacity) {
        client->file.capacity = size + size / 4 + 1;
        client->file.text = realloc(client->file.text, client->file.capacity);
        require(client->file.text != NULL, "out of memory");
    }
    require(read(file, client->file.text, size) == (ssize_t)size, "cannot read %s", path);
    client->file.text[size] = '\0';
    client->file.size = size;
    close(file);
}

// Messages of the file as it was read, decoded or only counted.
static void tally_lines(Client *client, Tally *out, bool is_decoded)
{
    *out = (Tally){0, 0};
    char *line = client->file.text, *end = client->file.text + client->file.size;
    for (char *next; line < end; line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        require(next != NULL, "half a line");
        if (!is_decoded) {
            out->messages += strncmp(line, "{\"type\":\"message\"", 17) == 0;
            continue;
        }
        const cJSON *json = json_arena_parse(line, (size_t)(next - line));
        require(json != NULL, "a line that is no JSON");
        const cJSON *parts = cJSON_GetObjectItemCaseSensitive(json, "parts");
        if (parts) json_parts_tally(parts, out, NULL);
    }
}

static void jsonl_history_bytes(void *client, const Id *session, Tally *out)
{
    read_file(client, session);
    tally_lines(client, out, /* is_decoded= */ false);
}

static void jsonl_history(void *client, const Id *session, Tally *out)
{
    read_file(client, session);
    tally_lines(client, out, /* is_decoded= */ true);
}

// At the last line, so all of the file is copied.
static void jsonl_fork(void *context, const Id *session, const Id *message, Id *out)
{
    (void)message;
    Client *client = context;
    snprintf(out->text, sizeof(out->text), "%012llu-%016llx.jsonl",
             (unsigned long long)++client->created,
             (unsigned long long)random_next(&client->random));
    read_file(client, session);
    client->line.size = 0;
    json_text_add(&client->line, client->file.text, client->file.size - 1);
    write_line(client, out);
}

static size_t jsonl_list_one(Client *client, const Id *session, const char *query)
{
    char path[2 * PLACE_BYTES_MAX], head[512] = "";
    path_of(client, session, path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    require(file >= 0, "cannot read %s", path);
    ssize_t size = read(file, head, sizeof(head) - 1);
    if (query && !strcasestr(head, query)) {
        close(file);
        return 0;
    }
    static _Thread_local char tail[TAIL_BYTES]; // for the last messages
    off_t end = lseek(file, 0, SEEK_END);
    off_t from = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
    size = pread(file, tail, sizeof(tail), from);
    require(size > 0, "cannot read %s", path);
    close(file);
    return 1;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static size_t jsonl_list(void *context, size_t limit, const char *query)
{
    Client *client = context;
    struct dirent **names;
    int count = scandir(client->directory, &names, NULL, newest_first);
    size_t found = 0;
    require(count >= 0, "cannot read %s", client->directory);
    for (int i = 0; i < count; i++) {
        Id session;
        snprintf(session.text, sizeof(session.text), "%.79s", names[i]->d_name);
        if (found < limit && session.text[0] != '.')
            found += jsonl_list_one(client, &session, query);
        free(names[i]);
    }
    free(names);
    return found;
}

SYSTEM(jsonl) = {
    .name = "jsonl",
    .about = "a file a session, a line an entry, not flushed; lines decoded by cJSON",
    .order = 60,
    .durability = DURABILITY_PROCESS,
    .copies_forks = true,
    .is_files = true,
    .connect = jsonl_connect,
    .disconnect = jsonl_disconnect,
    .create_session = jsonl_create,
    .fork_session = jsonl_fork,
    .append = jsonl_append,
    .history_bytes = jsonl_history_bytes,
    .history = jsonl_history,
    .list = jsonl_list,
};
