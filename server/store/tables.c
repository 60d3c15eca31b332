// The names of the tables.

#include "store/tables.h"

const char *const STORE_TABLE_NAMES[TABLE_COUNT] = {
#define X(constant, name) name,
    STORE_TABLES(X)
#undef X
};
