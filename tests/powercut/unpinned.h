// Planted faults of the pin, and of a commit. LMDB's calls are defined in this program, so that the
// flusher calls them: the read transaction that it renews while it holds off the writers is the
// pin.

#pragma once

typedef enum PinFault {
    PIN_IS_HELD,
    PIN_NEVER,       // there is none
    PIN_LET_GO_EARLY // the one before is let go before the flush, not after it
} PinFault;

// Of all flushers from now on.
void pin_fault(PinFault fault);

// The next commit that writes fails with ENOSPC, and changes nothing.
void commit_fault(void);
