// Steps on open messages.

#include "open_message.h"

#include <stdio.h>

#include "store/check.h"

const char *open_ok(Fixture *f, const char *session, Role role)
{
    return entry_ok(f, session, &(NewMessage){.role = role, .status = MESSAGE_STATUS_OPEN})->id;
}

Part *text_part(Fixture *f, const char *id, const char *text)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->id = CHARS(id);
    part->kind_case = PART__KIND_TEXT;
    part->text = fixture_alloc(f, sizeof(Text));
    part->text->text = CHARS(text);
    return part;
}

Part *tool_part(Fixture *f, const char *id, const char *name, ToolState state)
{
    Part *part = fixture_alloc(f, sizeof(Part));
    part->id = CHARS(id);
    part->kind_case = PART__KIND_TOOL_USE;
    part->tool_use = fixture_alloc(f, sizeof(ToolUse));
    part->tool_use->id = "call-1";
    part->tool_use->name = CHARS(name);
    part->tool_use->state = state;
    return part;
}

Receipt *append_part_ok(Fixture *f, const char *message, Part *part)
{
    return CALL_OK(f, append_part, AppendPart, {.message_id = CHARS(message), .part = part})
        ->receipt;
}

void append_part_fails(Fixture *f, const char *message, Part *part, const char *reason)
{
    CALL_FAILS(f, append_part, AppendPart, reason, {.message_id = CHARS(message), .part = part});
}

Receipt *seal_ok(Fixture *f, const char *message, SealMessageRequest request)
{
    request.message_id = CHARS(message);
    return CALL_OK(f, seal_message, SealMessage, request)->receipt;
}

void seal_fails(Fixture *f, const char *message, SealMessageRequest request, const char *reason)
{
    request.message_id = CHARS(message);
    CALL_FAILS(f, seal_message, SealMessage, reason, request);
}

const char *parts_of(Fixture *f, const char *message)
{
    Message *got = message_ok(f, message);
    size_t room = 1;
    for (size_t i = 0; i < got->n_parts; i++) {
        const Part *part = got->parts[i];
        bool is_text = part->kind_case == PART__KIND_TEXT;
        room += strlen(part->id) + 8 + strlen(is_text ? part->text->text : part->tool_use->name);
    }
    char *text = fixture_alloc(f, room);
    size_t size = 0;
    for (size_t i = 0; i < got->n_parts; i++) {
        const Part *part = got->parts[i];
        const char *gap = i ? " " : "";
        if (part->kind_case == PART__KIND_TEXT) {
            size += (size_t)snprintf(text + size, room - size, "%s%s=%s", gap, part->id,
                                     part->text->text);
        } else {
            size += (size_t)snprintf(text + size, room - size, "%s%s:%s/%d", gap, part->id,
                                     part->tool_use->name, (int)part->tool_use->state);
        }
    }
    return text;
}

static void note_damage(void *context, const Damage *damage)
{
    (void)context;
    printf("%s\n", damage->text);
}

void check_store_ok(Fixture *f)
{
    StoreCheckOptions options = {note_damage, NULL};
    StoreCheckResult result;
    CHECK_EQ(store_check(engine_store(f->engine), &options, &result), ERROR_NONE);
    CHECK_EQ(result.damage_count, 0);
}
