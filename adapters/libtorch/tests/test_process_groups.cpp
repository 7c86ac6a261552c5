// SPDX-License-Identifier: BSL-1.0
// The communicators against each other: every collective on every group gives on Gloo what it gives on threads; ranks that fail or vanish
// end the others. Gloo's ranks are threads of this process with a HashStore, and once real processes with a FileStore.
#define DOCTEST_CONFIG_IMPLEMENT
#include <adapters/libtorch/gloo_ranks.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/base/error.hpp>

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace {

using namespace cantle;
using namespace cantle::libtorch;
using body = std::function<void(std::int64_t, communicator&)>;
using std::chrono::steady_clock;

bool same_bits(at::Tensor const& a, at::Tensor const& b) {
    return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
           (a.numel() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
}

/// What each rank threw; empty where it ended well. Ranks are threads that talk through Gloo.
std::vector<std::string> run_with_gloo(device_mesh const& mesh, body const& run) {
    auto const store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::string> thrown(static_cast<std::size_t>(mesh.device_count()));
    std::vector<std::thread> threads;
    for (std::int64_t r = 0; r < mesh.device_count(); ++r)
        threads.emplace_back([&, r] {
            std::unique_ptr<communicator> others;
            try {
                others = gloo_communicator(store, mesh, r, {});
                run(r, *others);
            } catch (std::exception const& e) {
                thrown[static_cast<std::size_t>(r)] = e.what();
                if (others) others->fail(e.what());
            }
        });
    for (auto& t : threads) t.join();
    return thrown;
}

transfer call_of(device_mesh const& mesh, std::vector<std::uint8_t> axes, std::int64_t rank, collective_kind kind, reduction reduce) {
    transfer t;
    t.kind = kind;
    t.axes = std::move(axes);
    t.reduce = reduce;
    for (auto a : t.axes) t.members *= mesh.size(a);
    t.member = member_of(mesh, t.axes, rank);
    t.send_to = (t.member + 1) % t.members;  // round the ring
    t.receive_from = (t.member + t.members - 1) % t.members;
    return t;
}

/// Small whole numbers: sums are exact in every type, so that both bodies must agree to the bit.
at::Tensor buffer_of(std::int64_t rank, std::int64_t members, at::ScalarType type, std::int64_t columns = 3) {
    return ((at::arange(members * columns).view({members, columns}) * 5 + rank * 7) % 11).to(type);
}

/// All collectives of a rank, started all at once, waited for last to first.
std::vector<at::Tensor> all_collectives(device_mesh const& mesh, std::int64_t rank, communicator& others) {
    std::vector<std::vector<std::uint8_t>> groups;
    for (std::uint8_t a = 0; a < mesh.dims(); ++a) groups.push_back({a});
    if (mesh.dims() == 2) {
        groups.push_back({0, 1});
        groups.push_back({1, 0});
    }
    std::vector<std::unique_ptr<pending>> started;
    for (auto const& axes : groups) {
        auto const add = [&](collective_kind kind, reduction reduce, at::ScalarType type, std::int64_t columns = 3) {
            auto const t = call_of(mesh, axes, rank, kind, reduce);
            started.push_back(others.start(t, buffer_of(rank, t.members, type, columns)));
        };
        for (auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong, at::kBool, at::kShort, at::kComplexFloat})
            for (auto kind : {collective_kind::all_gather, collective_kind::all_to_all, collective_kind::permute})
                add(kind, reduction::sum, type);
        for (auto type : {at::kDouble, at::kFloat, at::kBFloat16, at::kLong})
            for (auto reduce : {reduction::sum, reduction::avg, reduction::max, reduction::min}) {
                add(collective_kind::all_reduce, reduce, type);
                add(collective_kind::reduce_scatter, reduce, type);
            }
        for (auto kind : {collective_kind::all_gather, collective_kind::all_to_all, collective_kind::permute, collective_kind::all_reduce,
                          collective_kind::reduce_scatter})
            add(kind, reduction::sum, at::kFloat, 0);  // nothing to move
    }
    std::vector<at::Tensor> results(started.size());
    for (std::size_t i = started.size(); i-- > 0;) results[i] = started[i]->wait();
    return results;
}

/// One process of several: every collective, against what threads give. `how`: "run", "vanish" (rank 1 is gone before the second
/// collective), "throw" (rank 1 fails there). Prints what went wrong.
int run_as_process(std::string const& how, std::int64_t rank, std::int64_t ranks, std::string const& file) {
    auto const mesh = device_mesh({{"a0", ranks}});
    auto const store = c10::make_intrusive<c10d::FileStore>(file, static_cast<int>(ranks));
    auto const others = gloo_communicator(store, mesh, rank, {{0}});
    try {
        auto const got = all_collectives(mesh, rank, *others);
        std::vector<std::vector<at::Tensor>> want(static_cast<std::size_t>(ranks));
        run_with_threads(mesh, [&](std::int64_t r, communicator& c) { want[static_cast<std::size_t>(r)] = all_collectives(mesh, r, c); });
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!same_bits(got[i], want[static_cast<std::size_t>(rank)][i])) return 4;
        if (how == "run") return 0;
        if (rank == 1 && how == "vanish") ::_exit(9);
        if (rank == 1) {
            others->fail("rank 1, 'x' (aten::mm): broke");
            return 5;
        }
        auto const t = call_of(mesh, {0}, rank, collective_kind::all_reduce, reduction::sum);
        others->run(t, buffer_of(rank, ranks, at::kFloat));
    } catch (std::exception const& e) {
        std::string const what = e.what();
        others->fail(what);
        bool const told = what.find(how == "vanish" ? "another rank" : "aten::mm): broke") != std::string::npos;
        if (!told) std::cerr << what << '\n';
        ::_exit(told ? 6 : 7);
    }
    ::_exit(8);
}

/// Exit statuses of that many processes of this program.
std::vector<int> run_processes(std::string const& how, std::int64_t ranks) {
    auto const file = std::filesystem::temp_directory_path() / ("cantle_groups_" + how + "_" + std::to_string(::getpid()));
    std::filesystem::remove(file);
    std::vector<pid_t> children;
    auto const self = std::filesystem::read_symlink("/proc/self/exe").string();
    for (std::int64_t r = 0; r < ranks; ++r) {
        std::vector<std::string> words{self, "--rank", how, std::to_string(r), std::to_string(ranks), file.string()};
        std::vector<char*> argv;
        for (auto& w : words) argv.push_back(w.data());
        argv.push_back(nullptr);
        pid_t child = 0;
        REQUIRE(::posix_spawn(&child, self.c_str(), nullptr, nullptr, argv.data(), environ) == 0);
        children.push_back(child);
    }
    std::vector<int> statuses;
    for (auto child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    std::filesystem::remove(file);
    return statuses;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 6 && std::string(argv[1]) == "--rank") return run_as_process(argv[2], std::stol(argv[3]), std::stol(argv[4]), argv[5]);
    return doctest::Context(argc, argv).run();
}

TEST_CASE("every collective on every group of 2 to 4 ranks gives on Gloo what it gives on threads") {
    for (std::string const sizes : {"2", "3", "4", "2x2"}) {
        CAPTURE(sizes);
        auto const mesh = device_mesh::parse(sizes);
        std::vector<std::vector<at::Tensor>> want(static_cast<std::size_t>(mesh.device_count())), got = want;
        run_with_threads(mesh, [&](std::int64_t r, communicator& c) { want[static_cast<std::size_t>(r)] = all_collectives(mesh, r, c); });
        auto const thrown =
            run_with_gloo(mesh, [&](std::int64_t r, communicator& c) { got[static_cast<std::size_t>(r)] = all_collectives(mesh, r, c); });
        for (auto const& t : thrown) CHECK(t == "");
        for (std::size_t r = 0; r < want.size(); ++r) {
            REQUIRE(got[r].size() == want[r].size());
            for (std::size_t i = 0; i < want[r].size(); ++i)
                CHECK_MESSAGE(same_bits(got[r][i], want[r][i]), "rank ", r, " collective ", i, "\n", got[r][i], "\n", want[r][i]);
        }
    }
}

// Members 0 1 2; buffers of two columns.
TEST_CASE("collectives on threads give what their definition says") {
    auto const mesh = device_mesh::parse("3");
    run_with_threads(mesh, [&](std::int64_t r, communicator& c) {
        auto const mine = at::arange(6, at::kLong).view({3, 2}) + 100 * r;
        auto const run = [&](collective_kind kind, reduction reduce = reduction::sum) {
            return c.run(call_of(mesh, {0}, r, kind, reduce), mine);
        };
        auto const of = [&](std::int64_t rank) { return at::arange(6, at::kLong).view({3, 2}) + 100 * rank; };
        CHECK(same_bits(run(collective_kind::all_gather), at::stack({of(0), of(1), of(2)})));
        CHECK(same_bits(run(collective_kind::all_reduce), of(0) * 3 + 300));
        CHECK(same_bits(run(collective_kind::all_reduce, reduction::max), of(2)));
        CHECK(same_bits(run(collective_kind::all_reduce, reduction::min), of(0)));
        CHECK(same_bits(run(collective_kind::reduce_scatter), of(0)[r] * 3 + 300));
        CHECK(same_bits(run(collective_kind::all_to_all), at::stack({of(0)[r], of(1)[r], of(2)[r]})));
        CHECK(same_bits(run(collective_kind::permute), of((r + 2) % 3)));
    });
}

TEST_CASE("a rank that comes late to a collective on Gloo is waited for") {
    auto const mesh = device_mesh::parse("2");
    auto const thrown = run_with_gloo(mesh, [&](std::int64_t r, communicator& c) {
        auto const started = c.start(call_of(mesh, {0}, r, collective_kind::all_reduce, reduction::sum), at::ones({2}));
        if (r == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // longer than a look for failures
        c.run(call_of(mesh, {0}, r, collective_kind::all_reduce, reduction::sum), at::ones({2}));
        CHECK(same_bits(started->wait(), at::full({2}, 2.0f)));
    });
    for (auto const& t : thrown) CHECK(t == "");
}

TEST_CASE("a rank that fails ends those that wait for it on Gloo, also for a collective started before, and they name its op") {
    auto const mesh = device_mesh::parse("3");
    for (auto kind : {collective_kind::all_gather, collective_kind::all_reduce, collective_kind::reduce_scatter,
                      collective_kind::all_to_all, collective_kind::permute}) {
        CAPTURE(to_string(kind));
        auto const start = steady_clock::now();
        auto const thrown = run_with_gloo(mesh, [&](std::int64_t r, communicator& c) {
            auto const t = call_of(mesh, {0}, r, kind, reduction::sum);
            c.run(t, buffer_of(r, 3, at::kFloat));
            if (r == 1) throw error(error_code::rank_failed, "rank 1, 'x' (aten::mm)", "broke", "");
            auto const under_way = c.start(t, buffer_of(r, 3, at::kFloat));
            c.start(t, buffer_of(r, 3, at::kFloat))->wait();
        });
        CHECK(steady_clock::now() - start < std::chrono::seconds(20));  // it does not hang; no measure of speed
        for (auto r : {0u, 2u}) {
            CHECK_MESSAGE(thrown[r].find("another rank") != std::string::npos, thrown[r]);
            CHECK_MESSAGE(thrown[r].find("rank 1, 'x' (aten::mm): broke") != std::string::npos, thrown[r]);
        }
    }
}

TEST_CASE("real processes run all collectives through Gloo") { CHECK(run_processes("run", 3) == std::vector<int>{0, 0, 0}); }
TEST_CASE("a process that fails or vanishes ends the others") {
    auto const start = steady_clock::now();
    CHECK(run_processes("throw", 3) == std::vector<int>{6, 5, 6});
    CHECK(run_processes("vanish", 3) == std::vector<int>{6, 9, 6});
    CHECK(steady_clock::now() - start < std::chrono::seconds(60));
}
