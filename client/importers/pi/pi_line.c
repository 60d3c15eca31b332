// Lines. What the file calls an entry is noted when its line is written, for the lines that name
// it.

#include "importers/pi/pi_line.h"

#include <string.h>

#include "importers/pi/pi_header.h"
#include "importers/pi/pi_original.h"
#include "importers/pi/pi_write.h"

enum { WALK_COUNT_MAX = 1000 * 1000, LINE_ARENA_BYTES = 64 * 1024 * 1024 };

// Returns what the file calls an entry. What is not an ID of the store is pi's own word already.
static const char *find_name(const PiExport *export, const char *id, char room[PI_ALIAS_BYTES])
{
    const PiAliases *aliases = &export->aliases;
    const PiAlias *alias = *id ? pi_aliases_find(aliases, id) : NULL;
    if (alias && alias->name) return alias->name;
    snprintf(room, PI_ALIAS_BYTES, "%s", id);
    if (!*id || alias) return room;
    if (strcmp(id, aliases->last_id) == 0) return aliases->last_name;
    CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
    Ulid ulid;
    if (!ulid_parse(slice_of(id), &ulid) || pi_export_get(export, id, &reply)) return room;
    snprintf(room, PI_ALIAS_BYTES, "%s", pi_alias_default(reply->message));
    return room;
}

static int note_name(PiExport *export, const Message *message, const char *name)
{
    int code = pi_export_check_output(export);
    if (code) return code;
    Error error = pi_aliases_note(&export->aliases, message, name);
    return error ? pi_export_fail_memory(export) : STATUS_OK;
}

// Finds the first entry that a compaction keeps: the one after its cut-off on the way to it. "" if
// it keeps nothing.
static int find_first_kept(const PiExport *export, const Message *message, char out[PI_ALIAS_BYTES])
{
    const Marker *marker = message->marker;
    char at[STORE_ID_BYTES], kept[STORE_ID_BYTES] = "", room[PI_ALIAS_BYTES];
    snprintf(out, PI_ALIAS_BYTES, "%s", marker->first_kept_external);
    if (*out || (!marker->keep_all && !*marker->before_message_id)) return STATUS_OK;
    snprintf(at, sizeof(at), "%s", message->parent_id);
    for (size_t i = 0; i < WALK_COUNT_MAX && *at; i++) {
        if (strcmp(at, marker->before_message_id) == 0) break;
        CLEANUP(reply_freep) GetMessageResponse *reply = NULL;
        if (pi_export_get(export, at, &reply)) return pi_export_fail_call(export);
        snprintf(kept, sizeof(kept), "%s", at);
        snprintf(at, sizeof(at), "%s", reply->message->parent_id);
    }
    snprintf(out, PI_ALIAS_BYTES, "%s", find_name(export, kept, room));
    return STATUS_OK;
}

void pi_line_end(PiExport *export)
{
    if (export->is_line_open) putc('\n', export->out);
    export->is_line_open = false;
}

// Returns what an entry's own line calls it. One of several entries with one ID is told from the
// others by the store's name for it.
static const char *name_in_line(const Message *message, const PiOriginal *original)
{
    size_t size = strlen(original->id);
    const char *name = pi_alias_default(message);
    bool is_shared = strncmp(name, original->id, size) == 0 && name[size] == '@';
    return size > 0 && !is_shared && pi_is_external(message->external) ? original->id : name;
}

// Writes a new line from what the store has of an entry.
static int write_new(PiExport *export, const Message *message, const char *name, const char *parent)
{
    char target[PI_ALIAS_BYTES], first_kept[PI_ALIAS_BYTES] = "";
    int code = message->marker ? find_first_kept(export, message, first_kept) : STATUS_OK;
    if (code) return code;
    PiNames names = {name, parent, find_name(export, message->target_id, target),
                     *first_kept ? first_kept : name}; // itself: nothing is kept
    pi_line_end(export);
    if (pi_write_entry(export->out, message, &names)) return pi_export_fail_memory(export);
    return pi_export_check_output(export);
}

// Ends the line before bytes that will be written. The original of the file's first entry begins
// with the end of the header's line: returns the bytes without it if that line has ended already.
static Slice begin_bytes(PiExport *export, Slice bytes)
{
    size_t at = 0;
    while (at < bytes.size && memchr(" \t\r", bytes.bytes[at], 3))
        at++;
    bool has_line_end = at < bytes.size && bytes.bytes[at] == '\n';
    if (has_line_end && !export->is_line_open) return slice_skip(bytes, at + 1);
    if (!has_line_end) pi_line_end(export);
    return bytes;
}

// Writes an entry's line with the IDs that its place here gives it, and, if the file is still the
// one that the line is from, what stands around the line.
static int write_again(PiExport *export, const Message *message, const PiOriginal *original)
{
    char parent[PI_ALIAS_BYTES], first_kept[PI_ALIAS_BYTES] = "";
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
    Slice after = original->after;
    if (export->is_verbatim) fwrite(after.bytes, 1, after.size, export->out);
    export->is_line_open =
        !export->is_verbatim || after.size == 0 || after.bytes[after.size - 1] != '\n';
    return note_name(export, message, name);
}

static int write_bytes(PiExport *export, const Message *message, Slice bytes, const char *name)
{
    bytes = begin_bytes(export, bytes);
    if (bytes.size > 0) {
        fwrite(bytes.bytes, 1, bytes.size, export->out);
        export->is_line_open = bytes.bytes[bytes.size - 1] != '\n';
    }
    return note_name(export, message, name);
}

// A purged entry has lost its name in the file, but the lines of its children still say it.
static bool is_parent_renamed(const PiExport *export, const Message *message,
                              const PiOriginal *original)
{
    const char *id = message->parent_id;
    const PiAlias *parent = *id ? pi_aliases_find(&export->aliases, id) : NULL;
    return parent && !parent->name && strcmp(original->parent_id, parent->id) != 0;
}

int pi_line_write(PiExport *export, const Message *message, const Original *original)
{
    char room[PI_ALIAS_BYTES];
    PiOriginal parts;
    Slice bytes = {NULL, 0};
    if (original) bytes = slice(original->content.data, original->content.len);
    arena_reset(&export->arena, LINE_ARENA_BYTES);
    bool has_line = pi_original_read(&export->arena, bytes, &parts);
    const char *name = has_line ? name_in_line(message, &parts) : pi_alias_default(message);
    bool is_new = message->deleted_at || bytes.size == 0 || (!has_line && !export->is_verbatim);
    if (is_new) {
        const char *parent = find_name(export, message->parent_id, room);
        int code = write_new(export, message, name, parent);
        return code ? code : note_name(export, message, name);
    }
    if (has_line && (!export->is_verbatim || is_parent_renamed(export, message, &parts))) {
        return write_again(export, message, &parts);
    }
    return write_bytes(export, message, bytes, has_line && *parts.id ? parts.id : name);
}

int pi_line_write_below(PiExport *export, const Message *message, const char *parent)
{
    return write_new(export, message, pi_alias_default(message), parent);
}

// Writes the header that the session came with; as one of version 3 if lines are written anew.
static void write_own_header(PiExport *export, Slice header)
{
    // What stands behind the header belongs to it only if there are no entries.
    bool has_entries = export->session->next_sequence > 0;
    while (has_entries && memchr(" \t\r\n", header.bytes[header.size - 1], 4))
        header.size--;
    export->is_line_open = has_entries;
    if (export->is_verbatim) {
        fwrite(header.bytes, 1, header.size, export->out);
    } else {
        pi_header_write_again(export->out, header);
    }
}

int pi_line_write_header(PiExport *export)
{
    const Session *session = export->session;
    Slice header = slice_of(session->data_json);
    if (pi_is_external(session->external) && header.size > 0) {
        write_own_header(export, header);
        return pi_export_check_output(export);
    }
    GetSessionRequest request = GET_SESSION_REQUEST__INIT;
    CLEANUP(reply_freep) GetSessionResponse *parent = NULL;
    request.session_id = session->parent_id;
    int status = STATUS_OK;
    if (*session->parent_id && !*session->source_parent) {
        status = tine_get_session(export->tine, export->call, &request, &parent);
    }
    if (status && status != STATUS_NOT_FOUND) return status; // it may be purged at this moment
    pi_header_write(export->out, session, parent ? parent->session : NULL,
                    export->is_verbatim ? export->version : 3);
    export->is_line_open = true;
    return pi_export_check_output(export);
}
