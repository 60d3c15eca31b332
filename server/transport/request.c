// The request machine. One mutex guards the accounts, the counts and the memory that is kept; it is
// held for a few instructions at a time, and never while a request runs or a listener is called.

#include "transport/request.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "os/condition.h"
#include "os/timer.h"
#include "report/log.h"
#include "rpc/dispatch.h"
#include "rpc/engine.h"

struct Requests {
    Engine *engine; // borrowed
    int timer;      // until the next look at what is unsent
    atomic_bool is_looking;
    atomic_size_t late_loans; // of replies that wait for their peers

    pthread_mutex_t mutex; // guards all below
    pthread_cond_t drained;
    Accounts *accounts; // owned
    uint64_t count;
    size_t accepted_count;
    bool is_refusing, is_stopped;
    Rpc *kept; // that nobody needs now, newest first
    size_t kept_count;
};

static Rpc *rpc_take(const PeerRequest *request);
static Error admit(PeerRequest *request, bool *out_waits);
static void refuse(PeerRequest *request, Error error);
static void on_answered(Rpc *rpc);
static void drop(PeerRequest *request);
static void keep_looking(Requests *requests);
static void run_turns(Requests *requests);

static Listener *listener_of(const Account *account)
{
    return (Listener *)account->group;
}

Error requests_open(Engine *engine, ErrorDetail *detail, Requests **out)
{
    Requests *requests = calloc(1, sizeof(Requests));
    if (!requests) return ERROR_OUT_OF_MEMORY;
    requests->engine = engine;
    requests->timer = -1;
    pthread_mutex_init(&requests->mutex, NULL);
    condition_init(&requests->drained);
    Error error = timer_open("watch replies", detail, &requests->timer);
    if (!error) error = accounts_open(&requests->accounts);
    if (error) {
        requests_close(requests);
        return error;
    }
    *out = requests;
    return ERROR_NONE;
}

void requests_close(Requests *requests)
{
    if (!requests) return;
    (void)requests_trim(requests);
    accounts_close(requests->accounts);
    if (requests->timer >= 0) close(requests->timer);
    pthread_cond_destroy(&requests->drained);
    pthread_mutex_destroy(&requests->mutex);
    free(requests);
}

bool requests_connect(Listener *listener, uint32_t connection_id, void *connection)
{
    Requests *requests = listener->requests;
    pthread_mutex_lock(&requests->mutex);
    bool is_connected = !requests->is_refusing && account_open(requests->accounts, &listener->group,
                                                               connection_id, connection) != NULL;
    pthread_mutex_unlock(&requests->mutex);
    return is_connected;
}

void requests_disconnect(Listener *listener, uint32_t connection_id)
{
    Requests *requests = listener->requests;
    pthread_mutex_lock(&requests->mutex);
    Account *account = account_find(requests->accounts, &listener->group, connection_id);
    if (account) account_close(requests->accounts, account);
    pthread_mutex_unlock(&requests->mutex);
}

static void account_let_go(Requests *requests, Account *account)
{
    pthread_mutex_lock(&requests->mutex);
    account_release(requests->accounts, account);
    pthread_mutex_unlock(&requests->mutex);
}

PeerRequest *request_take(Listener *listener, uint32_t connection_id, size_t frame_bytes)
{
    Requests *requests = listener->requests;
    pthread_mutex_lock(&requests->mutex);
    Account *account = account_find(requests->accounts, &listener->group, connection_id);
    if (account) account_hold(account);
    pthread_mutex_unlock(&requests->mutex);
    if (!account) return NULL;
    PeerRequest *request = malloc(sizeof(PeerRequest) + frame_bytes);
    if (!request) {
        account_let_go(requests, account);
        return NULL;
    }
    *request = (PeerRequest){
        .entry.account = account,
        .requests = requests,
        .frame_bytes = frame_bytes,
    };
    return request;
}

void request_abandon(PeerRequest *request)
{
    account_let_go(request->requests, request->entry.account);
    free(request);
}

void request_begin(PeerRequest *request, Slice bytes)
{
    Requests *requests = request->requests;
    Rpc *rpc = rpc_take(request);
    if (!rpc) {
        drop(request);
        request_abandon(request);
        return;
    }
    rpc->request = bytes;
    rpc->on_done = on_answered;
    rpc->context = request;
    const Listener *listener = listener_of(request->entry.account);
    rpc->token_wanted = listener->token_wanted;
    rpc->loan.is_allowed = listener->ops->takes_loans;
    request->rpc = rpc;
    request->entry.bytes = bytes.size;
    bool waits = false;
    Error error = admit(request, &waits);
    if (waits) return; // another thread may run it already
    if (error) {
        refuse(request, error);
    } else {
        engine_submit(requests->engine, rpc);
    }
}

// Counts the request and decides whether it runs now, waits for its turn, or is refused.
static Error admit(PeerRequest *request, bool *out_waits)
{
    Requests *requests = request->requests;
    Error error = ERROR_NONE;
    pthread_mutex_lock(&requests->mutex);
    requests->count++;
    request->is_accepted = !requests->is_refusing;
    if (request->is_accepted) requests->accepted_count++;
    if (!account_begin(&request->entry)) {
        error = ERROR_TOO_MANY_IN_FLIGHT;
    } else if (requests->is_refusing) {
        error = rpc_fail(request->rpc, ERROR_UNAVAILABLE, "the server is shutting down");
    } else {
        TurnResult turn = account_turn(requests->accounts, &request->entry);
        *out_waits = turn == TURN_LATER;
        if (turn == TURN_NEVER) error = ERROR_QUEUE_FULL;
    }
    pthread_mutex_unlock(&requests->mutex);
    return error;
}

static void refuse(PeerRequest *request, Error error)
{
    dispatch_finish(request->rpc, error);
    on_answered(request->rpc);
}

// Returns an Rpc that is ready, with the memory of the last one that ended, which is still in the
// cache. NULL: the connection is gone, so nothing should run, or there is no memory.
static Rpc *rpc_take(const PeerRequest *request)
{
    Requests *requests = request->requests;
    pthread_mutex_lock(&requests->mutex);
    bool is_connected = request->entry.account->is_connected;
    Rpc *rpc = is_connected ? requests->kept : NULL;
    if (rpc) {
        requests->kept = rpc->next;
        requests->kept_count--;
    }
    pthread_mutex_unlock(&requests->mutex);
    if (!rpc && is_connected) {
        rpc = malloc(sizeof(Rpc));
        if (rpc) rpc_init(rpc);
    }
    if (rpc) rpc_reset(rpc);
    return rpc;
}

// The mutex must be held. Returns false if enough are kept, or if it has more memory than is kept:
// the caller drops it.
static bool rpc_keep(Requests *requests, Rpc *rpc)
{
    if (requests->kept_count >= REQUESTS_KEPT_MAX) return false;
    if (rpc->reply.capacity > BUFFER_KEEP_BYTES_MAX) return false;
    rpc->next = requests->kept;
    requests->kept = rpc;
    requests->kept_count++;
    return true;
}

static void rpc_drop(Rpc *rpc)
{
    rpc_free(rpc);
    free(rpc);
}

// Cuts off the peer of a request that gets no reply.
static void drop(PeerRequest *request)
{
    Account *account = request->entry.account;
    const ListenerOps *ops = listener_of(account)->ops;
    ops->cut_off(account);
    if (ops->drop) ops->drop(request);
}

static void log_cut_off(void)
{
    log_write(LOG_WARNING, "connection closed: it does not read its replies", NULL);
}

// Called by the engine, on any thread, when the reply is complete.
static void on_answered(Rpc *rpc)
{
    PeerRequest *request = rpc->context;
    Requests *requests = request->requests;
    Account *account = request->entry.account;
    size_t bytes = request_reply_bytes(request);
    request->entry.bytes = bytes;
    pthread_mutex_lock(&requests->mutex);
    bool may_send = account_answered(requests->accounts, &request->entry);
    bool was_cut_off = account->is_cut_off;
    if (!may_send) account->is_cut_off = true;
    pthread_mutex_unlock(&requests->mutex);
    if (!may_send || bytes == 0) {                    // 0: there was no memory for it
        if (!may_send && !was_cut_off) log_cut_off(); // once for a connection
        drop(request);
        request_sent(request, /* is_taken= */ false);
        return;
    }
    SendResult result = listener_of(account)->ops->send(request);
    if (result == SEND_LATER) {
        keep_looking(requests);
    } else {
        request_sent(request, result == SEND_DONE);
    }
}

void request_reply_copied(PeerRequest *request)
{
    Requests *requests = request->requests;
    pthread_mutex_lock(&requests->mutex);
    bool is_kept = rpc_keep(requests, request->rpc);
    pthread_mutex_unlock(&requests->mutex);
    if (!is_kept) rpc_drop(request->rpc);
    request->rpc = NULL;
}

static void loan_is_over(PeerRequest *request)
{
    if (request->has_late_loan) atomic_fetch_sub(&request->requests->late_loans, 1);
    request->has_late_loan = false;
}

bool request_wait(PeerRequest *request, size_t sent)
{
    if (request->rpc->loan.count == 0) return true;
    request->has_late_loan = true;
    size_t others = atomic_fetch_add(&request->requests->late_loans, 1);
    return others < LOANS_LATE_MAX || request_settle(request, sent);
}

bool request_settle(PeerRequest *request, size_t sent)
{
    if (!request->has_late_loan) return true;
    loan_is_over(request);
    return loan_settle(&request->rpc->loan, &request->rpc->reply, sent) == ERROR_NONE;
}

void request_sent(PeerRequest *request, bool is_taken)
{
    Requests *requests = request->requests;
    Rpc *rpc = request->rpc;
    loan_is_over(request);
    if (rpc) loan_end(&rpc->loan);
    pthread_mutex_lock(&requests->mutex);
    bool has_turn = account_sent(requests->accounts, &request->entry, is_taken);
    account_release(requests->accounts, request->entry.account);
    if (request->is_accepted && --requests->accepted_count == 0) {
        pthread_cond_broadcast(&requests->drained);
    }
    bool is_kept = rpc && rpc_keep(requests, rpc);
    pthread_mutex_unlock(&requests->mutex);
    if (rpc && !is_kept) rpc_drop(rpc);
    free(request);
    if (has_turn) run_turns(requests);
}

// Returns a request whose turn has come, or NULL. `*out_may_run` false: it must be refused.
static PeerRequest *next_turn(Requests *requests, bool *out_may_run)
{
    pthread_mutex_lock(&requests->mutex);
    PeerRequest *request = (PeerRequest *)accounts_next(requests->accounts);
    *out_may_run = request && request->entry.account->is_connected && !requests->is_stopped;
    pthread_mutex_unlock(&requests->mutex);
    return request;
}

// A request that ends at once comes back here: the loop that runs already continues with the next.
static void run_turns(Requests *requests)
{
    static _Thread_local bool is_running;
    if (is_running) return;
    is_running = true;
    bool may_run;
    for (PeerRequest *request; (request = next_turn(requests, &may_run)) != NULL;) {
        if (may_run) {
            engine_submit(requests->engine, request->rpc);
        } else {
            refuse(request, rpc_fail(request->rpc, ERROR_UNAVAILABLE, "the client is gone"));
        }
    }
    is_running = false;
}

int requests_timer(const Requests *requests)
{
    return requests->timer;
}

// Starts the timer unless it runs.
static void keep_looking(Requests *requests)
{
    if (atomic_load(&requests->is_looking)) return;
    if (!atomic_exchange(&requests->is_looking, true)) timer_start(requests->timer, UNSENT_LOOK_MS);
}

static Account *take_overdue(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    Account *account = accounts_overdue(requests->accounts);
    pthread_mutex_unlock(&requests->mutex);
    return account;
}

// A reply that becomes unsent after this has found none starts the timer itself.
bool requests_look(Requests *requests)
{
    if (!timer_has_ended(requests->timer)) return false;
    atomic_store(&requests->is_looking, false);
    pthread_mutex_lock(&requests->mutex);
    bool has_unsent = accounts_look(requests->accounts);
    pthread_mutex_unlock(&requests->mutex);
    if (has_unsent) keep_looking(requests);
    for (Account *account; (account = take_overdue(requests)) != NULL;) {
        log_cut_off();
        listener_of(account)->ops->cut_off(account);
        account_let_go(requests, account);
    }
    return atomic_load(&requests->late_loans) > 0;
}

void requests_refuse(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    requests->is_refusing = true;
    pthread_mutex_unlock(&requests->mutex);
}

bool requests_drain(Requests *requests, int64_t until_ns)
{
    bool is_late = false;
    pthread_mutex_lock(&requests->mutex);
    while (requests->accepted_count > 0 && !is_late) {
        is_late = !condition_wait(&requests->drained, &requests->mutex, until_ns);
    }
    bool is_drained = requests->accepted_count == 0;
    pthread_mutex_unlock(&requests->mutex);
    return is_drained;
}

void requests_stop(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    requests->is_refusing = requests->is_stopped = true;
    pthread_mutex_unlock(&requests->mutex);
}

uint64_t requests_taken(Listener *listener, uint32_t connection_id)
{
    Requests *requests = listener->requests;
    pthread_mutex_lock(&requests->mutex);
    const Account *account = account_find(requests->accounts, &listener->group, connection_id);
    uint64_t taken = account ? account->taken : 0;
    pthread_mutex_unlock(&requests->mutex);
    return taken;
}

size_t requests_connections(const Listener *listener)
{
    Requests *requests = listener->requests;
    pthread_mutex_lock(&requests->mutex);
    size_t count = listener->group.count;
    pthread_mutex_unlock(&requests->mutex);
    return count;
}

uint64_t requests_count(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    uint64_t count = requests->count;
    pthread_mutex_unlock(&requests->mutex);
    return count;
}

bool requests_trim(Requests *requests)
{
    pthread_mutex_lock(&requests->mutex);
    Rpc *kept = requests->kept;
    requests->kept = NULL;
    requests->kept_count = 0;
    pthread_mutex_unlock(&requests->mutex);
    bool has_kept = kept != NULL;
    while (kept) {
        Rpc *next = kept->next;
        rpc_drop(kept);
        kept = next;
    }
    return has_kept;
}
