// A busy day of all kinds of writes, and what a check finds in its store.

#pragma once

#include "store/check.h"
#include "store_fixture.h"

// The damages found, one line each.
typedef struct Found {
    char text[8192];
    StoreCheckResult result;
} Found;

void check_store(StoreFixture *f, Found *found);
void check_clean(StoreFixture *f);

// Damage of this kind must be found, and a line must say `named`.
void check_finds(StoreFixture *f, DamageKind kind, const char *named);

// The sessions and messages of a busy day.
typedef struct Day {
    Ulid root, agent, fork, rewound, tombstone, tombstone_fork, removed;
    Ulid first, answer, marker, tool, large;
} Day;

// A store after the day, with two purges pending.
StoreFixture *busy_day(Day *day);

char *long_text(StoreFixture *f, size_t size); // of so many 'x'
