// A queue and the threads that empty it.

#include "pi/pi_originals.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli.h"

enum {
    THREAD_COUNT = 32,
    QUEUE_COUNT_MAX = 256,
    QUEUE_CONTENT_BYTES_MAX = 8 * 1024 * 1024, // or one that is larger
};

typedef struct Waiting {
    char message_id[ID_BYTES];
    Buffer bytes; // owned
} Waiting;

struct PiOriginals {
    Tine *tine;
    pthread_mutex_t mutex;
    pthread_cond_t came, went;
    pthread_t threads[THREAD_COUNT];
    size_t thread_count;
    Waiting queue[QUEUE_COUNT_MAX]; // a ring
    size_t first, count;
    size_t bytes_waiting;
    bool is_ending;
    int code; // of the first failure
    TineStatus status;
};

static int put(PiOriginals *originals, Waiting *waiting, TineStatus *status)
{
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    CLEANUP(message_freep) PutOriginalResponse *reply = NULL;
    TineCallOptions options = {.out_status = status};
    Slice bytes = buffer_slice(&waiting->bytes);
    request.message_id = waiting->message_id;
    request.content.data = (uint8_t *)(uintptr_t)bytes.bytes;
    request.content.len = bytes.size;
    int code = tine_put_original(originals->tine, &options, &request, &reply);
    buffer_free(&waiting->bytes);
    return code;
}

static void *work(void *context)
{
    PiOriginals *originals = context;
    pthread_mutex_lock(&originals->mutex);
    for (;;) {
        while (originals->count == 0 && !originals->is_ending) {
            pthread_cond_wait(&originals->came, &originals->mutex);
        }
        if (originals->count == 0) break;
        Waiting waiting = originals->queue[originals->first];
        originals->first = (originals->first + 1) % QUEUE_COUNT_MAX;
        originals->count--;
        pthread_mutex_unlock(&originals->mutex);

        size_t size = buffer_size(&waiting.bytes);
        TineStatus status = {0};
        int code = put(originals, &waiting, &status);

        pthread_mutex_lock(&originals->mutex);
        originals->bytes_waiting -= size;
        if (code && !originals->code) {
            originals->code = code;
            originals->status = status;
        }
        pthread_cond_signal(&originals->went);
    }
    pthread_mutex_unlock(&originals->mutex);
    return NULL;
}

PiOriginals *pi_originals_begin(Tine *tine)
{
    PiOriginals *originals = calloc(1, sizeof(*originals));
    if (!originals) return NULL;
    originals->tine = tine;
    pthread_mutex_init(&originals->mutex, NULL);
    pthread_cond_init(&originals->came, NULL);
    pthread_cond_init(&originals->went, NULL);
    while (originals->thread_count < THREAD_COUNT) {
        pthread_t *thread = &originals->threads[originals->thread_count];
        if (pthread_create(thread, NULL, work, originals) != 0) break;
        originals->thread_count++;
    }
    if (originals->thread_count > 0) return originals;
    (void)pi_originals_end(originals, NULL);
    return NULL;
}

void pi_originals_put(PiOriginals *originals, const char *message_id, Buffer *bytes)
{
    size_t size = buffer_size(bytes);
    pthread_mutex_lock(&originals->mutex);
    while (originals->count == QUEUE_COUNT_MAX ||
           (originals->bytes_waiting > 0 &&
            originals->bytes_waiting + size > QUEUE_CONTENT_BYTES_MAX)) {
        pthread_cond_wait(&originals->went, &originals->mutex);
    }
    size_t last = (originals->first + originals->count++) % QUEUE_COUNT_MAX;
    Waiting *waiting = &originals->queue[last];
    snprintf(waiting->message_id, sizeof(waiting->message_id), "%s", message_id);
    waiting->bytes = *bytes;
    *bytes = (Buffer){0};
    originals->bytes_waiting += size;
    pthread_cond_signal(&originals->came);
    pthread_mutex_unlock(&originals->mutex);
}

int pi_originals_end(PiOriginals *originals, TineStatus *out_status)
{
    if (!originals) return 0;
    pthread_mutex_lock(&originals->mutex);
    originals->is_ending = true;
    pthread_cond_broadcast(&originals->came);
    pthread_mutex_unlock(&originals->mutex);
    for (size_t i = 0; i < originals->thread_count; i++) pthread_join(originals->threads[i], NULL);
    int code = originals->code;
    if (code && out_status) *out_status = originals->status;
    pthread_mutex_destroy(&originals->mutex);
    pthread_cond_destroy(&originals->came);
    pthread_cond_destroy(&originals->went);
    free(originals);
    return code;
}
