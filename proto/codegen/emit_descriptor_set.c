// Emits descriptor_set: the contract itself as bytes, for Describe.

#include "emit.h"
#include "memory.h"

#include <stdlib.h>

enum { BYTES_PER_LINE = 16 };

void emit_descriptor_set_header(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs(
        "\n// The encoded google.protobuf.FileDescriptorSet of the contract, without comments.\n\n"
        "#pragma once\n\n"
        "#include <stddef.h>\n"
        "#include <stdint.h>\n\n"
        "extern const uint8_t DESCRIPTOR_SET[];\n"
        "extern const size_t DESCRIPTOR_SET_BYTES;\n",
        out);
}

void emit_descriptor_set_source(const Model *model, FILE *out)
{
    size_t size = google__protobuf__file_descriptor_set__get_packed_size(model->files);
    uint8_t *bytes = memory_resize(NULL, size, 1);
    google__protobuf__file_descriptor_set__pack(model->files, bytes);

    emit_heading(model, out);
    fputs("\n#include \"descriptor_set.h\"\n\n"
          "const uint8_t DESCRIPTOR_SET[] = {",
          out);
    for (size_t i = 0; i < size; i++) {
        fprintf(out, "%s%u,", i % BYTES_PER_LINE == 0 ? "\n    " : " ", bytes[i]);
    }
    fputs("\n};\n\nconst size_t DESCRIPTOR_SET_BYTES = sizeof DESCRIPTOR_SET;\n", out);
    free(bytes);
}
