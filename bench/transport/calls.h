// Calls of tined that more than one file measures.

#pragma once

#include "channel.h"
#include "echo.h"
#include "peers.h"
#include "tine_calls.h"

// A client of a peer; `scheme` is "ipc" or "nng+ipc". It waits for the server.
Tine *tine_of(const Peer *peer, const char *scheme);

// One GetSession by libtine, decoded.
typedef struct GetCall {
    Tine *tine;
    const char *session;
} GetCall;

void get_call(void *context);

// What an encoded Request of AppendMessage asks for; the caller frees it.
AppendMessageRequest *append_message_of(const Buffer *request);

// `operation_id`: NULL for one that libtine makes, "" for none.
void append_by_libtine(Tine *tine, const AppendMessageRequest *request, const char *operation_id);

// One encoded request to a channel, its reply not decoded.
typedef struct ChannelWay {
    Channel *channel;
    Slice request;
    size_t reply_bytes; // out: of the last one
} ChannelWay;

Channel *sp_channel_of(const Peer *peer);
void channel_way_call(void *context);

// One echo of these sizes.
typedef struct EchoWay {
    RawEcho *raw; // or
    NngEcho *nng;
    size_t request_bytes, reply_bytes;
} EchoWay;

void echo_way_call(void *context);
