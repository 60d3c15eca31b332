// Imports the records of a session: entries, their originals, memories, todos.

#include <stdlib.h>
#include <string.h>

#include "import.h"

// Makes a NewMessage of a message: the fields that the server fills in are dropped. The others have
// the same numbers.
static NewMessage *new_message_of(Message *message, External *external)
{
    Message copy = *message;
    copy.id = copy.session_id = copy.parent_id = (char *)(uintptr_t) "";
    copy.sequence = 0;
    copy.deleted_at = 0;
    copy.external = external;
    size_t size = protobuf_c_message_get_packed_size(&copy.base);
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (!bytes) return NULL;
    protobuf_c_message_pack(&copy.base, bytes);
    ProtobufCMessage *new = protobuf_c_message_unpack(&new_message__descriptor, NULL, size, bytes);
    free(bytes);
    return (NewMessage *)new;
}

// Replaces a reference to an entry of the file by its ID in the store. Other references stay.
static bool map_field(const Import *import, char **field)
{
    char id[ID_BYTES];
    if (!**field || !*import_mapped(import, *field, id)) return true;
    char *copy = strdup(id);
    if (!copy) return false;
    free(*field);
    *field = copy;
    return true;
}

// Finds an entry by its external ID.
static int find_entry(Import *import, External *external, bool *out_found, bool *out_is_deleted)
{
    Cli *cli = import->cli;
    SessionExternal by = SESSION_EXTERNAL__INIT;
    GetMessageRequest request = GET_MESSAGE_REQUEST__INIT;
    CLEANUP(message_freep) GetMessageResponse *reply = NULL;
    by.session_id = import->id;
    by.external = external;
    request.by_case = TINE__V1__GET_MESSAGE_REQUEST__BY_SESSION_EXTERNAL;
    request.session_external = &by;
    *out_found = false;
    int status = tine_get_message(cli->tine, &cli->call, &request, &reply);
    if (status == STATUS_NOT_FOUND) return EXIT_OK;
    if (status) return import_fail_call(import);
    *out_found = true;
    *out_is_deleted = reply->message->deleted_at != 0;
    snprintf(import->last, sizeof(import->last), "%s", reply->message->id);
    return EXIT_OK;
}

// Finds the parent of an entry. An entry that was inherited from a session that is gone follows the
// entry before it in the file, and so does the first entry after those.
static int find_parent(const Import *import, const Message *message, char out[ID_BYTES])
{
    bool is_inherited = strcmp(message->session_id, import->session->id) != 0;
    if (!is_inherited && !*message->parent_id) {
        out[0] = '\0';
        return EXIT_OK;
    }
    import_mapped(import, message->parent_id, out);
    if (*out) return EXIT_OK;
    char parent[ID_BYTES];
    bool is_orphan = !*import_mapped(import, import->session->parent_id, parent);
    if (!is_inherited && !is_orphan) {
        return import_fail(import, "entry.parent_id: the file has no entry %s before this one",
                           message->parent_id);
    }
    snprintf(out, ID_BYTES, "%s", import->last);
    return EXIT_OK;
}

static int append(Import *import, Message *message, External *external)
{
    Cli *cli = import->cli;
    char parent[ID_BYTES];
    int code = find_parent(import, message, parent);
    if (code) return code;
    CLEANUP(message_freep) NewMessage *new = new_message_of(message, external);
    if (!new || !map_field(import, &new->target_id) || !map_field(import, &new->reply_to_id) ||
        !map_field(import, &new->call_id) ||
        (new->marker && !map_field(import, &new->marker->before_message_id))) {
        return cli_say(EXIT_FAILED, "out of memory");
    }
    AppendMessageRequest request = APPEND_MESSAGE_REQUEST__INIT;
    CLEANUP(message_freep) AppendMessageResponse *reply = NULL;
    request.session_id = import->id;
    request.message = new;
    request.parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID;
    request.parent_id = parent;
    if (tine_append_message(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    snprintf(import->last, sizeof(import->last), "%s", reply->receipt->id);
    return EXIT_OK;
}

static int delete_entry(Import *import)
{
    DeleteMessageRequest request = DELETE_MESSAGE_REQUEST__INIT;
    CLEANUP(message_freep) DeleteMessageResponse *reply = NULL;
    request.message_id = import->last;
    int status = tine_delete_message(import->cli->tine, &import->cli->call, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

int import_entry(Import *import, Message *message)
{
    External made, *external = import_external(message->external, &made, message->id);
    bool is_known = import->is_own, is_deleted = import->is_own;
    int code = EXIT_OK;
    if (import->is_own) {
        snprintf(import->last, sizeof(import->last), "%s", message->id);
    } else if (!import->is_new) {
        code = find_entry(import, external, &is_known, &is_deleted);
    }
    if (!code && !is_known) code = append(import, message, external);
    if (message->kind == MESSAGE_KIND_NAME) import->has_name = true;
    if (!code && message->deleted_at && !is_deleted) code = delete_entry(import);
    if (code) return code;
    if (id_map_put(&import->ids, message->id, import->last)) {
        return import_fail(import, "entry.id: '%s' is not an ID", message->id);
    }
    snprintf(import->file_last, sizeof(import->file_last), "%s", message->id);
    atomic_fetch_add(is_known ? &import->report->entries_known : &import->report->entries_new, 1);
    return EXIT_OK;
}

// An original that is there is replaced by the same bytes, unless another file was imported.
int import_original(Import *import, const Original *original)
{
    Cli *cli = import->cli;
    char id[ID_BYTES];
    if (import->is_own) return EXIT_OK;
    if (!*import_mapped(import, original->message_id, id)) {
        return import_fail(import, "original.message_id: the file has no entry %s before this line",
                           original->message_id);
    }
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    CLEANUP(message_freep) PutOriginalResponse *reply = NULL;
    request.message_id = id;
    request.content = original->content;
    int status = tine_put_original(cli->tine, &cli->call, &request, &reply);
    return status ? import_fail_call(import) : EXIT_OK;
}

static bool is_same_memory(const Memory *a, const Memory *b)
{
    return strcmp(a->content, b->content) == 0 && strcmp(a->title, b->title) == 0 &&
           strcmp(a->body, b->body) == 0 && strcmp(a->source, b->source) == 0 &&
           strcmp(a->path, b->path) == 0;
}

static int find_memory(Import *import, const Memory *memory, bool *out_found)
{
    Cli *cli = import->cli;
    ListSessionMemoriesRequest request = LIST_SESSION_MEMORIES_REQUEST__INIT;
    CLEANUP(message_freep) ListSessionMemoriesResponse *reply = NULL;
    request.session_id = import->id;
    *out_found = false;
    do {
        ListSessionMemoriesResponse *next = NULL;
        if (tine_list_session_memories(cli->tine, &cli->call, &request, &next)) {
            return import_fail_call(import);
        }
        message_freep(&reply);
        reply = next;
        for (size_t i = 0; i < reply->n_memories && !*out_found; i++) {
            *out_found = is_same_memory(reply->memories[i], memory);
        }
        request.cursor = reply->next_cursor;
    } while (*request.cursor && !*out_found);
    return EXIT_OK;
}

int import_memory(Import *import, const Memory *memory)
{
    Cli *cli = import->cli;
    bool is_known = false;
    if (import->is_own) return EXIT_OK;
    int code = import->is_new ? EXIT_OK : find_memory(import, memory, &is_known);
    if (code || is_known) return code;
    NewMemory new = NEW_MEMORY__INIT;
    RememberSessionMemoryRequest request = REMEMBER_SESSION_MEMORY_REQUEST__INIT;
    CLEANUP(message_freep) RememberSessionMemoryResponse *reply = NULL;
    new.scope = memory->scope;
    new.title = memory->title;
    new.body = memory->body;
    new.content = memory->content;
    new.source = memory->source;
    new.path = memory->path;
    request.session_id = import->id;
    request.memory = &new;
    if (tine_remember_session_memory(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    return EXIT_OK;
}

// An existing list stays: it may be newer than that of the file.
int import_todos(Import *import, const Todos *todos)
{
    Cli *cli = import->cli;
    if (import->is_own) return EXIT_OK;
    if (!import->is_new) {
        GetSessionTodosRequest request = GET_SESSION_TODOS_REQUEST__INIT;
        CLEANUP(message_freep) GetSessionTodosResponse *reply = NULL;
        request.session_id = import->id;
        if (tine_get_session_todos(cli->tine, &cli->call, &request, &reply)) {
            return import_fail_call(import);
        }
        if (reply->todos && reply->todos->updated_at) return EXIT_OK;
    }
    ReplaceSessionTodosRequest request = REPLACE_SESSION_TODOS_REQUEST__INIT;
    CLEANUP(message_freep) ReplaceSessionTodosResponse *reply = NULL;
    request.session_id = import->id;
    request.items = todos->items;
    request.n_items = todos->n_items;
    if (tine_replace_session_todos(cli->tine, &cli->call, &request, &reply)) {
        return import_fail_call(import);
    }
    return EXIT_OK;
}
