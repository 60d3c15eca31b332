// tine-codegen: generates the C that connects a service to its handlers and clients, from protoc's
// descriptor set.
//
// One run writes all files. Errors in the input are found while the model is built, before the
// first file is opened.

#include "emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_BAD_INPUT = 1, EXIT_USAGE = 2 };

typedef struct Output {
    const char *file;
    void (*emit)(const Model *model, FILE *out);
} Output;

static const Output OUTPUTS[] = {
    {"names.h", emit_names},
    {"fields.h", emit_fields},
    {"tine_reasons.h", emit_reasons},
    {"dispatch_table.h", emit_dispatch_header},
    {"dispatch_table.c", emit_dispatch_source},
    {"tine_calls.h", emit_calls_header},
    {"tine_calls.c", emit_calls_source},
    {"descriptor_set.h", emit_descriptor_set_header},
    {"descriptor_set.c", emit_descriptor_set_source},
};

static const char USAGE[] =
    "usage: tine-codegen --descriptor-set FILE --service PACKAGE.SERVICE --out DIRECTORY\n"
    "                    [--rename PROTO_TYPE=C_NAME]... [--broadcast METHOD]...\n"
    "                    [--needs-server METHOD]...\n";

static bool options_parse(Options *options, int argument_count, char **arguments);
static bool value_parse(Options *options, const char *name, char *value);
static bool rename_parse(Options *options, char *argument);
static bool trait_parse(Options *options, const char *method, Trait trait);
static bool output_write(const Model *model, const char *directory, const Output *output);

int main(int argument_count, char **arguments)
{
    Options options = {0};
    if (!options_parse(&options, argument_count, arguments)) {
        fputs(USAGE, stderr);
        return EXIT_USAGE;
    }

    Model model;
    bool is_good = model_open(&model, &options);
    for (size_t i = 0; is_good && i < sizeof OUTPUTS / sizeof OUTPUTS[0]; i++) {
        is_good = output_write(&model, options.out_directory, &OUTPUTS[i]);
    }
    model_close(&model);
    return is_good ? EXIT_SUCCESS : EXIT_BAD_INPUT;
}

static bool options_parse(Options *options, int argument_count, char **arguments)
{
    static const char *const NAMES[] = {
        "--descriptor-set", "--service", "--out", "--rename", "--broadcast", "--needs-server",
    };
    for (int i = 1; i < argument_count; i++) {
        const char *name = arguments[i];
        bool is_known = false;
        for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++)
            is_known = is_known || strcmp(name, NAMES[k]) == 0;
        if (!is_known) {
            fprintf(stderr, "tine-codegen: unknown option '%s'\n", name);
            return false;
        }
        if (++i == argument_count) {
            fprintf(stderr, "tine-codegen: %s needs a value\n", name);
            return false;
        }
        if (!value_parse(options, name, arguments[i])) return false;
    }
    if (options->descriptor_set_path && options->service && options->out_directory) return true;

    fputs("tine-codegen: --descriptor-set, --service and --out are needed\n", stderr);
    return false;
}

// Stores the value of an option; `name` is a known one.
static bool value_parse(Options *options, const char *name, char *value)
{
    if (strcmp(name, "--rename") == 0) return rename_parse(options, value);
    if (strcmp(name, "--broadcast") == 0) return trait_parse(options, value, TRAIT_BROADCAST);
    if (strcmp(name, "--needs-server") == 0) return trait_parse(options, value, TRAIT_NEEDS_SERVER);
    if (strcmp(name, "--descriptor-set") == 0) options->descriptor_set_path = value;
    if (strcmp(name, "--service") == 0) options->service = value;
    if (strcmp(name, "--out") == 0) options->out_directory = value;
    return true;
}

static bool trait_parse(Options *options, const char *method, Trait trait)
{
    if (options->trait_count == TRAIT_COUNT_MAX) {
        fprintf(stderr, "tine-codegen: more than %d traits\n", TRAIT_COUNT_MAX);
        return false;
    }
    options->traits[options->trait_count++] = (MethodTrait){.method = method, .trait = trait};
    return true;
}

static bool rename_parse(Options *options, char *argument)
{
    char *equals = strchr(argument, '=');
    if (!equals || equals == argument || !equals[1]) {
        fprintf(stderr, "tine-codegen: --rename wants PROTO_TYPE=C_NAME, not '%s'\n", argument);
        return false;
    }
    if (options->rename_count == RENAME_COUNT_MAX) {
        fprintf(stderr, "tine-codegen: more than %d renames\n", RENAME_COUNT_MAX);
        return false;
    }
    *equals = '\0';
    options->renames[options->rename_count++] = (Rename){.from = argument, .to = equals + 1};
    return true;
}

static bool output_write(const Model *model, const char *directory, const Output *output)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, output->file);
    if (length < 0 || (size_t)length >= sizeof path) {
        fprintf(stderr, "tine-codegen: the path of %s is too long\n", output->file);
        return false;
    }

    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "tine-codegen: cannot write %s: %s\n", path, strerror(errno));
        return false;
    }
    output->emit(model, out);
    bool is_written = !ferror(out);
    if (fclose(out) != 0) is_written = false;
    if (!is_written) {
        fprintf(stderr, "tine-codegen: writing %s failed: %s\n", path, strerror(errno));
        remove(path);
    }
    return is_written;
}
