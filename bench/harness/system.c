// The table of systems.

#include "system.h"

static const System *systems[SYSTEMS_MAX];
static size_t count;

static bool comes_before(const System *a, const System *b)
{
    if (a->order != b->order) return a->order < b->order;
    return strcmp(a->name, b->name) < 0;
}

void system_register(const System *system)
{
    require(count < SYSTEMS_MAX, "more than %d systems", SYSTEMS_MAX);
    size_t at = count++;
    for (; at > 0 && comes_before(system, systems[at - 1]); at--)
        systems[at] = systems[at - 1];
    systems[at] = system;
}

size_t system_count(void)
{
    return count;
}

const System *system_at(size_t index)
{
    return systems[index];
}

const char *durability_text(Durability durability)
{
    switch (durability) {
    case DURABILITY_NONE: return "none";
    case DURABILITY_PROCESS: return "process";
    case DURABILITY_POWER: return "power cut";
    }
    return "none";
}
