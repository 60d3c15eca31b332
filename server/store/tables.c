// The numbers and names of the tables.

#include "store/tables.h"

const KvTableOptions STORE_TABLE_OPTIONS[TABLE_COUNT] = {
#define X(number, constant, name) {number, name},
    STORE_TABLES(X)
#undef X
};
