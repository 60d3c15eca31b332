// Accounts: what each connected peer has in flight, unsent and waiting, and whose turn it is.
//
// A request is *running* from its arrival until its reply is given to the listener. At most
// CLIENT_REQUESTS_MAX requests of a peer run at once; one more is refused. From then until the
// socket has taken it, the reply is *unsent*; a peer with too many unsent replies is cut off. The
// two are counted apart because a peer may have read a reply, and sent its next request, before the
// socket reports that the reply was sent.
//
// While more than CLIENT_UNSENT_BYTES_READY of a peer are unsent, its further requests *wait for
// their turn*: a peer that does not read costs no more work and memory than that.
//
// A reply that stays unsent for more than UNSENT_LOOKS_MAX looks is overdue. Looks are counted, not
// time: while the process is stopped, no peer is late.
//
// Nothing here locks. One mutex of the caller guards an Accounts and everything in it.

#pragma once

#include "base/error.h"

typedef struct Accounts Accounts;

// The connections of one listener. They have a limit of their own.
typedef struct AccountGroup {
    size_t count_max;
    size_t count; // open ones
} AccountGroup;

typedef struct AccountEntry AccountEntry;

// One peer's account. The first three fields never change and need no mutex.
typedef struct Account {
    AccountGroup *group;
    uint32_t connection_id; // unique among the open connections of the group
    void *connection;       // belongs to the listener
    bool is_connected;
    bool is_cut_off; // its connection is being closed for what it leaves unread

    // Private to account.c.
    bool is_ready;                        // in the list of those whose turn may have come
    size_t held, running, unsent;         // requests
    size_t unsent_bytes;                  //
    uint64_t taken;                       // replies
    AccountEntry *waiting, **waiting_end; // oldest first; they count as running
    struct Account *next;                 // in its bucket
    struct Account *next_ready;
} Account;

// What an account keeps of one request: a part of the request, owned by the caller.
struct AccountEntry {
    Account *account; // the caller sets it, and holds the account for as long as the entry lives
    size_t bytes;     // the caller sets it: of the request before account_turn, of the reply later

    // Private to account.c.
    bool is_running;
    AccountEntry *next, *previous;
    uint64_t look;
};

// Returns ERROR_OUT_OF_MEMORY.
MUST_USE Error accounts_open(Accounts **out);

// Frees all accounts; none may be held. NULL is allowed.
void accounts_close(Accounts *accounts);

// Opens the account of a new connection. Returns NULL if the group is full or there is no memory.
Account *account_open(Accounts *accounts, AccountGroup *group, uint32_t connection_id,
                      void *connection);

// Returns the open account of a connection, or NULL.
Account *account_find(Accounts *accounts, const AccountGroup *group, uint32_t connection_id);

// The connection is gone. The account is freed when it is not held any more.
void account_close(Accounts *accounts, Account *account);

// Keeps an account, open or not, until it is released as often as it was held.
void account_hold(Account *account);
void account_release(Accounts *accounts, Account *account);

// A request has arrived. Returns false if too many of its peer are running: it must be refused.
// account_answered must follow in either case.
MUST_USE bool account_begin(AccountEntry *entry);

typedef enum TurnResult {
    TURN_NOW,   // the request may run
    TURN_LATER, // accounts_next returns it when it may
    TURN_NEVER, // WAITING_BYTES_MAX are waiting already: the request must be refused
} TurnResult;

MUST_USE TurnResult account_turn(Accounts *accounts, AccountEntry *entry);

// Returns a request of any peer whose turn has come, or NULL. If its peer is no longer connected,
// the request must be refused.
AccountEntry *accounts_next(Accounts *accounts);

// The reply is about to be given to the listener. Returns false if too much is unsent, of this peer
// or of all: the peer must be cut off. account_sent must follow in either case.
MUST_USE bool account_answered(Accounts *accounts, AccountEntry *entry);

// The socket has taken the reply, or never will. Returns true if accounts_next has a request.
MUST_USE bool account_sent(Accounts *accounts, AccountEntry *entry, bool is_taken);

// Looks once. Returns true if there are unsent replies: look again later.
MUST_USE bool accounts_look(Accounts *accounts);

// Returns an account with an overdue reply, held, or NULL. It counts as closed and cut off from now
// on; the caller closes its connection and releases it.
Account *accounts_overdue(Accounts *accounts);
