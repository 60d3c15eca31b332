// Damage: the tables of names and meanings.

#include "store/damage.h"

static const char *const DAMAGE_NAMES[DAMAGE_KIND_COUNT] = {
#define X(constant, name, text) name,
    DAMAGE_KINDS(X)
#undef X
};

static const char *const DAMAGE_TEXTS[DAMAGE_KIND_COUNT] = {
#define X(constant, name, text) text,
    DAMAGE_KINDS(X)
#undef X
};

const char *damage_name(DamageKind kind)
{
    return DAMAGE_NAMES[kind];
}

const char *damage_text(DamageKind kind)
{
    return DAMAGE_TEXTS[kind];
}
