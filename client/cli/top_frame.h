// Samples of the server, and how `tine top` draws them.

#pragma once

#include "cli.h"

typedef struct TopSample {
    StatsResponse *stats;           // owned
    HealthResponse *health;         // owned
    ListSessionsResponse *sessions; // owned: recently active ones, newest first
    int64_t taken_ns;
} TopSample;

typedef struct TopFrame {
    const Printer *out; // borrowed
    int columns, rows;  // 0 for no limit
    bool is_live;       // on a full screen, over the previous frame
} TopFrame;

// Takes a sample. Returns a status code, explained in `cli->status`; after a failure the sample is
// empty.
int top_sample(Cli *cli, TopSample *out);
void top_sample_free(TopSample *sample);

// Draws a sample. Rates are those since `before`, or since the server started if `before` is empty.
void top_draw(const Cli *cli, TopFrame *frame, const TopSample *before, const TopSample *now);

// Draws the reason why there is no sample.
void top_draw_failure(TopFrame *frame, const TineStatus *status);
