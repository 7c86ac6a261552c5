// SPDX-License-Identifier: BSL-1.0
#pragma once
// Internal invariants. On in debug builds (NDEBUG not defined) or with CANTLE_CHECKED; the sentence says what must hold.
#include <cstdio>
#include <cstdlib>

#if !defined(NDEBUG) || defined(CANTLE_CHECKED)
#define CANTLE_ASSERT(condition, sentence)                                                                        \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            std::fprintf(stderr, "%s:%d: cantle invariant broken: %s (%s)\n", __FILE__, __LINE__, sentence, #condition); \
            std::abort();                                                                                         \
        }                                                                                                         \
    } while (false)
#else
#define CANTLE_ASSERT(condition, sentence) ((void)0)
#endif
