// What `tine top` shows: one sample of the server, and how it is drawn.

#pragma once

#include "cli.h"

typedef struct TopSample {
    StatsResponse *stats;           // owned
    HealthResponse *health;         // owned
    ListSessionsResponse *sessions; // owned: those active of late, the newest first
    int64_t taken_ns;
} TopSample;

typedef struct TopFrame {
    const Printer *out; // borrowed
    int columns, rows;  // 0: no limit
    bool is_live;       // on a screen of its own, over the frame before
} TopFrame;

// Asks the server. Returns the status code that `cli->status` explains; then the sample is empty.
int top_sample(Cli *cli, TopSample *out);
void top_sample_free(TopSample *sample);

// Draws a sample. The rates are those since `before`, or since the server started if that is empty.
void top_draw(const Cli *cli, TopFrame *frame, const TopSample *before, const TopSample *now);

// Draws why there is none.
void top_draw_failure(TopFrame *frame, const TineStatus *status);
