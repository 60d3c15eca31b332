// Emits tine_calls, the C client's typed calls. They use protobuf-c's full names, because a public
// header must not define names as common as `Session`.

#include "emit.h"

static void emit_signature(const Rpc *rpc, FILE *out);
static void emit_next_signature(const Rpc *rpc, FILE *out);
static void emit_next(const Rpc *rpc, FILE *out);
static void emit_traits_header(const Model *model, FILE *out);
static void emit_traits_source(const Model *model, FILE *out);

// The values of TINE_TRAIT_…. They are in a public header, so they must not change.
enum { BIT_READS = 1, BIT_WAITS = 2, BIT_STREAM = 4, BIT_BROADCASTS = 8 };

void emit_calls_header(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs("\n// One function for each call. It returns the gRPC code. After 0 the caller frees\n"
          "// `*out_response` with protobuf_c_message_free_unpacked; otherwise it is unchanged.\n"
          "// `request` and `options` (may be NULL) are borrowed until the call returns.\n\n"
          "#pragma once\n\n"
          "#include \"tine.h\"\n\n",
          out);
    emit_includes(model, out);
    emit_traits_header(model, out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        const Rpc *rpc = &model->rpcs[i];
        if (rpc->is_stream) continue;
        fprintf(out, "\n// %s%s%s\n", rpc->method, rpc->summary ? ": " : ".",
                rpc->summary ? rpc->summary : "");
        emit_signature(rpc, out);
        fputs(";\n", out);
        if (!rpc->has_pages) continue;
        emit_next_signature(rpc, out);
        fputs("; // see TinePages\n", out);
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
                "    int code = tine_call(tine, options, TINE_METHOD_%s, &request->base,\n"
                "        &%s__descriptor, &response);\n"
                "    if (code == 0) *out_response = (%s *)response;\n"
                "    return code;\n"
                "}\n",
                rpc->name.upper, rpc->response->full.lower, rpc->response->full.type);
        if (rpc->has_pages) emit_next(rpc, out);
    }
    emit_traits_source(model, out);
}

static unsigned traits_of(const Rpc *rpc)
{
    return (rpc->is_write ? 0 : BIT_READS) | (rpc->waits ? BIT_WAITS : 0) |
           (rpc->is_stream ? BIT_STREAM : 0) | (rpc->is_broadcast ? BIT_BROADCASTS : 0);
}

static void emit_traits_header(const Model *model, FILE *out)
{
    fputs("\n// The paths of the methods, for tine_call.\n", out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        fprintf(out, "#define TINE_METHOD_%s \"%s\"\n", model->rpcs[i].name.upper,
                model->rpcs[i].path);
    }
    fprintf(out,
            "\n// What tine_method_traits says of a method.\n"
            "enum {\n"
            "    TINE_TRAIT_READS = %d,      // it only reads\n"
            "    TINE_TRAIT_WAITS = %d,      // the server may hold it: its request has a wait_ms\n"
            "    TINE_TRAIT_STREAM = %d,     // the client implements it: it cannot be called\n"
            "    TINE_TRAIT_BROADCASTS = %d, // it stores nothing: sent twice, it happens twice\n"
            "};\n",
            BIT_READS, BIT_WAITS, BIT_STREAM, BIT_BROADCASTS);
    fputs("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
          "\n// Returns the traits of the method with this path; 0 also if it is not known here.\n"
          "unsigned tine_method_traits(const char *path);\n"
          "\n// Returns whether the method only reads; false if it is not known here.\n"
          "bool tine_method_is_read(const char *path);\n"
          "\n// Returns whether the method is a stream, which cannot be called: see tine_watch.\n"
          "bool tine_method_is_stream(const char *path);\n",
          out);
}

static void emit_traits_source(const Model *model, FILE *out)
{
    fputs("\nstatic const struct {\n"
          "    const char *path;\n"
          "    unsigned traits;\n"
          "} METHODS[] = {\n",
          out);
    for (size_t i = 0; i < model->rpc_count; i++) {
        fprintf(out, "    {TINE_METHOD_%s, %u},\n", model->rpcs[i].name.upper,
                traits_of(&model->rpcs[i]));
    }
    fputs("};\n\n"
          "unsigned tine_method_traits(const char *path)\n"
          "{\n"
          "    size_t first = 0;\n"
          "    size_t end = sizeof METHODS / sizeof *METHODS;\n"
          "    while (first < end) {\n"
          "        size_t middle = first + (end - first) / 2;\n"
          "        int order = strcmp(path, METHODS[middle].path);\n"
          "        if (order == 0) return METHODS[middle].traits;\n"
          "        if (order > 0) {\n"
          "            first = middle + 1;\n"
          "        } else {\n"
          "            end = middle;\n"
          "        }\n"
          "    }\n"
          "    return 0;\n"
          "}\n\n"
          "bool tine_method_is_read(const char *path)\n"
          "{\n"
          "    return (tine_method_traits(path) & TINE_TRAIT_READS) != 0;\n"
          "}\n\n"
          "bool tine_method_is_stream(const char *path)\n"
          "{\n"
          "    return (tine_method_traits(path) & TINE_TRAIT_STREAM) != 0;\n"
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

static void emit_next_signature(const Rpc *rpc, FILE *out)
{
    fprintf(out,
            "%s *tine_%s_next(Tine *tine, const TineCallOptions *options,\n"
            "    const %s *request, TinePages *pages)",
            rpc->response->full.type, rpc->name.lower, rpc->request->full.type);
}

static void emit_next(const Rpc *rpc, FILE *out)
{
    fputs("\n", out);
    emit_next_signature(rpc, out);
    fprintf(out,
            "\n{\n"
            "    static const TineListing LISTING = {TINE_METHOD_%s, &%s__descriptor};\n"
            "    return (%s *)tine_next_page(tine, options, &LISTING, &request->base, pages);\n"
            "}\n",
            rpc->name.upper, rpc->response->full.lower, rpc->response->full.type);
}
