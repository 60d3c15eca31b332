// Sends standard output through $TINE_PAGER, $PAGER or `less -FRX`, as git does.

#pragma once

// Starts the pager. Does nothing if there is none, or if it is `cat`.
void pager_begin(void);

// Waits until the pager ends. Does nothing if none was started.
void pager_end(void);
