// Writing headers.

#include "importers/pi/pi_header.h"

#include "importers/iso_time.h"
#include "importers/pi/pi_aliases.h"
#include "importers/pi/pi_write.h"
#include "text/json_walk.h"

static void put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ",\"%s\":", name);
    pi_write_text(out, text);
}

static const char *session_id(const Session *session)
{
    return pi_is_external(session->external) ? session->external->id : session->id;
}

// The name of the file that pi would keep a session in.
static void put_file_name(FILE *out, const Session *session)
{
    char time[ISO_TIME_BYTES], name[PI_ALIAS_BYTES];
    iso_time_write(session->created_at, time);
    for (char *at = time; *at; at++) {
        if (*at == ':' || *at == '.') *at = '-';
    }
    snprintf(name, sizeof(name), "%s_%s.jsonl", time, session_id(session));
    pi_write_text(out, name);
}

void pi_header_write(FILE *out, const Session *session, const Session *parent, unsigned version)
{
    char time[ISO_TIME_BYTES];
    iso_time_write(session->created_at, time);
    fputs("{\"type\":\"session\"", out);
    if (version > 1) fprintf(out, ",\"version\":%u", version); // version 1 does not say it
    put_member(out, "id", session_id(session));
    put_member(out, "timestamp", time);
    put_member(out, "cwd", session->project_dir);
    if (*session->source_parent) {
        put_member(out, "parentSession", session->source_parent);
    } else if (parent) {
        fputs(",\"parentSession\":", out);
        put_file_name(out, parent);
    }
    putc('}', out);
}

static bool has_version(Slice header)
{
    Slice key, value;
    JsonWalk walk = json_walk(header);
    while (json_walk_next(&walk, &key, &value)) {
        if (json_key_is(key, "version")) return true;
    }
    return false;
}

void pi_header_write_again(FILE *out, Slice header)
{
    Slice key, value;
    const char *comma = "", *version = has_version(header) ? "" : ",\"version\":3";
    putc('{', out);
    for (JsonWalk walk = json_walk(header); json_walk_next(&walk, &key, &value); comma = ",") {
        if (json_key_is(key, "version")) value = slice_of("3");
        fputs(comma, out);
        fwrite(key.bytes, 1, key.size, out);
        putc(':', out);
        fwrite(value.bytes, 1, value.size, out);
        if (json_key_is(key, "type")) fputs(version, out);
    }
    putc('}', out);
}
