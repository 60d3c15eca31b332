// The busy day.

#include "check_day.h"

#include <stdio.h>

#include "store/event.h"
#include "store/memory.h"
#include "store/message_remove.h"
#include "store/operation.h"
#include "store/purge.h"
#include "store/session_update.h"
#include "store/todo.h"
#include "store/totals.h"

static void note_found(void *context, const Damage *damage)
{
    Found *found = context;
    size_t used = strlen(found->text);
    snprintf(found->text + used, sizeof(found->text) - used, "%s: %s\n", damage_name(damage->kind),
             damage->text);
}

void check_store(StoreFixture *f, Found *found)
{
    *found = (Found){.text = ""};
    StoreCheckOptions options = {note_found, found};
    CHECK_EQ(store_check(f->store, &options, &found->result), ERROR_NONE);
}

void check_clean(StoreFixture *f)
{
    Found found;
    check_store(f, &found);
    CHECK_STR(found.text, "");
    CHECK_EQ(found.result.damage_count, 0);
}

void check_finds(StoreFixture *f, DamageKind kind, const char *named)
{
    Found found;
    check_store(f, &found);
    printf("%s", found.text);
    CHECK(found.result.counts[kind] > 0);
    CHECK(strstr(found.text, damage_name(kind)) != NULL);
    CHECK(strstr(found.text, named) != NULL);
}

static NewMessage *tool_message(StoreFixture *f)
{
    NewMessage *message = text_message(f, ROLE_ASSISTANT, "I look at the file");
    Part *part = arena_new(&f->arena, Part);
    ToolUse *use = arena_new(&f->arena, ToolUse);
    tine__v1__part__init(part);
    tine__v1__tool_use__init(use);
    use->id = "toolu_1";
    use->name = "read";
    use->input_case = TOOL_USE__INPUT_INPUT_JSON;
    use->input_json = "{}";
    part->kind_case = PART__KIND_TOOL_USE;
    part->tool_use = use;
    add_part(f, message, part);
    External *external = arena_new(&f->arena, External);
    tine__v1__external__init(external);
    external->source = "pi";
    external->id = "entry-1";
    message->external = external;
    Usage *usage = arena_new(&f->arena, Usage);
    tine__v1__usage__init(usage);
    usage->input_tokens = 100;
    usage->output_tokens = -7;
    usage->cost_nano_usd = INT64_C(1) << 40;
    message->usage = usage;
    return message;
}

static NewMessage *marker_message(StoreFixture *f, Ulid cut_off)
{
    NewMessage *message = entry(f, MESSAGE_KIND_COMPACTION, "");
    message->marker = arena_new(&f->arena, Marker);
    tine__v1__marker__init(message->marker);
    message->marker->before_message_id = id_text(f, cut_off);
    message->marker->summary = "what was before";
    return message;
}

char *long_text(StoreFixture *f, size_t size)
{
    char *text = arena_alloc(&f->arena, size + 1);
    CHECK(text != NULL);
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

static void busy_root(StoreFixture *f, Day *day)
{
    Session *settings = new_settings(f);
    External external = EXTERNAL__INIT;
    external.source = "hecate";
    external.id = "run-1";
    settings->external = &external;
    settings->slug = "first";
    settings->workspace_id = "w";
    settings->data_json = long_text(f, 20000);
    day->root = create_session(f, settings, NULL);
    day->first = append_text(f, day->root, ROLE_USER, "hello");
    day->answer = append_text(f, day->root, ROLE_ASSISTANT, "good day");
    day->agent = subagent_session(f, day->root);
    append_text(f, day->agent, ROLE_USER, "look there");
    MessageAppend propagating = {.session = day->agent, .propagate_usage = true};
    append_message(f, propagating, tool_message(f));
    f->now_ms += 1000;
    day->tool = append_message(f, (MessageAppend){.session = day->root}, tool_message(f));
    day->marker =
        append_message(f, (MessageAppend){.session = day->root}, marker_message(f, day->first));
    append_message(f, (MessageAppend){.session = day->root},
                   entry(f, MESSAGE_KIND_SETTING, "high"));
    day->large = append_message(f, (MessageAppend){.session = day->root},
                                text_message(f, ROLE_USER, long_text(f, 200000)));
}

static void busy_branches(StoreFixture *f, Day *day)
{
    day->fork = fork_session(f, day->root, (ForkPoint){FORK_THROUGH, day->answer});
    append_text(f, day->fork, ROLE_USER, "another way");
    fork_session(f, day->fork, (ForkPoint){.kind = FORK_AT_HEAD});
    fork_session(f, day->root, (ForkPoint){FORK_BEFORE, day->first});

    day->rewound = primary_session(f);
    Ulid kept = append_text(f, day->rewound, ROLE_USER, "one");
    Ulid left = append_text(f, day->rewound, ROLE_ASSISTANT, "two");
    STEP(f, session_rewind(txn, &(Rewind){.session = day->rewound, .message = kept}));
    append_text(f, day->rewound, ROLE_USER, "three");
    MessageAppend beside = {.session = day->rewound, .has_parent = true, .parent = left};
    append_message(f, beside, text_message(f, ROLE_USER, "after two"));
    STEP(f, session_rewind(txn, &(Rewind){.session = day->rewound}));
    append_text(f, day->rewound, ROLE_USER, "anew");

    day->tombstone = primary_session(f);
    append_message(f, (MessageAppend){.session = day->tombstone}, tool_message(f));
    day->tombstone_fork = fork_session(f, day->tombstone, (ForkPoint){.kind = FORK_AT_HEAD});
    append_text(f, day->tombstone_fork, ROLE_USER, "reads on");
    subagent_session(f, day->tombstone);
    bool is_kept;
    STEP(f, purge_session(txn, day->tombstone, /* keep_for_forks= */ true, &is_kept));
    CHECK(is_kept);
    Ulid gone = fork_session(f, day->root, (ForkPoint){.kind = FORK_AT_HEAD});
    append_text(f, gone, ROLE_USER, "soon gone");
    STEP(f, purge_session(txn, gone, /* keep_for_forks= */ false, &is_kept));
}

static void busy_side(StoreFixture *f, Day *day)
{
    NewMemory memory = NEW_MEMORY__INIT;
    memory.scope = MEMORY_SCOPE_SESSION;
    memory.content = long_text(f, 9000);
    Ulid id;
    STEP(f, memory_remember(txn, day->root, &memory, &id));
    STEP(f, memory_forget(txn, day->root, id));
    STEP(f, memory_remember(txn, day->root, &memory, &id));
    TodoItem item = TODO_ITEM__INIT;
    item.content = "write";
    item.status = "in_progress";
    TodoItem *items[] = {&item, &item};
    STEP(f, todo_replace(txn, day->root, items, 2));
    Totals delta = TOTALS__INIT;
    delta.input_tokens = 5;
    STEP(f, totals_update(txn, day->root, &delta));
    TotalsUpdate **updates;
    size_t count;
    STEP(f, totals_propagate_call(txn, day->agent, &delta, &updates, &count));
    Event event = EVENT__INIT;
    event.type = "custom";
    STEP(f, event_put(txn, ULID_ZERO, NULL, &event));
    STEP(f, operation_put(txn, slice_of("op-1"), hash_bytes(slice_of("r")), slice_of("reply")));
    STEP(f, operation_put(txn, slice_of("op-2"), hash_bytes(slice_of("r")), slice_of("reply")));
    STEP(f, session_rename(txn, day->fork, "second", SLUG_POLICY_UNIQUE));
    STEP(f, session_set_deleted(txn, day->agent, true));
}

static void busy_removals(StoreFixture *f, Day *day)
{
    day->removed = primary_session(f);
    append_text(f, day->removed, ROLE_USER, "first");
    Ulid tool = append_message(f, (MessageAppend){.session = day->removed}, tool_message(f));
    Ulid marker =
        append_message(f, (MessageAppend){.session = day->removed}, marker_message(f, tool));
    Ulid other = append_message(f, (MessageAppend){.session = day->removed},
                                text_message(f, ROLE_USER, long_text(f, 4040)));
    Receipt receipt = RECEIPT__INIT;
    STEP(f, message_delete(txn, tool, &receipt));
    STEP(f, message_purge(txn, tool, &receipt));
    STEP(f, message_purge(txn, marker, &receipt));
    STEP(f, message_delete(txn, other, &receipt));
    append_text(f, day->removed, ROLE_ASSISTANT, "last");
}

StoreFixture *busy_day(Day *day)
{
    StoreFixture *f = store_fixture_open();
    busy_root(f, day);
    busy_branches(f, day);
    busy_side(f, day);
    busy_removals(f, day);
    return f;
}
