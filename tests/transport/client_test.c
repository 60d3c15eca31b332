// What is kept of connections: which of them leave a reply unread for too long.

#include "base/limits.h"
#include "harness.h"
#include "transport/client.h"

static Clients *clients_make(void)
{
    Clients *clients;
    CHECK_EQ(clients_open(CLIENTS_MAX, &clients), ERROR_NONE);
    return clients;
}

// A reply is on its way to a connection.
static void answer(Clients *clients, uint32_t pipe_id, ClientReply *reply)
{
    bool may_run;
    Client *client = clients_request(clients, pipe_id, &may_run);
    CHECK(client != NULL && may_run);
    reply->bytes = 100;
    CHECK(client_answered(clients, client, may_run, reply));
}

static void look(Clients *clients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(clients_look(clients));
}

TEST(who_leaves_a_reply_for_too_many_looks_is_overdue_once)
{
    Clients *clients = clients_make();
    ClientReply slow[3], quick;
    CHECK(clients_add(clients, 1, false) && clients_add(clients, 2, false));
    for (size_t i = 0; i < 3; i++)
        answer(clients, 1, &slow[i]);
    look(clients, UNSENT_LOOKS_MAX);
    answer(clients, 2, &quick);
    CHECK_EQ(clients_overdue(clients), 0);
    look(clients, 1);
    CHECK_EQ(clients_overdue(clients), 1);
    CHECK_EQ(clients_overdue(clients), 0);
    CHECK_EQ(clients_count(clients), 1); // it counts as gone
    for (size_t i = 0; i < 3; i++)
        CHECK(!client_sent(clients, &slow[i], /* is_taken= */ false));
    clients_remove(clients, 1);
    look(clients, UNSENT_LOOKS_MAX - 1);
    CHECK_EQ(clients_overdue(clients), 0);
    look(clients, 1);
    CHECK_EQ(clients_overdue(clients), 2);
    CHECK(!client_sent(clients, &quick, /* is_taken= */ true));
    CHECK_EQ(clients_count(clients), 0);
    clients_close(clients);
}

TEST(a_reply_that_is_taken_is_not_looked_at)
{
    Clients *clients = clients_make();
    ClientReply first, second;
    CHECK(clients_add(clients, 1, false));
    answer(clients, 1, &first);
    look(clients, UNSENT_LOOKS_MAX);
    answer(clients, 1, &second);
    CHECK(!client_sent(clients, &first, /* is_taken= */ true));
    look(clients, UNSENT_LOOKS_MAX);
    CHECK_EQ(clients_overdue(clients), 0);
    CHECK(!client_sent(clients, &second, /* is_taken= */ true));
    CHECK(!clients_look(clients)); // nobody need look again
    clients_close(clients);
}

TEST(requests_that_wait_for_their_turn_have_a_limit_of_bytes_over_all_connections)
{
    Clients *clients = clients_make();
    ClientReply replies[2];
    ClientTurn turns[4] = {{.bytes = WAITING_BYTES_MAX - 10}, {.bytes = 10}, {.bytes = 1}};
    Client *client[2];
    bool may_run, is_connected;
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(clients_add(clients, i + 1, false));
        client[i] = clients_request(clients, i + 1, &may_run);
        CHECK_EQ(client_turn(clients, client[i], &turns[3]), TURN_NOW);
        replies[i].bytes = CLIENT_UNSENT_BYTES_READY + 1;
        CHECK(client_answered(clients, client[i], may_run, &replies[i]));
        client[i] = clients_request(clients, i + 1, &may_run);
    }
    CHECK_EQ(client_turn(clients, client[0], &turns[0]), TURN_LATER);
    CHECK_EQ(client_turn(clients, client[1], &turns[1]), TURN_LATER);
    CHECK_EQ(client_turn(clients, client[1], &turns[2]), TURN_NEVER);
    CHECK(client_sent(clients, &replies[1], /* is_taken= */ true));
    CHECK(clients_next(clients, &is_connected) == &turns[1]);
    CHECK(clients_next(clients, &is_connected) == NULL);
    CHECK_EQ(client_turn(clients, client[0], &turns[1]), TURN_LATER); // there is room again
    CHECK_EQ(client_turn(clients, client[0], &turns[2]), TURN_NEVER);
    CHECK(client_sent(clients, &replies[0], /* is_taken= */ true));
    CHECK(clients_next(clients, &is_connected) == &turns[0]);
    CHECK(clients_next(clients, &is_connected) == &turns[1]);
    clients_close(clients);
}
