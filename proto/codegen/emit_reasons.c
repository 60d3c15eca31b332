// Emits tine_reasons.h: the values of enum Reason with short names for users of libtine. If the
// package has no enum Reason, the header is empty.

#include "emit.h"

#include <string.h>

static const EnumDescriptor *find_reasons(const Model *model)
{
    for (size_t i = 0; i < model->type_count; i++) {
        const Type *type = &model->types[i];
        if (type->enumeration && strcmp(type->enumeration->name, "Reason") == 0) {
            return type->enumeration;
        }
    }
    return NULL;
}

void emit_reasons(const Model *model, FILE *out)
{
    const EnumDescriptor *reasons = find_reasons(model);
    emit_heading(model, out);
    fputs("\n#pragma once\n", out);
    if (!reasons) return;
    fputs("\n// Why a call failed: enum Reason.\n"
          "typedef enum TineReason {\n",
          out);
    for (size_t i = 0; i < reasons->n_value; i++) {
        fprintf(out, "    TINE_%s = %d,\n", reasons->value[i]->name, reasons->value[i]->number);
    }
    fputs("} TineReason;\n", out);
}
