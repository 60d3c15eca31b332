// Fuzzes dispatch: bytes of requests in, a well-formed reply out, no crash and no leak.
//
// An input is a run of requests, each behind a byte and a length of two bytes. The byte is a
// method's number, and the bytes are its body; past the methods the bytes are a whole envelope. The
// store is made anew every RUNS_PER_STORE inputs with a fixed seed and a fixed clock, so that the
// ids of what it is filled with are always the same and stand in the corpus.
//
//     TINE_FUZZ_SEED_DIR=tests/fuzz/corpus/dispatch dispatch_fuzz      writes the corpus's seeds

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "report/log.h"
#include "rpc/engine.h"
#include "wire/wire.h"

enum { RUNS_PER_STORE = 2000, MESSAGES = 4, SEED_DEPTH_MAX = 6 };

static Engine *engine;
static char directory[64];
static size_t runs;
static char session_id[ULID_TEXT_BYTES + 1];
static char message_id[ULID_TEXT_BYTES + 1];

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int64_t fixed_clock(void *context)
{
    (void)context;
    return INT64_C(1700000000000);
}

static void require(bool condition, const char *what)
{
    if (condition) return;
    fprintf(stderr, "dispatch_fuzz: %s\n", what);
    abort();
}

// Runs one request and returns its reply's body, which lives as long as `call`.
static Slice run(Rpc *call, Slice request)
{
    rpc_reset(call);
    call->request = request;
    engine_run(engine, call);
    Slice reply = buffer_slice(&call->reply);
    Response *response = tine__v1__response__unpack(NULL, reply.size, reply.bytes);
    require(response != NULL, "a reply is not a Response");
    bool is_ok = !response->status || response->status->code == 0;
    require(is_ok == (call->error == ERROR_NONE), "the reply's status is not the call's");
    tine__v1__response__free_unpacked(response, NULL);
    WireField field;
    return is_ok && wire_find(reply, 15, &field) ? field.bytes : (Slice){NULL, 0};
}

static Slice run_method(Rpc *call, size_t method, Slice body)
{
    Buffer request = {.bytes = NULL};
    Error error = buffer_reset(&request, 0);
    if (!error) error = wire_append_bytes(&request, 1, slice_of(METHODS[method].path));
    if (!error) error = wire_append_bytes(&request, 15, body);
    require(!error, "no memory for a request");
    Slice reply = run(call, buffer_slice(&request));
    buffer_free(&request);
    return reply;
}

static void take_id(Slice body, char out[ULID_TEXT_BYTES + 1])
{
    WireField record, id;
    require(wire_find(body, 1, &record) && wire_find(record.bytes, 1, &id), "no id in a reply");
    memcpy(out, id.bytes.bytes, ULID_TEXT_BYTES);
}

static void remove_directory(void)
{
    DIR *dir = opendir(directory);
    if (!dir) return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] != '.') (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    rmdir(directory);
}

static Slice pack(ProtobufCMessage *message, uint8_t *out)
{
    return slice(out, protobuf_c_message_pack(message, out));
}

static void fill_store(void)
{
    Rpc call;
    rpc_init(&call);
    uint8_t bytes[1024];
    ModelRef model = MODEL_REF__INIT;
    model.provider = "p";
    model.name = "m";
    NewSession session = NEW_SESSION__INIT;
    session.project_dir = "/p";
    session.model = &model;
    CreateSessionRequest create = CREATE_SESSION_REQUEST__INIT;
    create.session = &session;
    take_id(run_method(&call, METHOD_CREATE_SESSION, pack(&create.base, bytes)), session_id);

    NewMessage message = NEW_MESSAGE__INIT;
    message.role = ROLE_USER;
    AppendMessageRequest append = APPEND_MESSAGE_REQUEST__INIT;
    append.session_id = session_id;
    append.message = &message;
    for (int i = 0; i < MESSAGES; i++) {
        take_id(run_method(&call, METHOD_APPEND_MESSAGE, pack(&append.base, bytes)), message_id);
    }
    rpc_free(&call);
}

static void close_store(void)
{
    engine_close(engine);
    engine = NULL;
    remove_directory();
}

static void open_store(void)
{
    snprintf(directory, sizeof(directory), "/dev/shm/tine-fuzz-XXXXXX");
    require(mkdtemp(directory) != NULL, "no directory for the store");
    EngineOptions options = {
        .store = {.directory = directory,
                  .is_ephemeral = true,
                  .map_bytes = (size_t)1 << 30,
                  .clock = {fixed_clock, fixed_clock, NULL},
                  .random_seed = 1},
    };
    ErrorDetail detail = {{0}};
    require(engine_open(&options, &detail, &engine) == ERROR_NONE, detail.text);
    fill_store();
}

static char *seed_text(const char *field)
{
    if (strstr(field, "session_id") || strcmp(field, "parent_id") == 0) return session_id;
    if (strstr(field, "message_id") || strstr(field, "head_id")) return message_id;
    if (strstr(field, "memory_id")) return message_id;
    if (strcmp(field, "cursor") == 0 || strcmp(field, "instance_id") == 0) return "";
    if (strstr(field, "json")) return "{}";
    if (strcmp(field, "id_prefix") == 0) return "01HF";
    return "x";
}

// Fills every field of a message with something that makes sense for its name.
static ProtobufCMessage *seed_message(const ProtobufCMessageDescriptor *descriptor, int depth)
{
    ProtobufCMessage *message = calloc(1, descriptor->sizeof_message);
    require(message != NULL, "no memory");
    protobuf_c_message_init(descriptor, message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        void *member = (uint8_t *)message + field->offset;
        void *quantifier = (uint8_t *)message + field->quantifier_offset;
        bool is_repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) *(uint32_t *)quantifier = field->id;
        if (field->type == PROTOBUF_C_TYPE_STRING && !is_repeated) {
            *(char **)member = seed_text(field->name);
        } else if (field->type == PROTOBUF_C_TYPE_BOOL) {
            *(protobuf_c_boolean *)member = true;
        } else if (field->type == PROTOBUF_C_TYPE_INT64) {
            *(int64_t *)member = 1;
        } else if (field->type == PROTOBUF_C_TYPE_UINT32 && strcmp(field->name, "wait_ms") != 0) {
            *(uint32_t *)member = 1;
        } else if (field->type == PROTOBUF_C_TYPE_ENUM && !is_repeated) {
            *(int *)member = 1;
        } else if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth < SEED_DEPTH_MAX) {
            ProtobufCMessage *item = seed_message(field->descriptor, depth + 1);
            if (is_repeated) {
                ProtobufCMessage **items = calloc(1, sizeof(ProtobufCMessage *));
                require(items != NULL, "no memory");
                items[0] = item;
                *(ProtobufCMessage ***)member = items;
                *(size_t *)quantifier = 1;
            } else {
                *(ProtobufCMessage **)member = item;
            }
        }
    }
    return message;
}

static void write_seeds(const char *seed_directory)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        ProtobufCMessage *message = seed_message(METHODS[i].request, 0);
        uint8_t bytes[8192] = {(uint8_t)i};
        size_t size = protobuf_c_message_get_packed_size(message);
        require(size + 3 <= sizeof(bytes), "a seed is too large");
        bytes[1] = (uint8_t)(size >> 8);
        bytes[2] = (uint8_t)size;
        protobuf_c_message_pack(message, bytes + 3);
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", seed_directory, METHODS[i].name);
        FILE *file = fopen(path, "wb");
        require(file && fwrite(bytes, 1, size + 3, file) == size + 3, "cannot write a seed");
        fclose(file);
    }
    close_store();
    _exit(0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_configure(LOG_OFF, STDERR_FILENO);
    open_store();
    atexit(close_store);
    const char *seed_directory = getenv("TINE_FUZZ_SEED_DIR");
    if (seed_directory) write_seeds(seed_directory);
    return 0;
}

// wait_ms would make the fuzzer wait: only its absence is fuzzed here.
static bool waits(size_t method, Slice body)
{
    WireField field;
    return method == METHOD_LIST_EVENTS && wire_find(body, 5, &field);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (++runs % RUNS_PER_STORE == 0) {
        close_store();
        open_store();
    }
    Rpc call;
    rpc_init(&call);
    Slice rest = {data, size};
    while (rest.size >= 3) {
        size_t method = rest.bytes[0];
        size_t wanted = (size_t)rest.bytes[1] << 8 | rest.bytes[2];
        rest = slice_skip(rest, 3);
        Slice body = {rest.bytes, wanted < rest.size ? wanted : rest.size};
        rest = slice_skip(rest, body.size);
        if (method >= METHOD_COUNT) {
            bool may_wait = memmem(body.bytes, body.size, "ListEvents", 10) != NULL;
            if (!may_wait) (void)run(&call, body);
        } else if (!waits(method, body)) {
            (void)run_method(&call, method, body);
        }
    }
    rpc_free(&call);
    return 0;
}
