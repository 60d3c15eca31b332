// Lingering: waiting until the replies that connections took have left this process.
//
// NNG says that a reply is sent when its connection has taken it. Of a long one the rest may still
// wait here for a client that reads slowly, and closing the socket would cut it off.

#pragma once

#include "transport/client.h"

// Waits until each reply that a connection took is written to its end, or its connection is gone,
// or until the deadline. False: some are not. (An NNG that was built without statistics cannot
// tell, and is not waited for.)
MUST_USE bool linger(Clients *clients, int64_t until_ns);
