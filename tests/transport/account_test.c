// Accounts: which peers leave a reply unread for too long, and whose requests wait.

#include "transport/account.h"

#include "base/limits.h"
#include "harness.h"

typedef struct Book {
    Accounts *accounts;
    AccountGroup group;
} Book;

static void book_open(Book *book)
{
    *book = (Book){.group = {.count_max = CLIENTS_MAX}};
    CHECK_EQ(accounts_open(&book->accounts), ERROR_NONE);
}

static void book_close(Book *book)
{
    accounts_close(book->accounts);
}

static Account *book_connect(Book *book, uint32_t connection_id)
{
    Account *account = account_open(book->accounts, &book->group, connection_id, NULL);
    CHECK(account != NULL);
    return account;
}

// A request has arrived.
static void begin(Account *account, AccountEntry *entry, size_t bytes)
{
    *entry = (AccountEntry){.account = account, .bytes = bytes};
    account_hold(account);
    CHECK(account_begin(entry));
}

// A reply is on its way to its peer.
static void answer(Book *book, Account *account, AccountEntry *entry, size_t bytes)
{
    begin(account, entry, 0);
    entry->bytes = bytes;
    CHECK(account_answered(book->accounts, entry));
}

static bool end(Book *book, AccountEntry *entry, bool is_taken)
{
    bool has_turn = account_sent(book->accounts, entry, is_taken);
    account_release(book->accounts, entry->account);
    return has_turn;
}

static void look(Book *book, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(accounts_look(book->accounts));
}

static uint32_t overdue(Book *book)
{
    Account *account = accounts_overdue(book->accounts);
    if (!account) return 0;
    uint32_t connection_id = account->connection_id;
    account_release(book->accounts, account);
    return connection_id;
}

TEST(who_leaves_a_reply_for_too_many_looks_is_overdue_once)
{
    CLEANUP(book_close) Book book;
    book_open(&book);
    AccountEntry slow[3], quick;
    Account *first = book_connect(&book, 1), *second = book_connect(&book, 2);
    for (size_t i = 0; i < 3; i++)
        answer(&book, first, &slow[i], 100);
    look(&book, UNSENT_LOOKS_MAX);
    answer(&book, second, &quick, 100);
    CHECK_EQ(overdue(&book), 0);
    look(&book, 1);
    CHECK_EQ(overdue(&book), 1);
    CHECK_EQ(overdue(&book), 0);
    CHECK_EQ(book.group.count, 1); // it counts as gone
    CHECK(account_find(book.accounts, &book.group, 1) == NULL);
    for (size_t i = 0; i < 3; i++)
        CHECK(!end(&book, &slow[i], /* is_taken= */ false));
    look(&book, UNSENT_LOOKS_MAX - 1);
    CHECK_EQ(overdue(&book), 0);
    look(&book, 1);
    CHECK_EQ(overdue(&book), 2);
    CHECK(!end(&book, &quick, /* is_taken= */ true));
    CHECK_EQ(book.group.count, 0);
}

TEST(a_reply_that_is_taken_is_not_looked_at)
{
    CLEANUP(book_close) Book book;
    book_open(&book);
    AccountEntry first, second;
    Account *account = book_connect(&book, 1);
    answer(&book, account, &first, 100);
    look(&book, UNSENT_LOOKS_MAX);
    answer(&book, account, &second, 100);
    CHECK(!end(&book, &first, /* is_taken= */ true));
    look(&book, UNSENT_LOOKS_MAX);
    CHECK_EQ(overdue(&book), 0);
    CHECK(!end(&book, &second, /* is_taken= */ true));
    CHECK(!accounts_look(book.accounts)); // nobody need look again
}

TEST(requests_that_wait_for_their_turn_have_a_limit_of_bytes_over_all_connections)
{
    CLEANUP(book_close) Book book;
    book_open(&book);
    AccountEntry replies[2], waiting[5];
    Account *accounts[] = {book_connect(&book, 1), book_connect(&book, 2)};
    for (size_t i = 0; i < 2; i++) {
        begin(accounts[i], &replies[i], 1);
        CHECK_EQ(account_turn(book.accounts, &replies[i]), TURN_NOW);
        replies[i].bytes = CLIENT_UNSENT_BYTES_READY + 1;
        CHECK(account_answered(book.accounts, &replies[i]));
    }
    begin(accounts[0], &waiting[0], WAITING_BYTES_MAX - 10);
    begin(accounts[1], &waiting[1], 10);
    begin(accounts[1], &waiting[2], 1);
    CHECK_EQ(account_turn(book.accounts, &waiting[0]), TURN_LATER);
    CHECK_EQ(account_turn(book.accounts, &waiting[1]), TURN_LATER);
    CHECK_EQ(account_turn(book.accounts, &waiting[2]), TURN_NEVER);
    CHECK(end(&book, &replies[1], /* is_taken= */ true));
    CHECK(accounts_next(book.accounts) == &waiting[1]);
    CHECK(accounts_next(book.accounts) == NULL);
    begin(accounts[0], &waiting[3], 10);
    begin(accounts[0], &waiting[4], 1);
    CHECK_EQ(account_turn(book.accounts, &waiting[3]), TURN_LATER); // there is room again
    CHECK_EQ(account_turn(book.accounts, &waiting[4]), TURN_NEVER);
    CHECK(end(&book, &replies[0], /* is_taken= */ true));
    CHECK(accounts_next(book.accounts) == &waiting[0]);
    CHECK(accounts_next(book.accounts) == &waiting[3]);
}
