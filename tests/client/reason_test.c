// Reasons of failed calls, as tine.h names them.

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "steps.h"

static TineStatus status_of(int code, const char *reason, const char *message)
{
    TineStatus status = {.code = code};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    snprintf(status.message, sizeof(status.message), "%s", message);
    return status;
}

TEST(each_reason_of_the_contract_has_its_constant)
{
    const ProtobufCEnumDescriptor *reasons = &tine__v1__reason__descriptor;
    CHECK(reasons->n_values > 30);
    for (unsigned i = 0; i < reasons->n_values; i++) {
        const ProtobufCEnumValue *value = &reasons->values[i];
        TineStatus status = status_of(5, value->name + strlen("REASON_"), "");
        CHECK_EQ((int)tine_reason(&status), value->value);
        CHECK(tine_status_is(&status, (TineReason)value->value));
    }
    CHECK_EQ((int)TINE_REASON_SESSION_NOT_FOUND, (int)TINE__V1__REASON__REASON_SESSION_NOT_FOUND);
}

TEST(a_reason_that_is_not_known_here_is_unspecified)
{
    static const char *const UNKNOWN[] = {"", "A_REASON_OF_TOMORROW", "session_not_found"};
    for (size_t i = 0; i < sizeof(UNKNOWN) / sizeof(UNKNOWN[0]); i++) {
        TineStatus status = status_of(9, UNKNOWN[i], "");
        CHECK_EQ((int)tine_reason(&status), (int)TINE_REASON_UNSPECIFIED);
        CHECK(!tine_status_is(&status, TINE_REASON_SESSION_NOT_FOUND));
    }
}

TEST(a_failed_call_names_its_reason)
{
    CLEANUP(closep) Tine *tine = open_ok("embedded::memory:");
    TineStatus status;
    TineCallOptions options = {.out_status = &status};
    char answer[ANSWER_BYTES_MAX];
    CHECK_EQ(ask(tine, &options, "01K00000000000000000000000", answer), STATUS_NOT_FOUND);
    CHECK(tine_status_is(&status, TINE_REASON_SESSION_NOT_FOUND));
    CHECK(!tine_status_is(&status, TINE_REASON_MESSAGE_NOT_FOUND));
    CHECK_EQ(ask(tine, &options, "no id", answer), STATUS_INVALID_ARGUMENT); // and not NOT_FOUND
    CHECK(tine_status_is(&status, TINE_REASON_INVALID_ARGUMENT));
}

TEST(the_text_of_a_status_has_its_reason)
{
    char text[64];
    TineStatus status = status_of(5, "SESSION_NOT_FOUND", "no such session");
    CHECK_STR(tine_status_text(&status, text, sizeof(text)), "SESSION_NOT_FOUND: no such session");
    CHECK_STR(tine_status_text(&status, text, 10), "SESSION_N");
    status = status_of(9, "", "it cannot be");
    CHECK_STR(tine_status_text(&status, text, sizeof(text)), "it cannot be");
    status = status_of(0, "", "");
    CHECK_STR(tine_status_text(&status, text, sizeof(text)), "");
}
