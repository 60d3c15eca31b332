// Checking a provider's call before it is recorded: what the types of its fields cannot say.

#pragma once

#include "rpc/rpc.h"

// `field` is the call's name in the request, for the error's text. ERROR_INVALID_ARGUMENT.
MUST_USE Error new_call_check(Rpc *rpc, const char *field, const NewCall *new_call);
