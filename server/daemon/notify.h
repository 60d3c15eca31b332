// Tells systemd the state of the daemon, if systemd has asked for it.

#pragma once

// Sends `state`, for example "READY=1", to $NOTIFY_SOCKET. Does nothing if that is not set.
void notify_send(const char *state);
