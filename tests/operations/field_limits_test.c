// The rules that hold for every field of every request, by its type and its name: each is tried on
// each field. A request that breaks a rule says so whatever else is missing in it.

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "entries.h"
#include "request_fields.h"

static bool is_string(const RequestField *field)
{
    return field->field->type == PROTOBUF_C_TYPE_STRING;
}

static void visit_string_limit(Fixture *f, const RequestField *field)
{
    if (!is_string(field) || field->rule->bytes_max == 0) return;
    size_t max = field->rule->bytes_max;
    char *text = json_of_size(max);
    request_field_send_bytes(f, field, text, max);
    CHECK(!strstr(f->status.message, "the limit is"));
    free(text);
    text = json_of_size(max + 1);
    request_field_send_bytes(f, field, text, max + 1);
    request_field_expect(f, field, "TOO_LONG");
    free(text);
}

TEST(limit_of_each_string_holds_at_it_and_past_it)
{
    request_fields_visit(visit_string_limit);
}

static void visit_unbounded_string(Fixture *f, const RequestField *field)
{
    if (!is_string(field) || field->rule->bytes_max != 0) return;
    // Bounded by the request alone: what only parts and attachments may hold.
    CHECK(strcmp(field->method->name, "AppendMessage") == 0 ||
          strcmp(field->method->name, "AppendExchange") == 0 ||
          strcmp(field->method->name, "AppendPart") == 0);
    char *text = json_of_size(SUMMARY_BYTES_MAX + 1);
    request_field_send_bytes(f, field, text, SUMMARY_BYTES_MAX + 1);
    CHECK(strcmp(f->status.reason, "TOO_LONG") != 0);
    free(text);
}

TEST(limit_of_the_request_alone_is_for_content)
{
    request_fields_visit(visit_unbounded_string);
}

static Raw *repeated(Fixture *f, const RequestField *field, size_t count)
{
    Raw *encoded = raw_begin(f);
    for (size_t i = 0; i < count; i++) {
        if (field->field->type == PROTOBUF_C_TYPE_MESSAGE) {
            raw_bytes(encoded, field->field->id, NULL, 0);
        } else {
            raw_number(encoded, field->field->id, 1);
        }
    }
    return encoded;
}

static void visit_count(Fixture *f, const RequestField *field)
{
    if (field->field->label != PROTOBUF_C_LABEL_REPEATED) return;
    CHECK(field->rule->count_max > 0); // nothing that a caller repeats is without a bound
    RequestField named = *field;
    named.name[strlen(named.name) - strlen("[0]")] = '\0';
    request_field_send_raw(f, field, repeated(f, field, field->rule->count_max));
    CHECK(!strstr(f->status.message, "more than"));
    request_field_send_raw(f, field, repeated(f, field, field->rule->count_max + 1));
    request_field_expect(f, &named, "TOO_LONG");
}

TEST(limit_of_each_count_holds_at_it_and_past_it)
{
    request_fields_visit(visit_count);
}

// Enums may come packed, many in one field, and such fields may repeat.
static void visit_packed(Fixture *f, const RequestField *field)
{
    if (field->field->label != PROTOBUF_C_LABEL_REPEATED) return;
    if (field->field->type != PROTOBUF_C_TYPE_ENUM) return;
    uint8_t ones[256];
    memset(ones, 1, sizeof(ones));
    size_t max = field->rule->count_max;
    request_field_send_bytes(f, field, ones, max);
    CHECK(!strstr(f->status.message, "more than"));
    request_field_send_bytes(f, field, ones, max + 1);
    raw_expect(f, "TOO_LONG", field->field->name);
    Raw *twice = raw_begin(f);
    raw_bytes(twice, field->field->id, ones, max);
    raw_bytes(twice, field->field->id, ones, 1);
    request_field_send_raw(f, field, twice);
    raw_expect(f, "TOO_LONG", field->field->name);
}

TEST(limit_of_each_count_holds_for_packed_values)
{
    request_fields_visit(visit_packed);
}

static void visit_utf8(Fixture *f, const RequestField *field)
{
    if (!is_string(field)) return;
    static const struct {
        const char *bytes;
        size_t size;
    } WRONG[] = {{"\xff", 1}, {"a\xc3", 2}, {"\xed\xa0\x80", 3}, {"\xc0\xaf", 2}, {"a\0b", 3}};
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(*WRONG); i++) {
        request_field_send_bytes(f, field, WRONG[i].bytes, WRONG[i].size);
        request_field_expect(f, field, "INVALID_UTF8");
    }
}

TEST(strings_are_utf8_without_nul_in_each_field)
{
    request_fields_visit(visit_utf8);
}

static void visit_json(Fixture *f, const RequestField *field)
{
    if (!is_string(field)) return;
    bool is_json = strcmp(field->field->name, "json") == 0 ||
                   (strlen(field->field->name) > 5 &&
                    strcmp(field->field->name + strlen(field->field->name) - 5, "_json") == 0);
    request_field_send_bytes(f, field, "{", 1);
    CHECK_EQ(strcmp(f->status.reason, "INVALID_JSON") == 0, is_json);
    if (is_json) request_field_expect(f, field, "INVALID_JSON");
}

TEST(json_is_json_in_each_field_that_is_named_so)
{
    request_fields_visit(visit_json);
}

static void visit_time(Fixture *f, const RequestField *field)
{
    if (field->rule->is_time) {
        request_field_send_number(f, field, TIME_MS_MAX);
        CHECK(!strstr(f->status.message, "out of range"));
        request_field_send_number(f, field, TIME_MS_MAX + 1);
        request_field_expect(f, field, "INVALID_ARGUMENT");
    }
    if (field->rule->is_time || field->rule->is_duration) {
        request_field_send_number(f, field, (uint64_t)-1);
        request_field_expect(f, field, "INVALID_ARGUMENT");
        CHECK(strstr(f->status.message, "out of range"));
    }
}

TEST(times_are_in_range_in_each_field)
{
    request_fields_visit(visit_time);
}

static void visit_enum(Fixture *f, const RequestField *field)
{
    if (field->field->type != PROTOBUF_C_TYPE_ENUM) return;
    const uint64_t wrong[] = {99, INT32_MAX, (uint64_t)-1, UINT64_C(1) << 32 | 1};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        request_field_send_number(f, field, wrong[i]);
        request_field_expect(f, field, "INVALID_ARGUMENT");
    }
}

TEST(enums_have_known_values_in_each_field)
{
    request_fields_visit(visit_enum);
}

static void visit_wire_type(Fixture *f, const RequestField *field)
{
    bool is_bytes = is_string(field) || field->field->type == PROTOBUF_C_TYPE_MESSAGE ||
                    field->field->type == PROTOBUF_C_TYPE_BYTES;
    if (is_bytes) {
        request_field_send_number(f, field, 1);
    } else if (field->field->label != PROTOBUF_C_LABEL_REPEATED) {
        request_field_send_bytes(f, field, "x", 1);
    } else {
        return; // packed
    }
    request_field_expect(f, field, "INVALID_ARGUMENT");
    CHECK(strstr(f->status.message, "type"));
}

TEST(wire_types_are_right_in_each_field)
{
    request_fields_visit(visit_wire_type);
}

static uint64_t wanted_max;
static const char *wanted_name;
static bool wanted_is_found;

static void visit_for_limit(Fixture *f, const RequestField *field)
{
    (void)f;
    char name[128], any[128];
    snprintf(name, sizeof(name), "%s.%s", field->message->short_name, field->field->name);
    snprintf(any, sizeof(any), "*.%s", field->field->name);
    if (strcmp(name, wanted_name) != 0 && strcmp(any, wanted_name) != 0) return;
    uint64_t max = is_string(field) ? field->rule->bytes_max : field->rule->count_max;
    if (max == 0) max = REQUEST_BYTES_MAX;
    if (max == wanted_max) wanted_is_found = true;
}

// A limit that no field has is a misspelt one.
TEST(limits_that_describe_names_are_those_of_fields)
{
    for (size_t i = 0; (wanted_name = field_rules_limit(i, &wanted_max)); i++) {
        wanted_is_found = false;
        request_fields_visit(visit_for_limit);
        if (!wanted_is_found) printf("%s: %llu\n", wanted_name, (unsigned long long)wanted_max);
        CHECK(wanted_is_found);
    }
}
