// The server itself: Health, Describe, Stats.

#include <stdlib.h>

#include "base/limits.h"
#include "dispatch_table.h"
#include "entries.h"
#include "raw.h"
#include "rpc/field_rules.h"
#include "wire/wire.h"

TEST(health_is_ready_and_knows_the_disk)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    HealthResponse *health = CALL_OK(f, health, Health, {.base.n_unknown_fields = 0});
    CHECK(health->ready);
    CHECK(health->disk_total_bytes > 0);
    CHECK(health->disk_free_bytes <= health->disk_total_bytes);
    CHECK(health->store_bytes > 0);
    uint64_t before = health->store_bytes;
    append_ok(f, session_ok(f), ROLE_USER, filled(f, 'x', 1024 * 1024));
    health = CALL_OK(f, health, Health, {.base.n_unknown_fields = 0});
    CHECK(health->store_bytes >= before + 1024 * 1024);
}

static DescribeResponse *describe(Fixture *f)
{
    return CALL_OK(f, describe, Describe, {.base.n_unknown_fields = 0});
}

TEST(describe_says_versions_and_instance)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    DescribeResponse *described = describe(f);
    CHECK_STR(described->server_version, TINE_VERSION);
    CHECK_STR(described->api_version, "v1");
    CHECK_EQ(described->format_version, STORE_FORMAT_VERSION);
    CHECK_EQ(strlen(described->instance_id), 26);
    const char *instance = described->instance_id;
    fixture_reopen(f);
    CHECK_STR(describe(f)->instance_id, instance);
    CHECK_STR(CALL_OK(f, list_events, ListEvents, {.limit = 1})->instance_id, instance);
}

TEST(a_stream_is_not_the_servers_and_it_says_whose)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    CHECK(METHODS[METHOD_WATCH_EVENTS].is_stream);
    raw_send(f, raw_request(f, "WatchEvents", NULL, raw_begin(f)));
    raw_expect(f, "UNIMPLEMENTED", "ListEvents");
    raw_expect(f, "UNIMPLEMENTED", "the client's channel");
}

// Numbers of google/protobuf/descriptor.proto.
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_SERVICE = 6,
    SERVICE_NAME = 1,
    SERVICE_METHOD = 2,
    METHOD_NAME = 1,
    METHOD_INPUT_TYPE = 2,
    METHOD_OPTIONS = 4,
    OPTION_IDEMPOTENCY_LEVEL = 34,
    NO_SIDE_EFFECTS = 1,
};

static const Method *method_named(Slice name)
{
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (slice_equal(slice_of(METHODS[i].name), name)) return &METHODS[i];
    }
    return NULL;
}

static size_t check_service(Slice service)
{
    WireField field, name, input, options, level;
    CHECK(wire_find(service, SERVICE_NAME, &name));
    CHECK(slice_equal(name.bytes, slice_of("StoreService")));
    size_t count = 0;
    while (wire_next(&service, &field)) {
        if (field.number != SERVICE_METHOD) continue;
        CHECK(wire_find(field.bytes, METHOD_NAME, &name));
        const Method *method = method_named(name.bytes);
        CHECK(method);
        CHECK(wire_find(field.bytes, METHOD_INPUT_TYPE, &input));
        CHECK(slice_equal(slice_skip(input.bytes, 1), slice_of(method->request->name)));
        bool is_read = wire_find(field.bytes, METHOD_OPTIONS, &options) &&
                       wire_find(options.bytes, OPTION_IDEMPOTENCY_LEVEL, &level) &&
                       level.value == NO_SIDE_EFFECTS;
        CHECK_EQ(is_read, !method->is_write);
        count++;
    }
    return count;
}

TEST(describe_brings_a_descriptor_set_that_names_all_methods)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    ProtobufCBinaryData set = describe(f)->descriptor_set;
    Slice rest = {set.data, set.len};
    WireField file, name, field;
    size_t files = 0, methods = 0;
    while (wire_next(&rest, &file)) {
        CHECK_EQ(file.number, SET_FILE);
        CHECK(wire_find(file.bytes, FILE_NAME, &name));
        CHECK(slice_starts_with(name.bytes, slice_of("tine/v1/")));
        CHECK(wire_find(file.bytes, FILE_PACKAGE, &name));
        CHECK(slice_equal(name.bytes, slice_of("tine.v1")));
        files++;
        Slice fields = file.bytes;
        while (wire_next(&fields, &field)) {
            if (field.number == FILE_SERVICE) methods += check_service(field.bytes);
        }
        CHECK_EQ(fields.size, 0);
    }
    CHECK_EQ(rest.size, 0);
    CHECK(files >= 2);
    CHECK_EQ(methods, METHOD_COUNT);
}

static uint64_t limit_named(const DescribeResponse *described, const char *name)
{
    for (size_t i = 0; i < described->n_limits; i++) {
        if (strcmp(described->limits[i]->name, name) == 0) return described->limits[i]->value;
    }
    CHECK_STR(name, "a limit that Describe names");
    return 0;
}

TEST(describe_names_the_limits)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    DescribeResponse *described = describe(f);
    CHECK_EQ(limit_named(described, "request_bytes"), REQUEST_BYTES_MAX);
    CHECK_EQ(limit_named(described, "page_bytes"), PAGE_BYTES_MAX);
    CHECK_EQ(limit_named(described, "page_bytes_default"), PAGE_BYTES_DEFAULT);
    CHECK_EQ(limit_named(described, "operation_id_bytes"), OPERATION_ID_BYTES_MAX);
    CHECK_EQ(limit_named(described, "string_bytes"), STRING_BYTES_MAX);
    CHECK_EQ(limit_named(described, "NewMessage.parts"), PART_COUNT_MAX);
    CHECK_EQ(limit_named(described, "Text.text"), REQUEST_BYTES_MAX);
    uint64_t max;
    const char *name;
    for (size_t i = 0; (name = field_rules_limit(i, &max)); i++) {
        CHECK_EQ(limit_named(described, name), max);
        CHECK(max > 0);
    }
}

static StatsResponse *stats_of(Fixture *f)
{
    return CALL_OK(f, stats, Stats, {.base.n_unknown_fields = 0});
}

static const MethodStats *method_stats(const StatsResponse *stats, const char *name)
{
    for (size_t i = 0; i < stats->n_methods; i++) {
        if (strcmp(stats->methods[i]->name, name) == 0) return stats->methods[i];
    }
    return NULL;
}

TEST(stats_count_calls_errors_and_latencies_of_each_method)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    for (int i = 0; i < 3; i++)
        append_ok(f, session, ROLE_USER, "m");
    entry_fails(f, session, &(NewMessage){.role = 0}, "INVALID_ARGUMENT");
    entry_fails(f, UNKNOWN_ID, text_message(f, ROLE_USER, "m"), "SESSION_NOT_FOUND");
    StatsResponse *stats = stats_of(f);
    const MethodStats *appends = method_stats(stats, "AppendMessage");
    CHECK(appends);
    CHECK_EQ(appends->calls, 5);
    CHECK_EQ(appends->errors, 2);
    uint64_t sum = 0;
    for (size_t i = 0; i < appends->n_latency_buckets; i++)
        sum += appends->latency_buckets[i];
    CHECK_EQ(sum, 5);
    CHECK_EQ(method_stats(stats, "CreateSession")->calls, 1);
    CHECK(!method_stats(stats, "PurgeSession"));
    CHECK_EQ(stats->started_at, f->now_ms);
}

TEST(stats_count_rows_batches_and_events)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    uint64_t batches = stats_of(f)->batches;
    append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    StatsResponse *stats = stats_of(f);
    CHECK_EQ(stats->batches, batches + 2);
    CHECK_EQ(stats->batched_requests, 3);
    CHECK_EQ(stats->queued_requests, 0);
    CHECK_EQ(stats->queued_bytes, 0);
    CHECK_EQ(stats->batches_rerun, 0);
    CHECK_EQ(stats->purges_pending, 0);
    CHECK_EQ(stats->oldest_event_sequence, 1);
    CHECK_EQ(stats->newest_event_sequence, 3);
    CHECK_EQ(stats->n_tables, TABLE_COUNT);
    CHECK_EQ(table_rows(f, "messages"), 2);
    CHECK_EQ(table_rows(f, "message_owner"), 2);
    CHECK_EQ(table_rows(f, "sessions"), 2);
    CHECK_EQ(table_rows(f, "events"), 3);
    CHECK(stats->map_bytes >= stats->used_bytes);
    CHECK(stats->used_bytes > 0);
    CHECK(stats->readers_max > 0);
    CHECK(stats->last_txn >= stats->oldest_reader_txn);
}

TEST(stats_and_others_ignore_unknown_fields)
{
    CLEANUP(fixture_close) Fixture *f = fixture_open();
    Raw *body = raw_begin(f);
    raw_text(body, 9, "of tomorrow");
    raw_ok(f, "Health", body);
    raw_ok(f, "Describe", body);
    raw_ok(f, "Stats", body);
}
