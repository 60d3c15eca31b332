// The export: the session's log and its originals side by side, both in the log's order; before it,
// in a fork, the path that the fork came with.

#include "importers/pi/pi_export.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "importers/pi/pi_entry.h"
#include "importers/pi/pi_original.h"
#include "importers/pi/pi_write.h"
#include "text/ulid.h"

enum { WALK_COUNT_MAX = 1000 * 1000, NAME_BYTES = 512, LINE_ARENA_BYTES = 64 * 1024 * 1024 };

// An entry that the file calls otherwise than the store.
typedef struct Alias {
    char id[STORE_ID_BYTES];
    char *name; // owned; NULL: the store's id, which no line of the file knows
} Alias;

typedef struct Export {
    Tine *tine;                  // borrowed
    const TineCallOptions *call; // borrowed; its status says why the export failed
    FILE *out;
    Session *session;                 // borrowed
    bool is_line_open;                // what was written last does not end its line
    bool is_verbatim;                 // originals are written as they are
    unsigned version;                 // of the session whose entries are written
    Arena arena;                      // of one line
    atomic_uint_fast64_t *bytes_done; // borrowed

    // The originals of a session, in its entries' order.
    char owner[STORE_ID_BYTES];       // of an inherited entry
    char source[STORE_ID_BYTES];      // whose originals they are; "": there are none
    ListOriginalsResponse *originals; // a page; owned
    size_t next;                      // of it

    Alias *aliases; // in the order of their ids; owned
    size_t alias_count, alias_capacity;

    // The entry that was written last, whose child usually comes next.
    char last_id[STORE_ID_BYTES], last_name[NAME_BYTES];
} Export;

// A failure that is not a call's.
static int fail(const Export *export, StatusCode code, const char *format, ...)
{
    TineStatus *status = export->call->out_status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(status->message, sizeof(status->message), format, arguments);
    va_end(arguments);
    status->code = (int)code;
    return (int)code;
}

static int out_of_memory(const Export *export)
{
    return fail(export, STATUS_RESOURCE_EXHAUSTED, "out of memory");
}

static int check_output(const Export *export)
{
    if (!ferror(export->out)) return STATUS_OK;
    return fail(export, STATUS_UNKNOWN, "the output could not be written: %m");
}

static bool is_pi(const External *external)
{
    return external && strcmp(external->source, PI_SOURCE) == 0;
}

static const char *name_of(const Message *message)
{
    return is_pi(message->external) ? message->external->id : message->id;
}

static unsigned version_of(const Session *session)
{
    unsigned long version = strtoul(session->data_version, NULL, 10);
    return version < 1 || version > 1000 ? 3 : (unsigned)version;
}

static int get(const Export *export, const char *id, GetMessageResponse **out)
{
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_MESSAGE_ID;
    request.message_id = (char *)(uintptr_t)id;
    return tine_get_message(export->tine, export->call, &request, out);
}

static int compare_aliases(const void *a, const void *b)
{
    return strcmp(((const Alias *)a)->id, ((const Alias *)b)->id);
}

static const Alias *find_alias(const Export *export, const char *id)
{
    Alias wanted;
    if (export->alias_count == 0) return NULL;
    snprintf(wanted.id, sizeof(wanted.id), "%s", id);
    return bsearch(&wanted, export->aliases, export->alias_count, sizeof(Alias), compare_aliases);
}

// Entries are written in the order of their ids, so the list is in order by itself.
static int add_alias(Export *export, const char *id, const char *name)
{
    if (export->alias_count == export->alias_capacity) {
        size_t capacity = export->alias_capacity > 0 ? export->alias_capacity * 2 : 64;
        Alias *aliases = realloc(export->aliases, capacity * sizeof(*aliases));
        if (!aliases) return out_of_memory(export);
        export->aliases = aliases;
        export->alias_capacity = capacity;
    }
    Alias *alias = &export->aliases[export->alias_count];
    snprintf(alias->id, sizeof(alias->id), "%s", id);
    alias->name = name ? strdup(name) : NULL;
    if (name && !alias->name) return out_of_memory(export);
    export->alias_count++;
    return STATUS_OK;
}

// Notes what the file calls an entry that has just been written.
static int note_name(Export *export, const Message *message, const char *name)
{
    snprintf(export->last_id, sizeof(export->last_id), "%s", message->id);
    snprintf(export->last_name, sizeof(export->last_name), "%s", name);
    bool is_known = strcmp(name, name_of(message)) == 0;
    if (is_known && is_pi(message->external)) return STATUS_OK;
    return add_alias(export, message->id, is_known ? NULL : name);
}

// What the file calls an entry. What is no id of ours is pi's own word already.
static const char *find_name(const Export *export, const char *id, char room[NAME_BYTES])
{
    const Alias *alias = *id ? find_alias(export, id) : NULL;
    if (alias && alias->name) return alias->name;
    snprintf(room, NAME_BYTES, "%s", id);
    if (!*id || alias) return room;
    if (strcmp(id, export->last_id) == 0) {
        snprintf(room, NAME_BYTES, "%s", export->last_name);
        return room;
    }
    CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
    Ulid ulid;
    if (!ulid_parse(slice_of(id), &ulid) || get(export, id, &reply)) return room;
    snprintf(room, NAME_BYTES, "%s", name_of(reply->message));
    return room;
}

// The first entry that a compaction keeps: the one after its cut-off on the way to it. "" if it
// keeps nothing.
static int find_first_kept(const Export *export, const Message *message, char out[NAME_BYTES])
{
    const Marker *marker = message->marker;
    char at[STORE_ID_BYTES], kept[STORE_ID_BYTES] = "";
    snprintf(out, NAME_BYTES, "%s", marker->first_kept_external);
    if (*out || (!marker->keep_all && !*marker->before_message_id)) return STATUS_OK;
    snprintf(at, sizeof(at), "%s", message->parent_id);
    for (size_t i = 0; i < WALK_COUNT_MAX && *at; i++) {
        if (strcmp(at, marker->before_message_id) == 0) break;
        CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
        if (get(export, at, &reply)) return export->call->out_status->code;
        snprintf(kept, sizeof(kept), "%s", at);
        snprintf(at, sizeof(at), "%s", reply->message->parent_id);
    }
    char room[NAME_BYTES];
    snprintf(out, NAME_BYTES, "%s", find_name(export, kept, room));
    return STATUS_OK;
}

static void end_line(Export *export)
{
    if (export->is_line_open) putc('\n', export->out);
    export->is_line_open = false;
}

// What an entry's own line calls it. One of several with one id is told from the others by the
// store's name for it.
static const char *name_in_line(const Message *message, const PiOriginal *original)
{
    size_t size = strlen(original->id);
    const char *name = name_of(message);
    bool is_shared = strncmp(name, original->id, size) == 0 && name[size] == '@';
    return size > 0 && !is_shared && is_pi(message->external) ? original->id : name;
}

// Writes an entry from what the store has of it.
static int write_entry(Export *export, const Message *message, const char *name)
{
    char parent[NAME_BYTES], target[NAME_BYTES], first_kept[NAME_BYTES] = "";
    int code = message->marker ? find_first_kept(export, message, first_kept) : STATUS_OK;
    if (code) return code;
    PiNames names = {name, find_name(export, message->parent_id, parent),
                     find_name(export, message->target_id, target),
                     *first_kept ? first_kept : name}; // itself: nothing is kept
    end_line(export);
    if (pi_write_entry(export->out, message, &names)) return out_of_memory(export);
    code = check_output(export);
    return code ? code : note_name(export, message, name);
}

// Puts the end of the line before bytes that are to be written. The first entry's begin with that
// of the header's line, which is there already if its parent came late: returns them without it.
static Slice begin_bytes(Export *export, Slice bytes)
{
    size_t at = 0;
    while (at < bytes.size && memchr(" \t\r", bytes.bytes[at], 3))
        at++;
    bool has_line_end = at < bytes.size && bytes.bytes[at] == '\n';
    if (has_line_end && !export->is_line_open) return slice_skip(bytes, at + 1);
    if (!has_line_end) end_line(export);
    return bytes;
}

// Writes an entry's line with the ids that its place here gives it, and what stands around the line
// if the file is still the one that it stood in.
static int write_again(Export *export, const Message *message, const PiOriginal *original)
{
    char parent[NAME_BYTES], first_kept[NAME_BYTES] = "";
    bool is_old = message->marker && export->version < 2;
    int code = is_old ? find_first_kept(export, message, first_kept) : STATUS_OK;
    if (code) return code;
    const char *name = name_in_line(message, original);
    PiNames names = {name, find_name(export, message->parent_id, parent), "", first_kept};
    Slice before = {NULL, 0};
    if (export->is_verbatim) before = original->before;
    before = begin_bytes(export, before);
    if (before.size > 0) fwrite(before.bytes, 1, before.size, export->out);
    pi_write_again(export->out, original->line, &names, export->version);
    if (export->is_verbatim) {
        fwrite(original->after.bytes, 1, original->after.size, export->out);
    }
    export->is_line_open = !export->is_verbatim || original->after.size == 0 ||
                           original->after.bytes[original->after.size - 1] != '\n';
    code = check_output(export);
    return code ? code : note_name(export, message, name);
}

static int write_bytes(Export *export, const Message *message, Slice bytes, const char *name)
{
    bytes = begin_bytes(export, bytes);
    if (bytes.size == 0) return note_name(export, message, name);
    fwrite(bytes.bytes, 1, bytes.size, export->out);
    export->is_line_open = bytes.bytes[bytes.size - 1] != '\n';
    int code = check_output(export);
    return code ? code : note_name(export, message, name);
}

// An entry that was purged has lost its name in the file: the lines of its children say it still.
static bool is_parent_renamed(const Export *export, const Message *message,
                              const PiOriginal *original)
{
    const Alias *parent = *message->parent_id ? find_alias(export, message->parent_id) : NULL;
    return parent && !parent->name && strcmp(original->parent_id, parent->id) != 0;
}

static int write_message(Export *export, const Message *message, const Original *original)
{
    Slice bytes = {NULL, 0};
    if (original) bytes = slice(original->content.data, original->content.len);
    PiOriginal parts;
    arena_reset(&export->arena, LINE_ARENA_BYTES);
    bool has_line = pi_original_read(&export->arena, bytes, &parts);
    const char *name = has_line ? name_in_line(message, &parts) : name_of(message);
    bool is_written = message->deleted_at || bytes.size == 0 || (!has_line && !export->is_verbatim);
    if (is_written) return write_entry(export, message, name);
    if (has_line && (!export->is_verbatim || is_parent_renamed(export, message, &parts))) {
        return write_again(export, message, &parts);
    }
    return write_bytes(export, message, bytes, has_line && *parts.id ? parts.id : name);
}

// From now on originals are those of another session.
static void use_originals(Export *export, const Session *session, bool is_verbatim)
{
    reply_freep(&export->originals);
    export->originals = NULL;
    export->next = 0;
    export->is_verbatim = is_verbatim;
    export->version = version_of(session);
    snprintf(export->source, sizeof(export->source), "%s", session->id);
}

static int next_page(Export *export)
{
    ListOriginalsRequest request = LIST_ORIGINALS_REQUEST__INIT;
    ListOriginalsResponse *page = NULL;
    request.session_id = export->source;
    if (export->originals) request.cursor = export->originals->next_cursor;
    if (tine_list_originals(export->tine, export->call, &request, &page)) {
        return export->call->out_status->code;
    }
    reply_freep(&export->originals);
    export->originals = page;
    export->next = 0;
    return STATUS_OK;
}

// The original of an entry, if it has one: they come in the same order.
static int find_original(Export *export, const char *id, const Original **out)
{
    *out = NULL;
    while (*export->source) {
        if (!export->originals || export->next == export->originals->n_originals) {
            if (export->originals && !*export->originals->next_cursor) break;
            int code = next_page(export);
            if (code) return code;
            continue;
        }
        const Original *original = export->originals->originals[export->next];
        int order = strcmp(original->message_id, id);
        if (order > 0) break;
        export->next++;
        if (order == 0) {
            *out = original;
            break;
        }
    }
    return STATUS_OK;
}

static int write_one(Export *export, const Message *message)
{
    const Original *original = NULL;
    int code = find_original(export, message->id, &original);
    if (!code) code = write_message(export, message, original);
    *export->bytes_done +=
        original ? original->content.len : protobuf_c_message_get_packed_size(&message->base);
    return code;
}

typedef struct Path {
    char (*ids)[STORE_ID_BYTES]; // from its end to its beginning; owned
    size_t count, capacity;
} Path;

static int path_add(const Export *export, Path *path, const char *id)
{
    if (path->count == WALK_COUNT_MAX) {
        return fail(export, STATUS_RESOURCE_EXHAUSTED, "the fork inherits more than %d entries",
                    WALK_COUNT_MAX);
    }
    if (path->count == path->capacity) {
        size_t capacity = path->capacity > 0 ? path->capacity * 2 : 256;
        char(*ids)[STORE_ID_BYTES] = realloc(path->ids, capacity * sizeof(*ids));
        if (!ids) return out_of_memory(export);
        path->ids = ids;
        path->capacity = capacity;
    }
    snprintf(path->ids[path->count++], STORE_ID_BYTES, "%s", id);
    return STATUS_OK;
}

static int find_path(const Export *export, Path *path)
{
    char at[STORE_ID_BYTES];
    int code = STATUS_OK;
    snprintf(at, sizeof(at), "%s", export->session->fork_message_id);
    while (*at && !code) {
        CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
        if (get(export, at, &reply)) return export->call->out_status->code;
        code = path_add(export, path, at);
        snprintf(at, sizeof(at), "%s", reply->message->parent_id);
    }
    return code;
}

// The session that an inherited entry belongs to has its original; one that was purged has none.
static int use_owner(Export *export, const char *session)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
    if (strcmp(export->owner, session) == 0) return STATUS_OK;
    snprintf(export->owner, sizeof(export->owner), "%s", session);
    *export->source = '\0';
    export->is_verbatim = false;
    request.session_id = (char *)(uintptr_t)session;
    int status = tine_get_session(export->tine, export->call, &request, &reply);
    if (!status) use_originals(export, reply->session, /* is_verbatim= */ false);
    return status && status != STATUS_NOT_FOUND ? status : STATUS_OK;
}

// What a fork inherited is written out, for a file of pi's stands for itself: all of it, for a
// branch that was left hangs below what the history does not show any more.
static int write_inherited(Export *export)
{
    Path path = {.ids = NULL};
    int code = find_path(export, &path);
    for (size_t i = path.count; i > 0 && !code; i--) {
        CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
        if (get(export, path.ids[i - 1], &reply)) {
            code = export->call->out_status->code;
            break;
        }
        code = use_owner(export, reply->message->session_id);
        if (!code) code = write_one(export, reply->message);
    }
    free(path.ids);
    return code;
}

static int write_log(Export *export)
{
    ListMessagesRequest request = LIST_MESSAGES_REQUEST__INIT;
    CLEANUP(reply_freep) ListMessagesResponse *reply = NULL;
    request.session_id = export->session->id;
    request.deleted = DELETED_FILTER_INCLUDE;
    int code = STATUS_OK;
    do {
        ListMessagesResponse *next = NULL;
        if (tine_list_messages(export->tine, export->call, &request, &next)) {
            return export->call->out_status->code;
        }
        reply_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_messages && !code; i++) {
            code = write_one(export, reply->messages[i]);
        }
        request.cursor = reply->next_cursor;
    } while (!code && *request.cursor);
    return code;
}

// A file of version 1 says nothing of branches: it comes back as it was only if it is all there is.
static int begin_log(Export *export)
{
    const Session *session = export->session;
    bool has_lines = is_pi(session->external);
    use_originals(export, session, /* is_verbatim= */ has_lines);
    if (!has_lines) *export->source = '\0';
    if (!has_lines || export->version > 1) return STATUS_OK;
    uint64_t count = 0;
    int code = STATUS_OK;
    do {
        code = next_page(export);
        if (!code) count += export->originals->n_originals;
    } while (!code && *export->originals->next_cursor);
    use_originals(export, session, /* is_verbatim= */ count == session->next_sequence);
    return code;
}

// The header as it was, and if there is nothing else, what followed it.
static void write_header(Export *export)
{
    const Session *session = export->session;
    Slice header = slice_of(session->data_json);
    if (!is_pi(session->external) || !export->is_verbatim || header.size == 0) {
        pi_write_header(export->out, session, export->is_verbatim ? export->version : 3);
        export->is_line_open = true;
        return;
    }
    while (session->next_sequence > 0 && strchr(" \t\r\n", header.bytes[header.size - 1])) {
        header.size--;
    }
    fwrite(header.bytes, 1, header.size, export->out);
    export->is_line_open = session->next_sequence > 0;
}

static int write_session(Export *export)
{
    const Session *session = export->session;
    int code = begin_log(export);
    if (code) return code;
    write_header(export);
    if (*session->fork_message_id) {
        code = write_inherited(export);
        if (!code) code = begin_log(export);
    }
    if (!code) code = write_log(export);
    bool is_original = export->is_verbatim && session->next_sequence > 0;
    if (!code && !is_original) end_line(export);
    return code ? code : check_output(export);
}

int pi_export(Tine *tine, const TineCallOptions *call, const char *session, FILE *out,
              atomic_uint_fast64_t *bytes_done)
{
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *reply = NULL;
    request.session_id = (char *)(uintptr_t)session;
    int code = tine_get_session(tine, call, &request, &reply);
    if (code) return code;
    Export export = {.tine = tine,
                     .call = call,
                     .out = out,
                     .session = reply->session,
                     .bytes_done = bytes_done};
    arena_init(&export.arena, LINE_ARENA_BYTES);
    code = write_session(&export);
    reply_freep(&export.originals);
    arena_free(&export.arena);
    for (size_t i = 0; i < export.alias_count; i++)
        free(export.aliases[i].name);
    free(export.aliases);
    return code;
}
