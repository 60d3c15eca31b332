// Settings: the last of each, by the file's order.

#include "importers/pi/pi_settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "text/utf8.h"

static Error put(char **place, Slice text)
{
    free(*place);
    *place = strndup(text.size > 0 ? (const char *)text.bytes : "", text.size);
    return *place ? ERROR_NONE : ERROR_OUT_OF_MEMORY;
}

Error pi_settings_begin(PiSettings *settings, const Session *session)
{
    *settings = (PiSettings){.title = NULL};
    const ModelRef *model = session->model;
    Error error = put(&settings->title_before, slice_of(session->title));
    if (!error) error = put(&settings->provider_before, slice_of(model ? model->provider : ""));
    if (!error) error = put(&settings->model_before, slice_of(model ? model->name : ""));
    settings->sets_title = !*session->title;
    settings->sets_model = !model || (strcmp(model->provider, PI_MODEL_UNKNOWN) == 0 &&
                                      strcmp(model->name, PI_MODEL_UNKNOWN) == 0);
    return error;
}

void pi_settings_free(PiSettings *settings)
{
    free(settings->title);
    free(settings->provider);
    free(settings->model);
    free(settings->title_before);
    free(settings->provider_before);
    free(settings->model_before);
    *settings = (PiSettings){.title = NULL};
}

static Error note_title(PiSettings *settings, const PiSaid *said)
{
    Slice title = utf8_trim(utf8_cut(slice_of(said->text), TITLE_BYTES_MAX));
    if (title.size == 0) return ERROR_NONE;
    if (said->is_new || slice_equal(title, slice_of(settings->title_before))) {
        settings->sets_title = true;
    }
    if (settings->title && said->entry < settings->title_entry) return ERROR_NONE;
    settings->title_entry = said->entry;
    return put(&settings->title, title);
}

Error pi_settings_note(PiSettings *settings, const PiSaid *said)
{
    Error error = ERROR_NONE;
    if (said->kind == MESSAGE_KIND_NAME) error = note_title(settings, said);
    const ModelRef *model = said->model;
    if (error || !model || !*model->name || !*model->provider) return error;
    bool is_before = strcmp(model->provider, settings->provider_before) == 0 &&
                     strcmp(model->name, settings->model_before) == 0;
    if (said->is_new || is_before) settings->sets_model = true;
    if (settings->model && said->entry < settings->model_entry) return ERROR_NONE;
    settings->model_entry = said->entry;
    error = put(&settings->provider, slice_of(model->provider));
    return error ? error : put(&settings->model, slice_of(model->name));
}
