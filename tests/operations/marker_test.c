// Markers: compactions, and the live window behind the latest one.

#include "base/limits.h"
#include "entries.h"

static const char *latest(Fixture *f, const char *session)
{
    Message *entry = CALL_OK(f, latest_marker, LatestMarker, {.session_id = CHARS(session)})->entry;
    return entry ? entry->marker->summary : "none";
}

static const char *listed(Fixture *f, const char *session)
{
    ListMarkersForSessionResponse *page =
        CALL_OK(f, list_markers_for_session, ListMarkersForSession, {.session_id = CHARS(session)});
    char *joined = fixture_alloc(f, 1024);
    for (size_t i = 0; i < page->n_entries; i++) {
        if (i) strncat(joined, " ", 2);
        strncat(joined, page->entries[i]->marker->summary, 32);
    }
    return joined;
}

TEST(marker_is_returned_as_an_entry)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    Marker marker = {
        .before_message_id = CHARS(m1),
        .summary = "s",
        .tokens_saved = -1,
        .tokens_before = 9,
        .automatic = true,
        .overflow = true,
        .details_json = "{}",
    };
    Message *entry = CALL_OK(f, add_compaction_marker, AddCompactionMarker,
                             {.session_id = CHARS(session), .marker = &marker})
                         ->entry;
    CHECK_EQ(entry->kind, MESSAGE_KIND_COMPACTION);
    CHECK_EQ(entry->role, ROLE_SYSTEM);
    CHECK_STR(entry->session_id, session);
    CHECK_STR(entry->parent_id, m1);
    CHECK_EQ(entry->sequence, 1);
    CHECK_EQ(entry->created_at, f->now_ms);
    CHECK_STR(entry->marker->before_message_id, m1);
    CHECK_STR(entry->marker->summary, "s");
    CHECK_EQ(entry->marker->tokens_saved, -1);
    CHECK_EQ(entry->marker->tokens_before, 9);
    CHECK(entry->marker->automatic && entry->marker->overflow);
    CHECK_STR(entry->marker->details_json, "{}");
    CHECK_STR(message_ok(f, entry->id)->marker->summary, "s");
    CHECK_STR(get_ok(f, session)->head_id, entry->id);
    CHECK_EQ(get_ok(f, session)->message_count, 1);
    CHECK_EQ(get_ok(f, session)->entry_count, 2);
}

TEST(marker_opens_the_window_strictly_after_its_cut_off)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    append_ok(f, session, ROLE_USER, "m3");
    CHECK_STR(window_texts(f, session), "m1 m2 m3");
    marker_ok(f, session, m2, "s");
    append_ok(f, session, ROLE_USER, "m4");
    CHECK_STR(window_texts(f, session), "m3 m4");
    CHECK_STR(history_texts(f, session), "m1 m2 m3 m4");
}

TEST(marker_with_keep_all_cuts_nothing_off)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    marker_ok(f, session, m1, "first");
    CHECK_STR(window_texts(f, session), "m2");
    marker_ok(f, session, NULL, "all");
    CHECK_STR(window_texts(f, session), "m1 m2");
    CHECK_STR(latest(f, session), "all");
}

TEST(marker_wants_a_cut_off_that_is_in_the_history)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *left = append_ok(f, session, ROLE_USER, "left");
    append_after_ok(f, session, m1, "m2");
    const char *other = append_ok(f, session_ok(f), ROLE_USER, "other");
    AddCompactionMarkerRequest request = {.session_id = CHARS(session)};
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "marker"));
    Marker marker = {.summary = "s"};
    request.marker = &marker;
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "before_message_id"));
    marker.before_message_id = CHARS(left);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    marker.before_message_id = CHARS(other);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    marker.before_message_id = UNKNOWN_ID;
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "MESSAGE_NOT_FOUND", request);
    marker.before_message_id = "m1";
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    CHECK(strstr(f->status.message, "marker.before_message_id"));
    marker.before_message_id = CHARS(m1);
    marker.keep_all = true;
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    CHECK_STR(latest(f, session), "none");
    CHECK_EQ(get_ok(f, session)->entry_count, 3);
}

TEST(marker_names_sessions_that_cannot_be_written)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Marker marker = {.keep_all = true};
    AddCompactionMarkerRequest request = {.session_id = UNKNOWN_ID, .marker = &marker};
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "SESSION_NOT_FOUND", request);
    request.session_id = "";
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT", request);
    request.session_id = CHARS(session);
    archive_ok(f, session, true);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "SESSION_ARCHIVED", request);
    archive_ok(f, session, false);
    delete_ok(f, session);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "SESSION_DELETED", request);
}

TEST(marker_refuses_a_head_that_moved)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    Marker marker = {.before_message_id = CHARS(m1)};
    AddCompactionMarkerRequest request = {
        .session_id = CHARS(session),
        .marker = &marker,
        .expected_head_case = ADD_COMPACTION_MARKER_REQUEST__EXPECTED_HEAD_EXPECTED_HEAD_ID,
        .expected_head_id = "",
    };
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "HEAD_MOVED", request);
    request.expected_head_id = CHARS(m1);
    CALL_OK(f, add_compaction_marker, AddCompactionMarker, request);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "HEAD_MOVED", request);
}

TEST(marker_reads_answer_none_for_a_history_without_one)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    CHECK_STR(latest(f, session), "none");
    CHECK_STR(listed(f, session), "");
    CHECK(!CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker,
                   {.session_id = CHARS(session)})
               ->marker);
    CALL_FAILS(f, latest_marker, LatestMarker, "SESSION_NOT_FOUND", {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, list_markers_for_session, ListMarkersForSession, "SESSION_NOT_FOUND",
               {.session_id = UNKNOWN_ID});
    CALL_FAILS(f, latest_marker, LatestMarker, "INVALID_ARGUMENT", {.session_id = ""});
    CALL_FAILS(f, list_markers_for_session, ListMarkersForSession, "INVALID_ARGUMENT",
               {.session_id = ""});
}

TEST(marker_newest_wins_even_with_an_older_cut_off)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    append_ok(f, session, ROLE_USER, "m3");
    marker_ok(f, session, m2, "first");
    CHECK_STR(window_texts(f, session), "m3");
    marker_ok(f, session, m1, "second");
    CHECK_STR(window_texts(f, session), "m2 m3");
    CHECK_STR(latest(f, session), "second");
    CHECK_STR(listed(f, session), "first second");
}

TEST(marker_is_inherited_by_forks)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *before = fork_ok(f, root, m2);
    marker_ok(f, root, m1, "root");
    const char *m3 = append_ok(f, root, ROLE_USER, "m3");
    const char *fork = fork_ok(f, root, m3);
    append_ok(f, fork, ROLE_USER, "f1");
    CHECK_STR(latest(f, fork), "root");
    CHECK_STR(listed(f, fork), "root");
    CHECK_STR(window_texts(f, fork), "m2 m3 f1");
    CHECK_STR(latest(f, before), "none");
    CHECK_STR(window_texts(f, before), "m1 m2");
    marker_ok(f, fork, m3, "fork");
    CHECK_STR(listed(f, fork), "root fork");
    CHECK_STR(window_texts(f, fork), "f1");
    CHECK_STR(latest(f, root), "root");
    marker_ok(f, root, m3, "later");
    CHECK_STR(latest(f, fork), "fork");
}

TEST(marker_of_a_fork_may_cut_off_at_an_inherited_entry)
{
    const char *root;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&root);
    const char *m1 = append_ok(f, root, ROLE_USER, "m1");
    const char *m2 = append_ok(f, root, ROLE_USER, "m2");
    const char *m3 = append_ok(f, root, ROLE_USER, "m3");
    const char *fork = fork_ok(f, root, m2);
    marker_ok(f, fork, m1, "s");
    CHECK_STR(window_texts(f, fork), "m2");
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_ARGUMENT",
               {.session_id = CHARS(fork), .marker = &(Marker){.before_message_id = CHARS(m3)}});
    marker_ok(f, fork, m2, "own head is inherited");
    CHECK_STR(window_texts(f, fork), "");
}

TEST(marker_is_left_behind_by_a_rewind_before_it)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    const char *marker = marker_ok(f, session, m2, "s");
    append_ok(f, session, ROLE_USER, "m3");
    CHECK_STR(window_texts(f, session), "m3");
    rewind_ok(f, session, m2);
    CHECK_STR(window_texts(f, session), "m1 m2");
    CHECK_STR(latest(f, session), "none");
    CHECK_STR(listed(f, session), "");
    rewind_ok(f, session, marker);
    CHECK_STR(window_texts(f, session), "");
    CHECK_STR(latest(f, session), "s");
    rewind_ok(f, session, "");
    CHECK_STR(latest(f, session), "none");
}

TEST(marker_that_is_deleted_no_longer_counts)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    append_ok(f, session, ROLE_USER, "m3");
    marker_ok(f, session, m1, "first");
    const char *second = marker_ok(f, session, m2, "second");
    message_delete_ok(f, second);
    CHECK_STR(latest(f, session), "first");
    CHECK_STR(listed(f, session), "first");
    CHECK_STR(window_texts(f, session), "m2 m3");
}

TEST(marker_may_cut_off_at_a_deleted_entry)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    append_ok(f, session, ROLE_USER, "m3");
    marker_ok(f, session, m2, "s");
    message_delete_ok(f, m2);
    CHECK_STR(window_texts(f, session), "m3");
}

TEST(marker_may_come_with_append_message)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    Marker marker = {.before_message_id = CHARS(m1), .summary = "appended"};
    NewMessage message = {.kind = MESSAGE_KIND_COMPACTION, .marker = &marker, .created_at = 7};
    const char *id = entry_ok(f, session, &message)->id;
    CHECK_STR(latest(f, session), "appended");
    CHECK_STR(window_texts(f, session), "m2");
    CHECK_EQ(message_ok(f, id)->created_at, 7);
    marker.before_message_id = UNKNOWN_ID;
    entry_fails(f, session, &message, "MESSAGE_NOT_FOUND");
    // An import's reference may dangle: nothing before the marker itself is then kept.
    Marker imported = {.first_kept_external = "pi-17", .summary = "imported"};
    entry_ok(f, session, &(NewMessage){.kind = MESSAGE_KIND_COMPACTION, .marker = &imported});
    append_ok(f, session, ROLE_USER, "m3");
    CHECK_STR(latest(f, session), "imported");
    CHECK_STR(window_texts(f, session), "m3");
}

TEST(marker_appended_on_a_branch_is_checked_against_that_branch)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    const char *m2 = append_ok(f, session, ROLE_USER, "m2");
    Marker marker = {.before_message_id = CHARS(m2)};
    AppendMessageRequest request = {
        .session_id = CHARS(session),
        .message = &(NewMessage){.kind = MESSAGE_KIND_COMPACTION, .marker = &marker},
        .parent_case = APPEND_MESSAGE_REQUEST__PARENT_PARENT_ID,
        .parent_id = CHARS(m1),
    };
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT", request);
    marker.before_message_id = CHARS(m1);
    request.parent_id = "";
    CALL_FAILS(f, append_message, AppendMessage, "INVALID_ARGUMENT", request);
    request.parent_id = CHARS(m1);
    CALL_OK(f, append_message, AppendMessage, request);
    CHECK_STR(history_texts(f, session), "m1");
    CHECK_STR(window_texts(f, session), "");
}

TEST(marker_entry_is_on_the_first_page_of_the_window_alone)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    append_ok(f, session, ROLE_USER, "m2");
    marker_ok(f, session, m1, "s");
    append_ok(f, session, ROLE_USER, "m3");
    MessagesSinceLatestMarkerRequest request = {.session_id = CHARS(session), .limit = 1};
    MessagesSinceLatestMarkerResponse *page =
        CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker, request);
    CHECK_STR(page->marker->marker->summary, "s");
    CHECK_STR(page->messages[0]->parts[0]->text->text, "m2");
    marker_ok(f, session, m1, "in between");
    request.cursor = page->next_cursor;
    page = CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker, request);
    CHECK(!page->marker);
    CHECK_EQ(page->n_messages, 1);
    CHECK_STR(page->messages[0]->parts[0]->text->text, "m3");
}

TEST(marker_window_takes_kinds)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    setting_ok(f, session, "model", "x");
    marker_ok(f, session, m1, "s");
    MessageKind kinds[] = {MESSAGE_KIND_SETTING, MESSAGE_KIND_COMPACTION};
    MessagesSinceLatestMarkerResponse *page =
        CALL_OK(f, messages_since_latest_marker, MessagesSinceLatestMarker,
                {.session_id = CHARS(session), .n_kinds = 2, .kinds = kinds});
    CHECK_EQ(page->n_messages, 2);
    CHECK_EQ(page->messages[1]->kind, MESSAGE_KIND_COMPACTION);
}

TEST(marker_listing_pages)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        append_ok(f, session, ROLE_USER, "m");
        marker_ok(f, session, NULL, names[i]);
    }
    ListMarkersForSessionRequest request = {.session_id = CHARS(session), .limit = 2};
    size_t seen = 0;
    do {
        ListMarkersForSessionResponse *page =
            CALL_OK(f, list_markers_for_session, ListMarkersForSession, request);
        for (size_t i = 0; i < page->n_entries; i++) {
            CHECK_STR(page->entries[i]->marker->summary, names[seen++]);
        }
        request.cursor = page->next_cursor;
    } while (*request.cursor);
    CHECK_EQ(seen, 5);
}

TEST(marker_replay_returns_the_entry_and_adds_one_only)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    const char *m1 = append_ok(f, session, ROLE_USER, "m1");
    Marker marker = {.before_message_id = CHARS(m1), .summary = "s"};
    AddCompactionMarkerRequest request = {.session_id = CHARS(session), .marker = &marker};
    const char *first =
        CALL_OK_WITH(f, "op", add_compaction_marker, AddCompactionMarker, request)->entry->id;
    Message *again =
        CALL_OK_WITH(f, "op", add_compaction_marker, AddCompactionMarker, request)->entry;
    CHECK_STR(again->id, first);
    CHECK_STR(again->marker->summary, "s");
    CHECK_STR(listed(f, session), "s");
    marker.summary = "other";
    CALL_FAILS_WITH(f, "op", add_compaction_marker, AddCompactionMarker, "OPERATION_ID_REUSED",
                    request);
    message_purge_ok(f, first);
    marker.summary = "s";
    again = CALL_OK_WITH(f, "op", add_compaction_marker, AddCompactionMarker, request)->entry;
    CHECK_STR(again->id, first);
    CHECK_STR(again->marker->summary, "");
}

TEST(marker_summary_and_details_are_limited)
{
    const char *session;
    CLEANUP(fixture_close) Fixture *f = fixture_with_session(&session);
    Marker marker = {.keep_all = true, .summary = filled(f, 's', SUMMARY_BYTES_MAX)};
    AddCompactionMarkerRequest request = {.session_id = CHARS(session), .marker = &marker};
    Message *entry = CALL_OK(f, add_compaction_marker, AddCompactionMarker, request)->entry;
    CHECK_EQ(strlen(entry->marker->summary), SUMMARY_BYTES_MAX);
    CHECK_EQ(strlen(message_ok(f, entry->id)->marker->summary), SUMMARY_BYTES_MAX);
    marker.summary = filled(f, 's', SUMMARY_BYTES_MAX + 1);
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "TOO_LONG", request);
    CHECK(strstr(f->status.message, "marker.summary"));
    marker.summary = "";
    marker.details_json = "{";
    CALL_FAILS(f, add_compaction_marker, AddCompactionMarker, "INVALID_JSON", request);
    CHECK(strstr(f->status.message, "marker.details_json"));
}
