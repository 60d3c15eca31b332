// Finds calls by name.

#include "method.h"

#include <string.h>
#include <strings.h>

#include "nearest.h"
#include "tine/v1/store.pb-c.h"

static const ProtobufCServiceDescriptor *const SERVICE = &tine__v1__store_service__descriptor;

// Returns what follows the last slash or dot.
static const char *last_name(const char *name)
{
    const char *last = strrchr(name, '/');
    if (!last) last = strrchr(name, '.');
    return last ? last + 1 : name;
}

const ProtobufCMethodDescriptor *method_find_or_say(const char *name)
{
    const char *wanted = last_name(name);
    Nearest nearest = nearest_begin(wanted);
    for (unsigned i = 0; i < SERVICE->n_methods; i++) {
        const ProtobufCMethodDescriptor *method = &SERVICE->methods[i];
        if (strcasecmp(method->name, wanted) == 0) return method;
        nearest_consider(&nearest, method->name);
    }
    if (nearest.name) {
        (void)cli_say(EXIT_USAGE, "there is no call '%s'; did you mean %s?", name, nearest.name);
    } else {
        (void)cli_say(EXIT_USAGE, "there is no call '%s'; `tine describe` lists them", name);
    }
    return NULL;
}

void method_path(const ProtobufCMethodDescriptor *method, char out[METHOD_PATH_BYTES_MAX])
{
    snprintf(out, METHOD_PATH_BYTES_MAX, "/%s/%s", SERVICE->name, method->name);
}
