// tine_calls: the C client's typed calls. They show protobuf-c's full names: a public header must
// not claim names as plain as `Session`.

#include "emit.h"

static void emit_signature(const Rpc *rpc, FILE *out);
static void emit_is_read(const Model *model, FILE *out);
static void emit_is_stream(const Model *model, FILE *out);

void emit_calls_header(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs(
        "\n// One function a call. Each returns the gRPC code, 0 when all went well; then\n"
        "// `*out_response` is the caller's, who frees it with protobuf_c_message_free_unpacked.\n"
        "// Otherwise it is left as it was. `request` and `options` (may be NULL) are borrowed\n"
        "// until the call returns.\n\n"
        "#pragma once\n\n"
        "#include \"tine.h\"\n\n",
        out);
    emit_includes(model, out);
    fputs(
        "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
        "\n// Whether the method with this path only reads. False for one that is not known here.\n"
        "bool tine_method_is_read(const char *path);\n"
        "\n// Whether it is a stream, which the channel puts together: there is no call of it.\n"
        "bool tine_method_is_stream(const char *path);\n",
        out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        const Rpc *rpc = &model->rpcs[i];
        if (rpc->is_stream) continue;
        fprintf(out, "\n// %s%s%s\n", rpc->method, rpc->summary ? ": " : ".",
                rpc->summary ? rpc->summary : "");
        emit_signature(rpc, out);
        fputs(";\n", out);
    }
    fputs("\n#ifdef __cplusplus\n}\n#endif\n", out);
}

void emit_calls_source(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs("\n#include \"tine_calls.h\"\n"
          "\n#include <string.h>\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        const Rpc *rpc = &model->rpcs[i];
        if (rpc->is_stream) continue;
        fputs("\n", out);
        emit_signature(rpc, out);
        fprintf(out,
                "\n{\n"
                "    ProtobufCMessage *response = NULL;\n"
                "    int code = tine_call(tine, options, \"%s\", &request->base,\n"
                "        &%s__descriptor, &response);\n"
                "    if (code == 0) *out_response = (%s *)response;\n"
                "    return code;\n"
                "}\n",
                rpc->path, rpc->response->full.lower, rpc->response->full.type);
    }
    emit_is_read(model, out);
    emit_is_stream(model, out);
}

// The first, empty path keeps the array from having no element.
static void emit_is_read(const Model *model, FILE *out)
{
    fputs("\nstatic const char *const READS[] = {\n    \"\",\n", out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        if (!model->rpcs[i].is_write) fprintf(out, "    \"%s\",\n", model->rpcs[i].path);
    }
    fputs("};\n\n"
          "bool tine_method_is_read(const char *path)\n"
          "{\n"
          "    size_t first = 0;\n"
          "    size_t end = sizeof READS / sizeof *READS;\n"
          "    while (first < end) {\n"
          "        size_t middle = first + (end - first) / 2;\n"
          "        int order = strcmp(path, READS[middle]);\n"
          "        if (order == 0) return *path != '\\0';\n"
          "        if (order > 0) {\n"
          "            first = middle + 1;\n"
          "        } else {\n"
          "            end = middle;\n"
          "        }\n"
          "    }\n"
          "    return false;\n"
          "}\n",
          out);
}

// Streams are few: one after the other.
static void emit_is_stream(const Model *model, FILE *out)
{
    fputs("\nbool tine_method_is_stream(const char *path)\n"
          "{\n"
          "    (void)path; // there may be none\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        if (!model->rpcs[i].is_stream) continue;
        fprintf(out, "    if (strcmp(path, \"%s\") == 0) return true;\n", model->rpcs[i].path);
    }
    fputs("    return false;\n"
          "}\n",
          out);
}

static void emit_signature(const Rpc *rpc, FILE *out)
{
    fprintf(out,
            "int tine_%s(Tine *tine, const TineCallOptions *options,\n"
            "    const %s *request,\n"
            "    %s **out_response)",
            rpc->name.lower, rpc->request->full.type, rpc->response->full.type);
}
