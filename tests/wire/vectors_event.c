// Vectors of the bus's messages.

#include "vectors.h"

#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OTHER "01BX5ZZKBKACTAV9WEVGEMMVRZ"
#define STORE "1a('" OTHER "')"
#define SESSION "22('" ID "')"

const EventVector EVENT_VECTORS[] = {
    {"first-of-a-session",
     "'session/" ID "/session.created' 00 0801 " STORE SESSION
     "2a('session.created') 50d08c9ec4f031",
     true, "session/" ID "/session.created", 1, "session.created", ID, ""},
    {"with-the-one-before",
     "'session/" ID "/message.appended' 00 0807 1005 " STORE SESSION
     "2a('message.appended') 32('" OTHER "') 4801",
     true, "session/" ID "/message.appended", 7, "message.appended", ID, ""},
    {"of-no-session", "'global/deploy' 00 0809 " STORE "2a('deploy')", true, "global/deploy", 9,
     "deploy", "", "published without a session"},
    {"broadcast", "'session/" ID "/text' 00 " STORE SESSION "2a('text') 62('{\"delta\":\"He\"}')",
     true, "session/" ID "/text", 0, "text", ID, "sequence 0: nothing keeps it"},
    {"broadcast-of-no-session", "'global/progress' 00 " STORE "2a('progress')", true,
     "global/progress", 0, "progress", "", ""},
    {"heartbeat", "'heartbeat' 00 0829 " STORE "2a('heartbeat') 50d08c9ec4f031", true, "heartbeat",
     41, "heartbeat", "", "its sequence is the newest that was sent before it"},
    {"heartbeat-of-an-empty-store", "'heartbeat' 00 " STORE "2a('heartbeat')", true, "heartbeat", 0,
     "heartbeat", "", ""},
    {"largest-sequence", "'global/x' 00 08ffffffffffffffffff01 " STORE "2a('x')", true, "global/x",
     UINT64_MAX, "x", "", "unsigned, and more than a double can hold"},
    {"sequence-past-2-53", "'global/x' 00 0881808080808080 10 " STORE "2a('x')", true, "global/x",
     (UINT64_C(1) << 53) + 1, "x", "", "more than a double can hold"},
    {"unknown-field", "'global/x' 00 0802 " STORE "2a('x') c23e('later')", true, "global/x", 2, "x",
     "", "a newer server's; skipped"},
    {"zero-in-the-event", "'global/x' 00 0803 " STORE "2a('x') 62('\"' 00 '\"')", true, "global/x",
     3, "x", "", "only the first zero byte ends the topic"},
    {"fields-in-another-order", "'global/x' 00 2a('x') " STORE "0804", true, "global/x", 4, "x", "",
     "their order is free"},
    {"said-twice", "'global/x' 00 0804 0805 " STORE "2a('x')", true, "global/x", 5, "x", "",
     "the last one wins"},
    {"type-said-twice", "'global/x' 00 0804 " STORE "2a('y') 2a('x')", true, "global/x", 4, "x", "",
     "the last one wins"},
    {"unknown-no-utf8", "'global/x' 00 0802 " STORE "2a('x') c23e(ff)", true, "global/x", 2, "x",
     "", "nobody knows that it is a text"},
    {"not-ascii", "'global/größe' 00 0802 " STORE "2a('größe') 62('\"日本語\"')", true,
     "global/größe", 2, "größe", "", "texts are UTF-8"},
    {"no-event", "'heartbeat' 00", true, "heartbeat", 0, "", "", "an Event of no bytes is one"},
    {"no-zero", "'global/x'", false, "", 0, "", "", "the zero byte is missing"},
    {"empty", "", false, "", 0, "", "", "no topic, no zero byte"},
    {"cut-off", "'global/x' 00 0806 2a05 'x'", false, "", 0, "", "", "a field ends behind the end"},
    {"topic-no-utf8", "'global/' ff 00 0802 " STORE "2a('x')", false, "", 0, "", "",
     "texts are UTF-8"},
    {"type-no-utf8", "'global/x' 00 0802 " STORE "2a('x' ff)", false, "", 0, "", "", "the same"},
    {"session-no-utf8", "'global/x' 00 0802 " STORE "22(c3) 2a('x')", false, "", 0, "", "",
     "the same"},
    {"data-no-utf8", "'global/x' 00 0802 " STORE "2a('x') 62('\"' ff '\"')", false, "", 0, "", "",
     "the same"},
    {"type-no-utf8-then-good", "'global/x' 00 0802 " STORE "2a(ff) 2a('x')", false, "", 0, "", "",
     "each is checked, not the last one alone"},
    {"field-0", "'global/x' 00 0802 " STORE "2a('x') 0001", false, "", 0, "", "",
     "there is no field 0"},
    {"tag-of-6-bytes", "'global/x' 00 888080808000 02 " STORE "2a('x')", false, "", 0, "", "",
     "a tag has five bytes at most"},
    {"group", "'global/x' 00 0802 " STORE "2a('x') c33e c43e", false, "", 0, "", "",
     "there are no groups"},
    {"no-protobuf", "'global/x' 00 ff*12", false, "", 0, "", "", "noise"},
};

const size_t EVENT_VECTOR_COUNT = sizeof(EVENT_VECTORS) / sizeof(*EVENT_VECTORS);
