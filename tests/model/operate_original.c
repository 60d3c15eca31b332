// Operations on originals: the bytes that entries were imported from.

#include "operate.h"

// Mostly short, at times of several chunks; any bytes.
ProtobufCBinaryData operate_random_original(Run *run)
{
    size_t size = 1 + run_below(run, run_chance(run, 15) ? 12000 : 60);
    uint8_t *bytes = run_alloc(run, size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)run_below(run, 256);
    return (ProtobufCBinaryData){size, bytes};
}

void operate_original_note(Entry *entry, ProtobufCBinaryData content)
{
    entry->has_original = true;
    entry->original = hash_bytes(slice(content.data, content.len));
}

void operate_put_original(Run *run)
{
    PutOriginalRequest request = PUT_ORIGINAL_REQUEST__INIT;
    const char *reason;
    EntryPick victim = pick_victim(run, &reason);
    Entry *entry = victim.entry;
    request.message_id = text_of(victim.id);
    request.content = operate_random_original(run);
    if (!*reason && entry->is_purged) reason = "MESSAGE_SEALED";
    if (run_below(run, 30) == 0) {
        request.content.len = 0;
        reason = "INVALID_ARGUMENT";
    }
    PutOriginalResponse *response = RUN_CALL(run, PUT_ORIGINAL, PutOriginal, &request, reason);
    if (!response) return;
    operate_check_receipt(run, response->receipt, entry);
    operate_original_note(entry, request.content);
}
