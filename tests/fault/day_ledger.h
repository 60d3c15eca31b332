// The day's steps on the ledger of calls.

#pragma once

#include "day.h"

Error day_record_call(Day *day);
Error day_exchange(Day *day);
Error day_delete_call(Day *day);
Error day_read_ledger(Day *day);
