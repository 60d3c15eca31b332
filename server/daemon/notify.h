// Telling systemd how the daemon is, if it asked for it.

#pragma once

// Sends lines like "READY=1" to $NOTIFY_SOCKET. Without one it does nothing.
void notify_send(const char *state);
