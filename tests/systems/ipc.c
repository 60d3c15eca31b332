// The conformance tests call through the daemon's transport and a real socket, unless
// $TINE_TEST_CHANNEL says another way.

#include <stdlib.h>

__attribute__((constructor)) static void choose_channel(void)
{
    (void)setenv("TINE_TEST_CHANNEL", "sp", /* overwrite= */ 0);
}
