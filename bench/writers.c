// Writers on an engine.

#include "writers.h"

#include <pthread.h>
#include <stdlib.h>

#include "aged.h"
#include "os/clock.h"

enum { DRIVERS = 4, DRIVER_WRITERS = WRITERS / DRIVERS };

typedef struct Submitter {
    Call call; // the first: its on_done finds the rest
    Buffer request;
} Submitter;

typedef struct Driver {
    Writers *all;
    pthread_t thread;
    Submitter writers[DRIVER_WRITERS];
    size_t left;
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    Call *ready;
} Driver;

struct Writers {
    Engine *engine;
    bool has_operation_ids;
    Driver drivers[DRIVERS];
};

Writers *writers_open(const IdText *sessions, bool has_operation_ids)
{
    Writers *writers = calloc(1, sizeof(Writers));
    require(writers != NULL, "out of memory");
    writers->has_operation_ids = has_operation_ids;
    for (size_t i = 0; i < WRITERS; i++) {
        Driver *driver = &writers->drivers[i / DRIVER_WRITERS];
        Submitter *submitter = &driver->writers[i % DRIVER_WRITERS];
        Buffer request = append_request(sessions[i].text, APPEND_TEXT_BYTES);
        submitter->request = request;
        if (has_operation_ids) {
            submitter->request = request_with_operation_id(&request);
            buffer_free(&request);
        }
        call_init(&submitter->call);
    }
    for (size_t i = 0; i < DRIVERS; i++) {
        writers->drivers[i].all = writers;
        pthread_mutex_init(&writers->drivers[i].mutex, NULL);
        pthread_cond_init(&writers->drivers[i].answered, NULL);
    }
    return writers;
}

void writers_close(Writers *writers)
{
    for (size_t i = 0; i < WRITERS; i++) {
        Submitter *submitter = &writers->drivers[i / DRIVER_WRITERS].writers[i % DRIVER_WRITERS];
        call_free(&submitter->call);
        buffer_free(&submitter->request);
    }
    for (size_t i = 0; i < DRIVERS; i++) {
        pthread_cond_destroy(&writers->drivers[i].answered);
        pthread_mutex_destroy(&writers->drivers[i].mutex);
    }
    free(writers);
}

static void submitter_done(Call *call)
{
    Driver *driver = call->context;
    require(!call->error, "an append failed: %s", call->detail.text);
    pthread_mutex_lock(&driver->mutex);
    bool was_empty = driver->ready == NULL;
    call->next = driver->ready;
    driver->ready = call;
    if (was_empty) pthread_cond_signal(&driver->answered);
    pthread_mutex_unlock(&driver->mutex);
}

static void submitter_go(Driver *driver, Submitter *submitter)
{
    Call *call = &submitter->call;
    call_reset(call);
    if (driver->all->has_operation_ids) request_renew_operation_id(&submitter->request);
    call->request = buffer_slice(&submitter->request);
    call->on_done = submitter_done;
    call->context = driver;
    engine_submit(driver->all->engine, call);
}

static Call *driver_take(Driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    while (!driver->ready)
        pthread_cond_wait(&driver->answered, &driver->mutex);
    Call *calls = driver->ready;
    driver->ready = NULL;
    pthread_mutex_unlock(&driver->mutex);
    return calls;
}

static void *driver_main(void *context)
{
    Driver *driver = context;
    size_t in_flight = DRIVER_WRITERS;
    for (size_t i = 0; i < DRIVER_WRITERS; i++)
        submitter_go(driver, &driver->writers[i]);
    while (in_flight > 0) {
        for (Call *call = driver_take(driver); call;) {
            Call *next = call->next;
            if (driver->left > 0) {
                driver->left--;
                submitter_go(driver, (Submitter *)call);
            } else {
                in_flight--;
            }
            call = next;
        }
    }
    return NULL;
}

double writers_run(Writers *writers, Engine *engine, size_t count)
{
    writers->engine = engine;
    int64_t t0 = clock_monotonic_ns();
    for (size_t i = 0; i < DRIVERS; i++) {
        Driver *driver = &writers->drivers[i];
        driver->left = DRIVER_WRITERS * (count - 1);
        require(pthread_create(&driver->thread, NULL, driver_main, driver) == 0, "no thread");
    }
    for (size_t i = 0; i < DRIVERS; i++)
        pthread_join(writers->drivers[i].thread, NULL);
    return (double)(WRITERS * count) * 1e9 / (double)(clock_monotonic_ns() - t0);
}
