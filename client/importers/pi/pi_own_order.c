// Holding entries back, sorted by their places.

#include "importers/pi/pi_own_order.h"

#include <stdlib.h>
#include <string.h>

uint32_t pi_position_of(const Message *message)
{
    static const char BEGINNING[] = "{\"" PI_POSITION_NAME "\":";
    size_t size = strlen(BEGINNING);
    if (strncmp(message->data_json, BEGINNING, size) != 0) return UINT32_MAX;
    return (uint32_t)strtoul(message->data_json + size, NULL, 10);
}

static void held_free(PiHeld *held)
{
    protobuf_c_message_free_unpacked(&held->message->base, NULL);
    if (held->original) protobuf_c_message_free_unpacked(&held->original->base, NULL);
}

void pi_own_order_free(PiOwnOrder *order)
{
    for (size_t i = 0; i < order->count; i++)
        held_free(&order->held[i]);
    free(order->held);
    *order = (PiOwnOrder){.held = NULL};
}

static size_t bytes_of(const PiHeld *held)
{
    size_t size = protobuf_c_message_get_packed_size(&held->message->base);
    return size + (held->original ? held->original->content.len : 0);
}

Error pi_own_order_hold(PiOwnOrder *order, uint32_t position, Message *message, Original *original)
{
    PiHeld held = {position, message, original};
    if (order->count == order->capacity) {
        size_t capacity = order->capacity > 0 ? order->capacity * 2 : 64;
        PiHeld *list = realloc(order->held, capacity * sizeof(*list));
        if (!list) {
            held_free(&held);
            return ERROR_OUT_OF_MEMORY;
        }
        order->held = list;
        order->capacity = capacity;
    }
    order->bytes += bytes_of(&held);
    size_t at = order->count++;
    for (; at > 0 && order->held[at - 1].position < position; at--)
        order->held[at] = order->held[at - 1];
    order->held[at] = held;
    return ERROR_NONE;
}

bool pi_own_order_take(PiOwnOrder *order, bool is_end, PiHeld *out)
{
    if (order->count == 0) return false;
    const PiHeld *least = &order->held[order->count - 1];
    if (!is_end && least->position > order->next) return false;
    *out = *least;
    order->bytes -= bytes_of(out);
    order->count--;
    order->next++;
    return true;
}
