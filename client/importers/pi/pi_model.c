// The last model, in the file's order.

#include "importers/pi/pi_model.h"

#include <stdlib.h>
#include <string.h>

static Error put(char **place, const char *text)
{
    free(*place);
    *place = strdup(text);
    return *place ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
}

Error pi_model_begin(PiModel *model, const Session *session)
{
    const ModelRef *own = session->model;
    *model = (PiModel){.provider = NULL};
    model->is_wanted = !own || (strcmp(own->provider, PI_MODEL_UNKNOWN) == 0 &&
                                strcmp(own->name, PI_MODEL_UNKNOWN) == 0);
    Error error = put(&model->provider_before, own ? own->provider : "");
    return error ? error : put(&model->name_before, own ? own->name : "");
}

void pi_model_free(PiModel *model)
{
    free(model->provider);
    free(model->name);
    free(model->provider_before);
    free(model->name_before);
    *model = (PiModel){.provider = NULL};
}

Error pi_model_note(PiModel *model, uint32_t entry, const ModelRef *said, bool is_new)
{
    if (!said || !*said->name || !*said->provider) return ERROR_NONE;
    bool is_own = strcmp(said->provider, model->provider_before) == 0 &&
                  strcmp(said->name, model->name_before) == 0;
    if (is_new || is_own) model->is_wanted = true;
    if (model->name && entry < model->entry) return ERROR_NONE;
    model->entry = entry;
    Error error = put(&model->provider, said->provider);
    return error ? error : put(&model->name, said->name);
}
