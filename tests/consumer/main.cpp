// SPDX-License-Identifier: BSL-1.0
// A project that uses cantle. Two translation units include every header it offers: a function that is not inline would not link.
#if __has_include(<cantle/cantle.hpp>)
#include <cantle/cantle.hpp>
#endif
#include <cantle/base/error.hpp>

#include <cstdio>

int number_from_the_other_unit();

int main() {
    cantle::error const here(cantle::error_code::bad_mesh, "mesh '4x'", "an axis size is missing", "write sizes as in 4x8");
    if (here.number() != number_from_the_other_unit()) {
        std::puts("the two translation units disagree");
        return 1;
    }
    std::puts(here.what());
    return 0;
}
