// Planted bugs: deliberate bugs that the model test must find (tests/model/planted). They exist
// only in the variant of the store that this test is built with. In all other builds PLANTED is
// just `right`.

#pragma once

#ifdef TINE_PLANTED_BUGS
extern int planted_bug; // the number of the active bug; 0: none
#define PLANTED(number, wrong, right) (planted_bug == (number) ? (wrong) : (right))
#else
#define PLANTED(number, wrong, right) (right)
#endif
