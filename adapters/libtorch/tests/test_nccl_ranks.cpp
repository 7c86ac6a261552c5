// SPDX-License-Identifier: BSL-1.0
// The NCCL body links and loads. Here is no GPU: it says so. (Where there is one, nothing is tried.)
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <adapters/libtorch/nccl_ranks.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Context.h>
#include <doctest/doctest.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

using namespace cantle;

TEST_CASE("without a GPU the NCCL communicator says what to do instead") {
    if (at::hasCUDA()) return;
    std::string what;
    try {
        libtorch::nccl_communicator(c10::make_intrusive<c10d::HashStore>(), device_mesh::parse("2"), 0, {{0}});
    } catch (error const& e) {
        CHECK(e.code() == error_code::rank_failed);
        what = e.what();
    }
    CHECK_MESSAGE(what.find("no GPU") != std::string::npos, what);
    CHECK_MESSAGE(what.find("on Gloo or on threads") != std::string::npos, what);
}
