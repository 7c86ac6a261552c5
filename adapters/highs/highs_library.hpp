// SPDX-License-Identifier: BSL-1.0
#pragma once
// The functions of HiGHS' C API that the solver calls, found in the shared library at run time.
#include <cantle/base/error.hpp>

#include <interfaces/highs_c_api.h>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace cantle::highs {

struct highs_library {
    decltype(&Highs_create) create;
    decltype(&Highs_destroy) destroy;
    decltype(&Highs_setBoolOptionValue) set_bool;
    decltype(&Highs_setIntOptionValue) set_int;
    decltype(&Highs_setDoubleOptionValue) set_double;
    decltype(&Highs_passMip) pass_mip;
    decltype(&Highs_setCallback) set_callback;
    decltype(&Highs_startCallback) start_callback;
    decltype(&Highs_run) run;
    decltype(&Highs_getModelStatus) model_status;
    decltype(&Highs_getDoubleInfoValue) double_info;
    decltype(&Highs_getIntInfoValue) int_info;
    decltype(&Highs_getSolution) solution;

    /// Loads it once. Throws adapter_missing.
    static highs_library const& get() {
        static highs_library const library;
        return library;
    }

private:
    highs_library() {
        char const* const given = std::getenv("CANTLE_HIGHS_LIBRARY");
        std::string const path = given && *given ? given : CANTLE_HIGHS_LIBRARY;
        void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            char const* const why = ::dlerror();
            throw missing(path, std::string("cannot be loaded: ") + (why ? why : "no reason given"));
        }
        auto const find = [&](auto& function, char const* name) {
            void* const symbol = ::dlsym(handle, name);
            if (!symbol) throw missing(path, std::string("has no function ") + name);
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
        };
        find(create, "Highs_create");
        find(destroy, "Highs_destroy");
        find(set_bool, "Highs_setBoolOptionValue");
        find(set_int, "Highs_setIntOptionValue");
        find(set_double, "Highs_setDoubleOptionValue");
        find(pass_mip, "Highs_passMip");
        find(set_callback, "Highs_setCallback");
        find(start_callback, "Highs_startCallback");
        find(run, "Highs_run");
        find(model_status, "Highs_getModelStatus");
        find(double_info, "Highs_getDoubleInfoValue");
        find(int_info, "Highs_getIntInfoValue");
        find(solution, "Highs_getSolution");
        // The struct that callbacks receive has grown from version to version.
        decltype(&Highs_version) version;
        find(version, "Highs_version");
        std::string const found = version();
        if (found != CANTLE_HIGHS_VERSION) throw missing(path, "is HiGHS " + found + ", not " CANTLE_HIGHS_VERSION);
    }
    static error missing(std::string const& path, std::string const& why) {
        return error(error_code::adapter_missing, "HiGHS, '" + path + "'", why,
                     "run ./dev build, which installs the wheel highsbox, or name its libhighs.so in CANTLE_HIGHS_LIBRARY");
    }
};

}  // namespace cantle::highs
