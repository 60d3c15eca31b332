// The model: one service and the types of its package, with all C names, as the emitters need them.

#pragma once

#include <google/protobuf/descriptor.pb-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { RENAME_COUNT_MAX = 32, TRAIT_COUNT_MAX = 32 };

typedef struct Rename {
    const char *from; // relative to the package: "Error", "Part.Text"
    const char *to;
    bool is_used;
} Rename;

// A trait that the contract does not show. The command line gives it to a method.
typedef enum Trait {
    TRAIT_BROADCAST,
    TRAIT_NEEDS_SERVER,
} Trait;

typedef struct MethodTrait {
    const char *method; // "BroadcastEvent"
    Trait trait;
} MethodTrait;

typedef struct Options {
    const char *descriptor_set_path;
    const char *service; // "tine.v1.StoreService"
    const char *out_directory;
    Rename renames[RENAME_COUNT_MAX];
    size_t rename_count;
    MethodTrait traits[TRAIT_COUNT_MAX];
    size_t trait_count;
} Options;

typedef Google__Protobuf__FileDescriptorSet FileSet;
typedef Google__Protobuf__FileDescriptorProto File;
typedef Google__Protobuf__DescriptorProto MessageDescriptor;
typedef Google__Protobuf__EnumDescriptorProto EnumDescriptor;

// The three spellings of one C name: RenameSession, rename_session, RENAME_SESSION.
typedef struct Name {
    char *type;
    char *lower;
    char *upper;
} Name;

typedef struct Type {
    char *proto_name;                 // "tine.v1.Part.Text"
    char *alias_path;                 // the alias with dots: "Part.Text"
    Name full;                        // as protobuf-c has it: Tine__V1__Part__Text
    Name alias;                       // in names.h: Part__Text
    const MessageDescriptor *message; // NULL for an enum
    const EnumDescriptor *enumeration;
} Type;

typedef struct Rpc {
    char *path;         // "/tine.v1.StoreService/RenameSession"
    const char *method; // "RenameSession"
    char *summary;      // the first sentence of its comment, or NULL
    Name name;
    const Type *request;
    const Type *response;
    bool is_write;
    bool is_stream; // clients implement it with other calls: the server has no handler for it
    bool waits;     // the request has a wait_ms: the server may hold the call
    bool has_pages; // the request has a cursor, the response a next_cursor
    bool is_broadcast;
    bool needs_server;
} Rpc;

typedef struct Model {
    FileSet *files; // without comments
    const char *service;
    char *package;
    Type *types; // of the service's package, in the order of the files
    size_t type_count;
    Rpc *rpcs; // sorted by path
    size_t rpc_count;
} Model;

// Reads the descriptor set and builds the model. Returns false after printing why to stderr. The
// caller closes `model` in both cases. It borrows from `options`.
bool model_open(Model *model, Options *options);
void model_close(Model *model);

// Returns the C name of a field's number: FIELD_MESSAGE_PARENT_ID. The caller frees it.
char *field_constant(const Type *type, size_t field_index);

// Returns whether the file belongs to the service's package.
bool model_has_file(const Model *model, const File *file);
