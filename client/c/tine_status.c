// Reasons and texts of statuses, as tine.h has them.

#include <stdio.h>
#include <string.h>

#include "tine.h"

// The names of enum Reason are the texts of reasons with a prefix.
TineReason tine_reason(const TineStatus *status)
{
    char name[sizeof(status->reason) + sizeof("REASON_")];
    snprintf(name, sizeof(name), "REASON_%s", status->reason);
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value_by_name(&tine__v1__reason__descriptor, name);
    return value ? (TineReason)value->value : TINE_REASON_UNSPECIFIED;
}

bool tine_status_is(const TineStatus *status, TineReason reason)
{
    return tine_reason(status) == reason;
}

const char *tine_status_text(const TineStatus *status, char *out, size_t room)
{
    snprintf(out, room, "%s%s%s", status->reason, *status->reason ? ": " : "", status->message);
    return out;
}
