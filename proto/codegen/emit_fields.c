// Emits fields.h: the number of every field, for C that reads or writes encoded bytes.
//
//     message Part { message Text { string text = 1; } Text text = 10; }
//     FIELD_PART_TEXT = 10, FIELD_PART__TEXT_TEXT = 1

#include "emit.h"
#include "identifier.h"

#include <stdlib.h>

void emit_fields(const Model *model, FILE *out)
{
    emit_heading(model, out);
    fputs(
        "\n// The numbers of all fields: FIELD_MESSAGE_FIELD, with names.h's name of the message.\n"
        "\n#pragma once\n",
        out);
    for (size_t i = 0; i < model->type_count; i++) {
        const Type *type = &model->types[i];
        if (!type->message || type->message->n_field == 0) continue;
        fprintf(out, "\n// %s\nenum {\n", type->alias.type);
        for (size_t f = 0; f < type->message->n_field; f++) {
            char *name = field_constant(type, f);
            fprintf(out, "    %s = %d,\n", name, type->message->field[f]->number);
            free(name);
        }
        fputs("};\n", out);
    }
}
