# SPDX-License-Identifier: BSL-1.0
# What every test program may rely on, whichever folder registers it.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# Tests find the tree through environment variables, not macros: so their objects do not depend on where the clone lies, and ccache finds
# them again. CANTLE_SHARED_DIR need not exist: data that is no part of the repository (published instances) is looked for there, and a test
# that wants it says so and skips when it is missing.
get_filename_component(cantle_shared_dir "${PROJECT_SOURCE_DIR}/../shared" ABSOLUTE)

# cantle_add_test(NAME LABEL COMMAND...): each test runs in a folder of its own, so that tests can run at the same time and write files.
function(cantle_add_test name label)
    set(folder "${PROJECT_BINARY_DIR}/test_folders/${name}")
    file(MAKE_DIRECTORY "${folder}")
    add_test(NAME "${name}" COMMAND ${ARGN} WORKING_DIRECTORY "${folder}")
    set(environment
        "CANTLE=${PROJECT_BINARY_DIR}/bin/cantle"
        "CANTLE_BIN_DIR=${PROJECT_BINARY_DIR}/bin"
        "CANTLE_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
        "CANTLE_SHARED_DIR=${cantle_shared_dir}")
    if(CANTLE_SANITIZE)
        set(supp "${PROJECT_SOURCE_DIR}/tests/sanitizers")
        list(APPEND environment "LSAN_OPTIONS=suppressions=${supp}/lsan.supp:print_suppressions=0"
            "ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=0"
            "UBSAN_OPTIONS=print_stacktrace=1:suppressions=${supp}/ubsan.supp"
            "TSAN_OPTIONS=halt_on_error=1")
    endif()
    set_tests_properties("${name}" PROPERTIES LABELS "${label}" TIMEOUT 900 ENVIRONMENT "${environment}")
endfunction()
