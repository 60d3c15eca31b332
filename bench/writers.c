// Writers on an engine.

#include "writers.h"

#include <pthread.h>
#include <stdlib.h>

#include "aged.h"
#include "os/clock.h"

enum { DRIVERS = 4, DRIVER_WRITERS = WRITERS / DRIVERS };

typedef struct Submitter {
    Rpc rpc; // the first: its on_done finds the rest
    Buffer request;
} Submitter;

typedef struct Driver {
    Writers *all;
    pthread_t thread;
    Submitter writers[DRIVER_WRITERS];
    size_t left;
    pthread_mutex_t mutex;
    pthread_cond_t answered;
    Rpc *ready;
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
        rpc_init(&submitter->rpc);
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
        rpc_free(&submitter->rpc);
        buffer_free(&submitter->request);
    }
    for (size_t i = 0; i < DRIVERS; i++) {
        pthread_cond_destroy(&writers->drivers[i].answered);
        pthread_mutex_destroy(&writers->drivers[i].mutex);
    }
    free(writers);
}

static void submitter_done(Rpc *rpc)
{
    Driver *driver = rpc->context;
    require(!rpc->error, "an append failed: %s", rpc->detail.text);
    pthread_mutex_lock(&driver->mutex);
    bool was_empty = driver->ready == NULL;
    rpc->next = driver->ready;
    driver->ready = rpc;
    if (was_empty) pthread_cond_signal(&driver->answered);
    pthread_mutex_unlock(&driver->mutex);
}

static void submitter_go(Driver *driver, Submitter *submitter)
{
    Rpc *rpc = &submitter->rpc;
    rpc_reset(rpc);
    if (driver->all->has_operation_ids) request_renew_operation_id(&submitter->request);
    rpc->request = buffer_slice(&submitter->request);
    rpc->on_done = submitter_done;
    rpc->context = driver;
    engine_submit(driver->all->engine, rpc);
}

static Rpc *driver_take(Driver *driver)
{
    pthread_mutex_lock(&driver->mutex);
    while (!driver->ready)
        pthread_cond_wait(&driver->answered, &driver->mutex);
    Rpc *calls = driver->ready;
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
        for (Rpc *rpc = driver_take(driver); rpc;) {
            Rpc *next = rpc->next;
            if (driver->left > 0) {
                driver->left--;
                submitter_go(driver, (Submitter *)rpc);
            } else {
                in_flight--;
            }
            rpc = next;
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
