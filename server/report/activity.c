// The activity of each thread.

#include "report/activity.h"

_Thread_local const char *activity = "";
