// Checks a provider's call before it is recorded, as far as the types of its fields do not.

#pragma once

#include "rpc/rpc.h"

// `field` names the call in the detail. Returns ERROR_INVALID_ARGUMENT.
MUST_USE Error new_call_check(Rpc *rpc, const char *field, const NewCall *new_call);
