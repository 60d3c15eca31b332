// Bugs planted on purpose, which the model test must find (tests/model/planted). They exist only in
// the variant of the store that its test is built with; here PLANTED is just `right`.

#pragma once

#ifdef TINE_PLANTED_BUGS
extern int planted_bug; // which one is alive; 0: none
#define PLANTED(number, wrong, right) (planted_bug == (number) ? (wrong) : (right))
#else
#define PLANTED(number, wrong, right) (right)
#endif
