// Emitters: each writes one generated file from the model.

#pragma once

#include "model.h"

void emit_names(const Model *model, FILE *out);
void emit_fields(const Model *model, FILE *out);
void emit_reasons(const Model *model, FILE *out);
void emit_dispatch_header(const Model *model, FILE *out);
void emit_dispatch_source(const Model *model, FILE *out);
void emit_calls_header(const Model *model, FILE *out);
void emit_calls_source(const Model *model, FILE *out);
void emit_descriptor_set_header(const Model *model, FILE *out);
void emit_descriptor_set_source(const Model *model, FILE *out);

// The parts that several files share: the first line, and the includes of protobuf-c's headers.
void emit_heading(const Model *model, FILE *out);
void emit_includes(const Model *model, FILE *out);
