// Vectors of hellos.

#include "vectors.h"

const HelloVector HELLO_VECTORS[] = {
    {"rep-to-req", "req", "00 'SP' 00 0031 0000", "a REP, as tined is", 0x31, true},
    {"pub-to-sub", "sub", "00 'SP' 00 0020 0000", "a PUB, as the bus is", 0x20, true},
    {"pub-to-req", "req", "00 'SP' 00 0020 0000", "the socket of the bus is not for calls", 0x20,
     false},
    {"rep-to-sub", "sub", "00 'SP' 00 0031 0000", "the socket for calls is no bus", 0x31, false},
    {"req-to-req", "req", "00 'SP' 00 0030 0000", "two clients met", 0x30, false},
    {"sub-to-sub", "sub", "00 'SP' 00 0021 0000", "two subscribers met", 0x21, false},
    {"pair-to-req", "req", "00 'SP' 00 0010 0000", "a protocol that tine does not speak", 0x10,
     false},
    {"swapped-bytes", "req", "00 'SP' 00 3100 0000", "numbers are big-endian", 0x3100, false},
    {"no-zero-in-front", "req", "01 'SP' 00 0031 0000", "the first byte is 0", -1, false},
    {"lower-case", "req", "00 'sp' 00 0031 0000", "the letters are upper case", -1, false},
    {"version-1", "req", "00 'SP' 01 0031 0000", "another version of SP", -1, false},
    {"reserved-bytes", "req", "00 'SP' 00 0031 0001", "the last two bytes are 0", 0x31, false},
    {"http", "req", "'HTTP/1.1'", "somebody else's server", -1, false},
};

const size_t HELLO_VECTOR_COUNT = sizeof(HELLO_VECTORS) / sizeof(*HELLO_VECTORS);
