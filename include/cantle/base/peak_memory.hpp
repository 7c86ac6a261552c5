// SPDX-License-Identifier: BSL-1.0
#pragma once
// How much memory the process has used at most: for reports and benches.
#include <cantle/base/units.hpp>

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>

namespace cantle {

/// Most memory of this process so far; 0 where it cannot be found out. Linux says it in VmHWM; getrusage, the fallback, counts what
/// the parent held when it forked as well.
inline bytes peak_memory() {
    if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
        char line[256];
        long long kib = 0;
        while (std::fgets(line, sizeof line, file))
            if (std::sscanf(line, "VmHWM: %lld kB", &kib) == 1) break;
        std::fclose(file);
        if (kib > 0) return bytes{kib * 1024};
    }
    rusage usage{};
    return bytes{::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::int64_t>(usage.ru_maxrss) * 1024 : 0};
}

}  // namespace cantle
