// What tined costs while nobody calls it: memory, and how often it wakes up.

#include <time.h>

#include "calls.h"
#include "fleet.h"
#include "rows.h"

enum {
    TRIM_SECONDS = 50, // three of its ticks: then it has given memory back
    WATCH_SECONDS = 60,
    HISTORY_MESSAGES = 600,
    TEXT_BYTES = 1024,
    MEMORY_TARGET_MIB = 12,
};

static void wait_seconds(long seconds)
{
    struct timespec left = {.tv_sec = seconds};
    while (nanosleep(&left, &left) != 0)
        continue;
}

static void watch(const Options *options, const Peer *tined, const char *name)
{
    long seconds = options->is_quick ? 5 : WATCH_SECONDS;
    ProcessUsage before, after;
    ProcessMemory memory;
    process_usage(tined->pid, &before);
    wait_seconds(seconds);
    process_usage(tined->pid, &after);
    process_memory(tined->pid, &memory);
    double per_minute = (double)(after.switches - before.switches) * 60 / (double)seconds;
    report_ratio_at_most(name, memory.rss_mib, MEMORY_TARGET_MIB,
                         "%.1f of its own, %.1f of files; %.0f wake-ups a minute, %zu threads",
                         memory.anonymous_mib, memory.file_mib, per_minute, after.threads);
}

// Appends of 64 clients, small and of 1 MiB, and long histories.
static void load(const Options *options, const Peer *tined, const IdText *sessions)
{
    Fleet *fleet = fleet_open(tined, sessions);
    (void)fleet_run_libtine(fleet, options->is_quick ? 5 : 50);
    fleet_close(fleet);
    Tine *tine = tine_of(tined, "ipc");
    Buffer large = append_request(sessions[0].text, 1 << 20);
    AppendMessageRequest *append = append_message_of(&large);
    for (size_t i = 0; i < 20; i++)
        append_by_libtine(tine, append, NULL);
    protobuf_c_message_free_unpacked(&append->base, NULL);
    buffer_free(&large);
    MessagesForSessionRequest request = MESSAGES_FOR_SESSION_REQUEST__INIT;
    request.session_id = (char *)(uintptr_t)sessions[1].text;
    for (size_t i = 0; i < 100; i++) {
        MessagesForSessionResponse *response;
        require(tine_messages_for_session(tine, NULL, &request, &response) == 0, "a history");
        protobuf_c_message_free_unpacked(&response->base, NULL);
    }
    tine_close(tine);
}

void bench_idle(const Options *options)
{
    if (!row_is_wanted(options, "idle")) return;
    char path[512];
    IdText sessions[WRITERS];
    Bench bench;
    bench_path(options, "idle", path, sizeof(path));
    bench_open(&bench, path, /* is_ephemeral= */ true);
    for (size_t i = 0; i < WRITERS; i++)
        sessions[i] = bench_session(&bench, "");
    Buffer append = append_request(sessions[1].text, TEXT_BYTES);
    bench_run_many(&bench, &append, HISTORY_MESSAGES);
    buffer_free(&append);
    bench_close(&bench);
    Peer tined;
    tined_start(&tined, NULL, path);
    wait_seconds(2);
    watch(options, &tined, "MiB of memory, idle since its start");
    load(options, &tined, sessions);
    wait_seconds(options->is_quick ? 2 : TRIM_SECONDS);
    watch(options, &tined, "MiB of memory, idle after 64 clients, 1 MiB messages, histories");
    peer_stop(&tined);
}
