// wire_vectors: prints tests/wire/vectors.json.

#include "vectors.h"

int main(void)
{
    vectors_print(stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
