// The handlers of golden/shelf.proto, compiled and linked by codegen_test.c against the golden
// dispatch table: whole, without one handler, and with one too many.

#include "dispatch_table.h"

#include <stdio.h>
#include <string.h>

struct Rpc {
    const char *handler;
};

Error check_put_book(Rpc *rpc, PutBookRequest *request)
{
    rpc->handler = "check_put_book";
    request->place = 7;
    request->expected_place_case = PUT_BOOK_REQUEST__EXPECTED_PLACE_PLACE;
    return ERROR_NONE;
}

Error handle_put_book(Rpc *rpc, const PutBookRequest *request, PutBookResponse *response)
{
    rpc->handler = request->place == 7 ? "handle_put_book" : "handle_put_book without check";
    response->id = (char *)"book-1";
    return ERROR_NONE;
}

Error handle_get_isbn(Rpc *rpc, const GetISBNRequest *request, GetISBNResponse *response)
{
    (void)request;
    (void)response;
    rpc->handler = "handle_get_isbn";
    return ERROR_NONE;
}

Error check_burn_book(Rpc *rpc, BurnBookRequest *request)
{
    (void)rpc;
    (void)request;
    return ERROR_NONE;
}

#ifndef WITHOUT_HANDLER
Error handle_burn_book(Rpc *rpc, const BurnBookRequest *request, BurnBookResponse *response)
{
    (void)rpc;
    (void)request;
    (void)response;
    return ERROR_NONE;
}
#endif

#ifdef WITH_HANDLER_OF_NO_CALL
Error handle_steal_book(Rpc *rpc, const BurnBookRequest *request, BurnBookResponse *response)
{
    return handle_burn_book(rpc, request, response);
}
#endif

static const Method *find(const char *path)
{
    return method_find(path, strlen(path));
}

// Says what is wrong by its exit code: the number of the first rule that does not hold.
int main(void)
{
    Rpc rpc = {0};
    PutBookRequest request = PUT_BOOK_REQUEST__INIT;
    PutBookResponse response = PUT_BOOK_RESPONSE__INIT;

    const Method *put = find("/sample.v1.ShelfService/PutBook");
    if (put != &METHODS[METHOD_PUT_BOOK]) return 1;
    if (put->request != &put_book_request__descriptor) return 2;
    if (!put->is_write || put->check(&rpc, &request.base)) return 3;
    if (strcmp(rpc.handler, "check_put_book") != 0) return 4;
    if (put->run(&rpc, &request.base, &response.base)) return 5;
    if (strcmp(rpc.handler, "handle_put_book") != 0) return 6;
    if (strcmp(response.id, "book-1") != 0) return 7;

    const Method *get = find("/sample.v1.ShelfService/GetISBN");
    if (!get || get->is_write || get->check) return 8;
    if (!find("/sample.v1.ShelfService/BurnBook")->is_write) return 9;

    if (find("") || find("/") || find("/sample.v1.ShelfService/GetISB")) return 10;
    if (find("/sample.v1.ShelfService/PutBookX") || find("/zzz")) return 11;
    const Method *watch = find("/sample.v1.ShelfService/WatchShelf");
    if (!watch || !watch->is_stream || watch->is_write || watch->run || get->is_stream) return 12;
    if (method_find("/sample.v1.ShelfService/PutBook\0x", 33)) return 13;
    return 0;
}
