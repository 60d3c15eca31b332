// A sample for tests/tidy/style: a layer may know itself and those below it.

#include "base/error.h"
#include "kv/kv.h"
#include "store/store.h"
