// Accounts are found in a hash table by the number of their connection. An account outlives its
// connection until the last of its requests is done.

#include "transport/account.h"

#include <stdlib.h>

#include "base/limits.h"

enum { BUCKETS = 1024 };

struct Accounts {
    size_t unsent_bytes, waiting_bytes; // of all
    Account *buckets[BUCKETS];
    Account *ready, **ready_end;
    AccountEntry unsent; // a ring of all unsent replies, oldest first; only its links are used
    uint64_t look;
};

Error accounts_open(Accounts **out)
{
    Accounts *accounts = calloc(1, sizeof(Accounts));
    if (!accounts) return ERROR_OUT_OF_MEMORY;
    accounts->ready_end = &accounts->ready;
    accounts->unsent.next = accounts->unsent.previous = &accounts->unsent;
    *out = accounts;
    return ERROR_NONE;
}

void accounts_close(Accounts *accounts)
{
    if (!accounts) return;
    for (size_t i = 0; i < BUCKETS; i++) {
        while (accounts->buckets[i]) {
            Account *account = accounts->buckets[i];
            accounts->buckets[i] = account->next;
            free(account);
        }
    }
    free(accounts);
}

Account *account_open(Accounts *accounts, AccountGroup *group, uint32_t connection_id,
                      void *connection)
{
    if (group->count >= group->count_max) return NULL;
    Account *account = calloc(1, sizeof(Account));
    if (!account) return NULL;
    Account **bucket = &accounts->buckets[connection_id % BUCKETS];
    account->group = group;
    account->connection_id = connection_id;
    account->connection = connection;
    account->is_connected = true;
    account->waiting_end = &account->waiting;
    account->next = *bucket;
    *bucket = account;
    group->count++;
    return account;
}

Account *account_find(Accounts *accounts, const AccountGroup *group, uint32_t connection_id)
{
    Account *account = accounts->buckets[connection_id % BUCKETS];
    while (account && (account->connection_id != connection_id || account->group != group ||
                       !account->is_connected)) {
        account = account->next;
    }
    return account;
}

static void free_if_unused(Accounts *accounts, Account *account)
{
    if (account->is_connected || account->held > 0) return;
    Account **link = &accounts->buckets[account->connection_id % BUCKETS];
    while (*link != account)
        link = &(*link)->next;
    *link = account->next;
    free(account);
}

void account_close(Accounts *accounts, Account *account)
{
    account->is_connected = false;
    account->group->count--;
    free_if_unused(accounts, account);
}

void account_hold(Account *account)
{
    account->held++;
}

void account_release(Accounts *accounts, Account *account)
{
    account->held--;
    free_if_unused(accounts, account);
}

bool account_begin(AccountEntry *entry)
{
    Account *account = entry->account;
    entry->is_running = account->running < CLIENT_REQUESTS_MAX;
    if (entry->is_running) account->running++;
    return entry->is_running;
}

TurnResult account_turn(Accounts *accounts, AccountEntry *entry)
{
    Account *account = entry->account;
    if (account->unsent_bytes <= CLIENT_UNSENT_BYTES_READY) return TURN_NOW;
    if (accounts->waiting_bytes + entry->bytes > WAITING_BYTES_MAX) return TURN_NEVER;
    accounts->waiting_bytes += entry->bytes;
    entry->next = NULL;
    *account->waiting_end = entry;
    account->waiting_end = &entry->next;
    return TURN_LATER;
}

// Lists the account if one of its requests may run. Called whenever a reply of it is sent or
// dropped, which is often enough: an account with waiting requests has unsent replies.
static void list_ready(Accounts *accounts, Account *account)
{
    if (!account->waiting || account->is_ready) return;
    if (account->is_connected && account->unsent_bytes > CLIENT_UNSENT_BYTES_READY) return;
    account->is_ready = true;
    account->next_ready = NULL;
    *accounts->ready_end = account;
    accounts->ready_end = &account->next_ready;
}

AccountEntry *accounts_next(Accounts *accounts)
{
    Account *account = accounts->ready;
    if (!account) return NULL;
    accounts->ready = account->next_ready;
    if (!accounts->ready) accounts->ready_end = &accounts->ready;
    account->is_ready = false;
    AccountEntry *entry = account->waiting;
    account->waiting = entry->next;
    accounts->waiting_bytes -= entry->bytes;
    if (!account->waiting) account->waiting_end = &account->waiting;
    list_ready(accounts, account); // behind the others
    return entry;
}

bool account_answered(Accounts *accounts, AccountEntry *entry)
{
    Account *account = entry->account;
    if (entry->is_running) account->running--;
    account->unsent++;
    account->unsent_bytes += entry->bytes;
    accounts->unsent_bytes += entry->bytes;
    entry->look = accounts->look;
    entry->next = &accounts->unsent;
    entry->previous = accounts->unsent.previous;
    entry->next->previous = entry->previous->next = entry;
    // One reply may always be unsent: a peer that reads one by one is not cut off for the others.
    return account->unsent == 1 || (account->unsent <= CLIENT_UNSENT_MAX &&
                                    account->unsent_bytes <= CLIENT_UNSENT_BYTES_MAX &&
                                    accounts->unsent_bytes <= UNSENT_BYTES_MAX);
}

// Takes the entry out of the ring. Does nothing the second time.
static void unlink_entry(AccountEntry *entry)
{
    entry->next->previous = entry->previous;
    entry->previous->next = entry->next;
    entry->next = entry->previous = entry;
}

bool account_sent(Accounts *accounts, AccountEntry *entry, bool is_taken)
{
    Account *account = entry->account;
    if (is_taken) account->taken++;
    account->unsent--;
    account->unsent_bytes -= entry->bytes;
    accounts->unsent_bytes -= entry->bytes;
    unlink_entry(entry);
    list_ready(accounts, account);
    return accounts->ready != NULL;
}

bool accounts_look(Accounts *accounts)
{
    accounts->look++;
    return accounts->unsent.next != &accounts->unsent;
}

Account *accounts_overdue(Accounts *accounts)
{
    for (;;) {
        AccountEntry *oldest = accounts->unsent.next;
        if (oldest == &accounts->unsent || accounts->look - oldest->look <= UNSENT_LOOKS_MAX) {
            return NULL;
        }
        Account *account = oldest->account;
        unlink_entry(oldest);
        if (!account->is_connected || account->is_cut_off) continue;
        account->is_cut_off = true;
        account_hold(account);
        account_close(accounts, account);
        return account;
    }
}
