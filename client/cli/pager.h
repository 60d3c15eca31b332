// The pager: standard output through $TINE_PAGER, $PAGER or `less -FRX`, as git does it.

#pragma once

// Starts it and lets standard output go there. Nothing happens when there is none, or it is `cat`.
void pager_begin(void);

// Waits until its user is done. Nothing happens when none was started.
void pager_end(void);
