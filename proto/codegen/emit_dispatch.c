// Emits dispatch_table: the server's table with one row for each method. A row points at typed
// thunks, and these call handlers, so a method without a handler does not link. A stream has a row
// without functions, so that the server can say that it is a stream.

#include "emit.h"

static void emit_declarations(const Rpc *rpc, FILE *out);
static void emit_thunks(const Rpc *rpc, FILE *out);
static void emit_row(const Rpc *rpc, FILE *out);

void emit_dispatch_header(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs("\n// The table of methods that the server answers, and the handlers that it calls.\n\n"
          "#pragma once\n\n"
          "#include \"base/error.h\"\n"
          "#include \"names.h\"\n\n"
          "#include <stdbool.h>\n"
          "#include <stddef.h>\n\n"
          "typedef struct Rpc Rpc;\n\n"
          "typedef struct Method {\n"
          "    const char *path; // as gRPC spells it: \"/package.Service/Name\"\n"
          "    size_t path_bytes;\n"
          "    const char *name;\n"
          "    bool is_write;\n"
          "    bool is_stream; // the clients implement it: the server runs nothing\n"
          "    bool waits; // the request has a wait_ms: the server may hold it\n"
          "    bool is_broadcast; // stores nothing: its operation_id is not remembered\n"
          "    bool needs_server; // asks about the running server: no other process can answer\n"
          "    const ProtobufCMessageDescriptor *request;\n"
          "    const ProtobufCMessageDescriptor *response;\n"
          "    // Checks what needs no store; may fill in defaults. NULL for reads.\n"
          "    Error (*check)(Rpc *rpc, ProtobufCMessage *request);\n"
          "    // Runs the method. NULL for streams.\n"
          "    Error (*run)(Rpc *rpc, const ProtobufCMessage *request, "
          "ProtobufCMessage *response);\n"
          "} Method;\n\n"
          "// The rows of METHODS, which are sorted by path.\n"
          "enum MethodIndex {\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        fprintf(out, "    METHOD_%s,\n", model->rpcs[i].name.upper);
    }
    fputs("    METHOD_COUNT\n"
          "};\n\n"
          "extern const Method METHODS[METHOD_COUNT];\n\n"
          "// Returns NULL if there is no method with this path.\n"
          "const Method *method_find(const char *path, size_t path_bytes);\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        emit_declarations(&model->rpcs[i], out);
    }
}

void emit_dispatch_source(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs("\n#include \"dispatch_table.h\"\n\n"
          "#include <string.h>\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        emit_thunks(&model->rpcs[i], out);
    }
    fputs("\nconst Method METHODS[METHOD_COUNT] = {\n", out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        emit_row(&model->rpcs[i], out);
    }
    fputs("};\n\n"
          "const Method *method_find(const char *path, size_t path_bytes)\n"
          "{\n"
          "    size_t first = 0;\n"
          "    size_t end = METHOD_COUNT;\n"
          "    while (first < end) {\n"
          "        size_t middle = first + (end - first) / 2;\n"
          "        const Method *method = &METHODS[middle];\n"
          "        bool is_longer = path_bytes > method->path_bytes;\n"
          "        size_t common = is_longer ? method->path_bytes : path_bytes;\n"
          "        int order = memcmp(path, method->path, common);\n"
          "        if (order == 0 && path_bytes == method->path_bytes) return method;\n"
          "        if (order > 0 || (order == 0 && is_longer)) {\n"
          "            first = middle + 1;\n"
          "        } else {\n"
          "            end = middle;\n"
          "        }\n"
          "    }\n"
          "    return NULL;\n"
          "}\n",
          out);
}

static void emit_declarations(const Rpc *rpc, FILE *out)
{
    if (rpc->is_stream) return;
    fprintf(out, "\n// %s%s%s\n", rpc->method, rpc->summary ? ": " : ".",
            rpc->summary ? rpc->summary : "");
    fprintf(out,
            "MUST_USE Error handle_%s(Rpc *rpc, const %s *request,\n"
            "    %s *response);\n",
            rpc->name.lower, rpc->request->alias.type, rpc->response->alias.type);
    if (rpc->is_write) {
        fprintf(out, "MUST_USE Error check_%s(Rpc *rpc, %s *request);\n", rpc->name.lower,
                rpc->request->alias.type);
    }
}

static void emit_thunks(const Rpc *rpc, FILE *out)
{
    if (rpc->is_stream) return;
    if (rpc->is_write) {
        fprintf(out,
                "\nstatic Error thunk_check_%s(Rpc *rpc, ProtobufCMessage *request)\n"
                "{\n"
                "    return check_%s(rpc, (%s *)request);\n"
                "}\n",
                rpc->name.lower, rpc->name.lower, rpc->request->alias.type);
    }
    fprintf(out,
            "\nstatic Error thunk_run_%s(Rpc *rpc, const ProtobufCMessage *request,\n"
            "    ProtobufCMessage *response)\n"
            "{\n"
            "    return handle_%s(rpc, (const %s *)request,\n"
            "        (%s *)response);\n"
            "}\n",
            rpc->name.lower, rpc->name.lower, rpc->request->alias.type, rpc->response->alias.type);
}

static void emit_row(const Rpc *rpc, FILE *out)
{
    fprintf(out, "    [METHOD_%s] = {\n", rpc->name.upper);
    fprintf(out, "        .path = \"%s\",\n", rpc->path);
    fprintf(out, "        .path_bytes = sizeof \"%s\" - 1,\n", rpc->path);
    fprintf(out, "        .name = \"%s\",\n", rpc->method);
    fprintf(out, "        .is_write = %s,\n", rpc->is_write ? "true" : "false");
    if (rpc->is_stream) fputs("        .is_stream = true,\n", out);
    if (rpc->waits) fputs("        .waits = true,\n", out);
    if (rpc->is_broadcast) fputs("        .is_broadcast = true,\n", out);
    if (rpc->needs_server) fputs("        .needs_server = true,\n", out);
    fprintf(out, "        .request = &%s__descriptor,\n", rpc->request->alias.lower);
    fprintf(out, "        .response = &%s__descriptor,\n", rpc->response->alias.lower);
    if (!rpc->is_stream) {
        if (rpc->is_write) fprintf(out, "        .check = thunk_check_%s,\n", rpc->name.lower);
        fprintf(out, "        .run = thunk_run_%s,\n", rpc->name.lower);
    }
    fputs("    },\n", out);
}
