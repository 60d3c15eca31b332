#include <lmdb.h>

#include "kv/durable/options.h"
#include "kv/kv.h"
