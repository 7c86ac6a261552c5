// SPDX-License-Identifier: BSL-1.0
// The second translation unit of the consumer (see main.cpp).
#if __has_include(<cantle/cantle.hpp>)
#include <cantle/cantle.hpp>
#endif
#include <cantle/base/error.hpp>

int number_from_the_other_unit();

int number_from_the_other_unit() {
    return cantle::error(cantle::error_code::bad_mesh, "", "", "").number();
}
