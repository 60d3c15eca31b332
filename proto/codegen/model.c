// The model. Building it checks for names that collide in C: enum values lose their prefix, field
// constants do not show where the message's name ends, and two RPCs that differ only in capitals
// would have the same handler.

#include "model.h"
#include "identifier.h"
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static FileSet *files_read(const char *path);
static bool types_build(Model *model, Options *options);
static void messages_add(Model *model, Options *options, const Type *parent, size_t count,
                         MessageDescriptor **messages);
static void enums_add(Model *model, Options *options, const Type *parent, size_t count,
                      EnumDescriptor **enums);
static Type *type_add(Model *model, Options *options, const Type *parent, const char *name);
static bool types_check(const Model *model);
static bool values_check(const Model *model);
static bool fields_check(const Model *model);
static bool rpcs_build(Model *model);
static bool rpc_add(Model *model, const File *file, int service_index, int method_index);
static const Type *message_find(const Model *model, const char *name);
static char *summary_find(const File *file, int service_index, int method_index);
static char *first_sentence(const char *text);
static int rpc_compare(const void *a, const void *b);
static bool has_field(const Type *type, const char *name);
static bool traits_add(Model *model, const Options *options);
static bool rpcs_check(const Model *model);
static void comments_drop(FileSet *files);
static Name name_of(const char *text);
static void name_free(Name *name);

bool model_open(Model *model, Options *options)
{
    *model = (Model){.service = options->service};

    const char *dot = strrchr(options->service, '.');
    if (!dot) {
        fprintf(stderr, "tine-codegen: the service '%s' has no package\n", options->service);
        return false;
    }
    model->package = text_format("%.*s", (int)(dot - options->service), options->service);

    model->files = files_read(options->descriptor_set_path);
    if (!model->files) return false;
    if (!types_build(model, options) || !types_check(model) || !values_check(model)) return false;
    if (!fields_check(model)) return false;
    if (!rpcs_build(model) || !traits_add(model, options) || !rpcs_check(model)) return false;

    comments_drop(model->files);
    return true;
}

void model_close(Model *model)
{
    for (size_t i = 0; i < model->type_count; i++) {
        free(model->types[i].proto_name);
        free(model->types[i].alias_path);
        name_free(&model->types[i].full);
        name_free(&model->types[i].alias);
    }
    for (size_t i = 0; i < model->rpc_count; i++) {
        free(model->rpcs[i].path);
        free(model->rpcs[i].summary);
        name_free(&model->rpcs[i].name);
    }
    free(model->types);
    free(model->rpcs);
    free(model->package);
    if (model->files) google__protobuf__file_descriptor_set__free_unpacked(model->files, NULL);
    *model = (Model){0};
}

bool model_has_file(const Model *model, const File *file)
{
    return file->package && strcmp(file->package, model->package) == 0;
}

static FileSet *files_read(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "tine-codegen: cannot read %s: %s\n", path, strerror(errno));
        return NULL;
    }
    uint8_t *bytes = NULL;
    size_t size = 0;
    size_t count;
    do {
        enum { STEP = 65536 };
        bytes = memory_resize(bytes, size + STEP, 1);
        count = fread(bytes + size, 1, STEP, in);
        size += count;
    } while (count > 0);
    bool is_read = !ferror(in);
    fclose(in);

    FileSet *files = NULL;
    if (is_read) files = google__protobuf__file_descriptor_set__unpack(NULL, size, bytes);
    free(bytes);
    if (!files) {
        fprintf(stderr, "tine-codegen: %s is not a descriptor set, or is cut off\n", path);
    }
    return files;
}

static bool types_build(Model *model, Options *options)
{
    for (size_t i = 0; i < model->files->n_file; i++) {
        const File *file = model->files->file[i];
        if (!model_has_file(model, file)) continue;
        enums_add(model, options, NULL, file->n_enum_type, file->enum_type);
        messages_add(model, options, NULL, file->n_message_type, file->message_type);
    }

    for (size_t i = 0; i < options->rename_count; i++) {
        if (options->renames[i].is_used) continue;
        fprintf(stderr, "tine-codegen: --rename %s=%s: package %s has no type of that name\n",
                options->renames[i].from, options->renames[i].to, model->package);
        return false;
    }
    return true;
}

static void messages_add(Model *model, Options *options, const Type *parent, size_t count,
                         MessageDescriptor **messages)
{
    for (size_t i = 0; i < count; i++) {
        Type *type = type_add(model, options, parent, messages[i]->name);
        type->message = messages[i];
        // Adding nested types moves the array, so they get a copy of their parent.
        Type copy = *type;
        enums_add(model, options, &copy, messages[i]->n_enum_type, messages[i]->enum_type);
        messages_add(model, options, &copy, messages[i]->n_nested_type, messages[i]->nested_type);
    }
}

static void enums_add(Model *model, Options *options, const Type *parent, size_t count,
                      EnumDescriptor **enums)
{
    for (size_t i = 0; i < count; i++) {
        type_add(model, options, parent, enums[i]->name)->enumeration = enums[i];
    }
}

// Returns the new type. The pointer is valid until the next type is added.
static Type *type_add(Model *model, Options *options, const Type *parent, const char *name)
{
    model->types = memory_resize(model->types, model->type_count + 1, sizeof *model->types);
    Type *type = &model->types[model->type_count++];
    *type = (Type){
        .proto_name = text_format("%s.%s", parent ? parent->proto_name : model->package, name),
    };
    const char *relative = type->proto_name + strlen(model->package) + 1;
    for (size_t i = 0; i < options->rename_count; i++) {
        Rename *rename = &options->renames[i];
        if (strcmp(rename->from, relative) != 0) continue;
        rename->is_used = true;
        type->alias_path = text_format("%s", rename->to);
    }
    if (!type->alias_path) {
        type->alias_path =
            parent ? text_format("%s.%s", parent->alias_path, name) : text_format("%s", name);
    }
    type->full = name_of(type->proto_name);
    type->alias = name_of(type->alias_path);
    return type;
}

static bool types_check(const Model *model)
{
    for (size_t i = 0; i < model->type_count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(model->types[i].alias.upper, model->types[j].alias.upper) != 0) continue;
            fprintf(stderr, "tine-codegen: %s and %s would both be %s in C\n",
                    model->types[j].proto_name, model->types[i].proto_name,
                    model->types[i].alias.type);
            return false;
        }
    }
    return true;
}

static bool values_check(const Model *model)
{
    typedef struct Value {
        const char *name;
        const Type *type;
    } Value;
    Value *values = NULL;
    size_t count = 0;
    bool is_good = true;

    for (size_t i = 0; i < model->type_count; i++) {
        const EnumDescriptor *enumeration = model->types[i].enumeration;
        for (size_t v = 0; enumeration && v < enumeration->n_value; v++) {
            values = memory_resize(values, count + 1, sizeof *values);
            values[count] = (Value){enumeration->value[v]->name, &model->types[i]};
            for (size_t j = 0; is_good && j < count; j++) {
                if (strcmp(values[j].name, values[count].name) != 0) continue;
                fprintf(stderr, "tine-codegen: the enums %s and %s both have a value %s\n",
                        values[j].type->proto_name, values[count].type->proto_name, values[j].name);
                is_good = false;
            }
            count++;
        }
    }
    free(values);
    return is_good;
}

char *field_constant(const Type *type, size_t field_index)
{
    char *field = identifier_upper(type->message->field[field_index]->name);
    char *name = text_format("FIELD_%s_%s", type->alias.upper, field);
    free(field);
    return name;
}

// Checks that no two fields have the same constant.
static bool fields_check(const Model *model)
{
    char **names = NULL;
    size_t count = 0;
    bool is_good = true;
    for (size_t i = 0; i < model->type_count; i++) {
        const MessageDescriptor *message = model->types[i].message;
        for (size_t f = 0; message && f < message->n_field; f++) {
            names = memory_resize(names, count + 1, sizeof *names);
            names[count] = field_constant(&model->types[i], f);
            for (size_t j = 0; is_good && j < count; j++) {
                if (strcmp(names[j], names[count]) != 0) continue;
                fprintf(stderr, "tine-codegen: %s.%s and another field would both be %s in C\n",
                        model->types[i].proto_name, message->field[f]->name, names[j]);
                is_good = false;
            }
            count++;
        }
    }
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return is_good;
}

static bool rpcs_build(Model *model)
{
    size_t package_length = strlen(model->package);
    for (size_t i = 0; i < model->files->n_file; i++) {
        const File *file = model->files->file[i];
        if (!model_has_file(model, file)) continue;
        for (size_t s = 0; s < file->n_service; s++) {
            if (strcmp(file->service[s]->name, model->service + package_length + 1) != 0) continue;
            for (size_t m = 0; m < file->service[s]->n_method; m++) {
                if (!rpc_add(model, file, (int)s, (int)m)) return false;
            }
            if (model->rpc_count > 0) {
                qsort(model->rpcs, model->rpc_count, sizeof *model->rpcs, rpc_compare);
                return true;
            }
            fprintf(stderr, "tine-codegen: the service %s has no call\n", model->service);
            return false;
        }
    }
    fprintf(stderr, "tine-codegen: the descriptor set has no service %s\n", model->service);
    return false;
}

static bool rpc_add(Model *model, const File *file, int service_index, int method_index)
{
    const Google__Protobuf__MethodDescriptorProto *method =
        file->service[service_index]->method[method_index];
    if (method->client_streaming) {
        fprintf(stderr, "tine-codegen: %s.%s: no client can stream its requests\n", model->service,
                method->name);
        return false;
    }
    const Type *request = message_find(model, method->input_type);
    const Type *response = message_find(model, method->output_type);
    if (!request || !response) {
        fprintf(stderr, "tine-codegen: %s.%s: %s is not a message of package %s\n", model->service,
                method->name, (request ? method->output_type : method->input_type) + 1,
                model->package);
        return false;
    }

    model->rpcs = memory_resize(model->rpcs, model->rpc_count + 1, sizeof *model->rpcs);
    model->rpcs[model->rpc_count++] = (Rpc){
        .path = text_format("/%s/%s", model->service, method->name),
        .method = method->name,
        .summary = summary_find(file, service_index, method_index),
        .name = name_of(method->name),
        .request = request,
        .response = response,
        .is_write = !method->options ||
                    method->options->idempotency_level !=
                        GOOGLE__PROTOBUF__METHOD_OPTIONS__IDEMPOTENCY_LEVEL__NO_SIDE_EFFECTS,
        .is_stream = method->server_streaming,
        .waits = has_field(request, "wait_ms"),
        .has_pages = has_field(request, "cursor") && has_field(response, "next_cursor"),
    };
    return true;
}

static bool has_field(const Type *type, const char *name)
{
    for (size_t i = 0; i < type->message->n_field; i++) {
        if (strcmp(type->message->field[i]->name, name) == 0) return true;
    }
    return false;
}

static bool traits_add(Model *model, const Options *options)
{
    for (size_t t = 0; t < options->trait_count; t++) {
        const MethodTrait *given = &options->traits[t];
        bool is_found = false;
        for (size_t i = 0; i < model->rpc_count; i++) {
            Rpc *rpc = &model->rpcs[i];
            if (strcmp(rpc->method, given->method) != 0) continue;
            is_found = true;
            rpc->is_broadcast |= given->trait == TRAIT_BROADCAST;
            rpc->needs_server |= given->trait == TRAIT_NEEDS_SERVER;
        }
        if (is_found) continue;
        fprintf(stderr, "tine-codegen: the service %s has no call %s\n", model->service,
                given->method);
        return false;
    }
    return true;
}

// Finds a message by its name in descriptors, which begins with a dot.
static const Type *message_find(const Model *model, const char *name)
{
    for (size_t i = 0; i < model->type_count; i++) {
        const Type *type = &model->types[i];
        if (type->message && strcmp(type->proto_name, name + 1) == 0) return type;
    }
    return NULL;
}

static int32_t field_number(const ProtobufCMessageDescriptor *type, const char *name)
{
    return (int32_t)protobuf_c_message_descriptor_get_field_by_name(type, name)->id;
}

static char *summary_find(const File *file, int service_index, int method_index)
{
    // SourceCodeInfo names a place by a path of field numbers and indexes.
    const int32_t path[] = {
        field_number(&google__protobuf__file_descriptor_proto__descriptor, "service"),
        service_index,
        field_number(&google__protobuf__service_descriptor_proto__descriptor, "method"),
        method_index,
    };
    if (!file->source_code_info) return NULL;
    for (size_t i = 0; i < file->source_code_info->n_location; i++) {
        const Google__Protobuf__SourceCodeInfo__Location *location =
            file->source_code_info->location[i];
        if (location->n_path != 4 || memcmp(location->path, path, sizeof path) != 0) continue;
        if (!location->leading_comments) return NULL;

        return first_sentence(location->leading_comments);
    }
    return NULL;
}

// Returns the first sentence in one line, or NULL if there is none.
static char *first_sentence(const char *text)
{
    text += strspn(text, " \n");
    size_t length = 0;
    while (text[length] && strncmp(text + length, "\n\n", 2) != 0) {
        bool is_end = text[length] == '.' && strchr(" \n", text[length + 1]);
        length++;
        if (is_end) break;
    }
    if (length == 0) return NULL;

    char *sentence = text_format("%.*s", (int)length, text);
    char *end = sentence;
    for (const char *c = sentence; *c; c++) {
        bool is_space = *c == ' ' || *c == '\n';
        if (is_space && end[-1] == ' ') continue;
        *end++ = is_space ? ' ' : *c;
    }
    *end = '\0';
    return sentence;
}

static int rpc_compare(const void *a, const void *b)
{
    return strcmp(((const Rpc *)a)->path, ((const Rpc *)b)->path);
}

static bool rpcs_check(const Model *model)
{
    for (size_t i = 0; i < model->rpc_count; i++) {
        const Rpc *rpc = &model->rpcs[i];
        if (strcmp(rpc->name.upper, "COUNT") == 0) {
            fprintf(stderr, "tine-codegen: no call can be named %s: METHOD_COUNT is taken\n",
                    rpc->method);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (strcmp(model->rpcs[j].name.lower, rpc->name.lower) != 0) continue;
            fprintf(stderr, "tine-codegen: the calls %s and %s would have one handler, handle_%s\n",
                    model->rpcs[j].method, rpc->method, rpc->name.lower);
            return false;
        }
    }
    return true;
}

// Removes the comments. Clients get the descriptor set without them, because they are most of its
// bytes.
static void comments_drop(FileSet *files)
{
    for (size_t i = 0; i < files->n_file; i++) {
        File *file = files->file[i];
        if (!file->source_code_info) continue;
        google__protobuf__source_code_info__free_unpacked(file->source_code_info, NULL);
        file->source_code_info = NULL;
    }
}

static Name name_of(const char *text)
{
    return (Name){identifier_type(text), identifier_lower(text), identifier_upper(text)};
}

static void name_free(Name *name)
{
    free(name->type);
    free(name->lower);
    free(name->upper);
}
