// Emits names.h: protobuf-c's names without the package, such as `Session` and `ROLE_USER`.
//
//     message Part { oneof kind { Text text = 1; } }     enum Role { ROLE_USER = 1; }
//     Part, PART__INIT, part__descriptor                 Role, ROLE_USER, role__descriptor
//     Part__KindCase, PART__KIND_TEXT, PART__KIND__NOT_SET

#include "emit.h"
#include "identifier.h"

#include <stdlib.h>

static void emit_type(const Type *type, FILE *out);
static void emit_enum_values(const Type *type, FILE *out);
static void emit_oneofs(const Type *type, FILE *out);

void emit_names(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs("\n// The messages and enums of the package, by their plain names.\n\n"
          "#pragma once\n\n",
          out);
    emit_includes(model, out);
    for (size_t i = 0; i < model->type_count; i++) {
        emit_type(&model->types[i], out);
    }
}

static void emit_type(const Type *type, FILE *out)
{
    fprintf(out, "\ntypedef %s %s;\n", type->full.type, type->alias.type);
    fprintf(out, "#define %s__descriptor %s__descriptor\n", type->alias.lower, type->full.lower);
    if (type->enumeration) {
        emit_enum_values(type, out);
        return;
    }
    fprintf(out, "#define %s__INIT %s__INIT\n", type->alias.upper, type->full.upper);
    emit_oneofs(type, out);
}

static void emit_enum_values(const Type *type, FILE *out)
{
    for (size_t i = 0; i < type->enumeration->n_value; i++) {
        const char *value = type->enumeration->value[i]->name;
        fprintf(out, "#define %s %s__%s\n", value, type->full.upper, value);
    }
}

static void emit_oneofs(const Type *type, FILE *out)
{
    const MessageDescriptor *message = type->message;
    for (size_t i = 0; i < message->n_oneof_decl; i++) {
        char *camel = identifier_type(message->oneof_decl[i]->name);
        char *upper = identifier_upper(message->oneof_decl[i]->name);
        fprintf(out, "typedef %s__%sCase %s__%sCase;\n", type->full.type, camel, type->alias.type,
                camel);
        fprintf(out, "#define %s__%s__NOT_SET %s__%s__NOT_SET\n", type->alias.upper, upper,
                type->full.upper, upper);
        for (size_t f = 0; f < message->n_field; f++) {
            const Google__Protobuf__FieldDescriptorProto *field = message->field[f];
            if (!field->has_oneof_index || field->oneof_index != (int32_t)i) continue;
            char *name = identifier_upper(field->name);
            fprintf(out, "#define %s__%s_%s %s__%s_%s\n", type->alias.upper, upper, name,
                    type->full.upper, upper, name);
            free(name);
        }
        free(camel);
        free(upper);
    }
}
