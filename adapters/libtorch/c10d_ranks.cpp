// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/c10d_ranks.hpp>
#include <adapters/libtorch/thread_ranks.hpp>

#include <cantle/base/error.hpp>

#include <ATen/Functions.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace cantle::libtorch {
namespace {

constexpr auto failure_key = "cantle/failed";
constexpr std::chrono::milliseconds look_every{100};

std::string first_line(std::string const& s) { return s.substr(0, s.find('\n')); }

/// Groups of runs that failed. Destroying one would wait for what is under way in it.
void give_up(std::map<std::vector<std::uint8_t>, c10d_communicator::backend>&& groups) {
    static auto* const kept = new std::vector<std::map<std::vector<std::uint8_t>, c10d_communicator::backend>>;
    static auto* const lock = new std::mutex;
    std::lock_guard const guard(*lock);
    kept->push_back(std::move(groups));
}

class c10d_pending final : public pending {
public:
    c10d_pending(c10d_communicator& others, c10::intrusive_ptr<c10d::Work> work, at::Tensor sent, at::Tensor received)
        : others_(others), work_(std::move(work)), sent_(std::move(sent)), received_(std::move(received)) {}
    bool is_done() override { return !work_ || work_->isCompleted(); }
    at::Tensor wait() override {
        while (work_) {
            try {
                if (others_.host_waits()) work_->wait(look_every);
                else work_->wait();
                work_ = nullptr;
            } catch (std::exception const& e) {
                others_.look_for_failure();
                if (work_->isCompleted())
                    throw error(error_code::rank_failed, "another rank", "it left or cannot be reached: " + first_line(e.what()), "");
            }
        }
        auto result = received_;
        if (part_ >= 0) result = result.select(0, part_).clone();
        if (divide_by_ > 1) result = at::isFloatingType(result.scalar_type()) ? result.div_(divide_by_) : result.div(divide_by_);
        return flat_ ? result.view(type_).view(sizes_) : result;
    }
    bool flat_ = false;                 // it moved as one row of elements or bytes, and means type_ and sizes_
    at::ScalarType type_ = at::kFloat;
    shape sizes_;
    std::int64_t part_ = -1;            // of a reduction that gives all parts
    double divide_by_ = 1;

private:
    c10d_communicator& others_;
    c10::intrusive_ptr<c10d::Work> work_;
    at::Tensor sent_, received_;
};

}  // namespace

std::vector<std::vector<std::uint8_t>> groups_of(rank_program const& program) {
    std::set<std::vector<std::uint8_t>> all;
    for (auto const& s : program.steps)
        if (s.is_transfer() && s.move.communicates()) all.insert(s.move.axes);
    return {all.begin(), all.end()};
}

c10d_communicator::c10d_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh mesh, std::int64_t rank, bool host_waits,
                                     make_backend make, std::vector<std::vector<std::uint8_t>> const& groups)
    : store_(std::move(store)), mesh_(std::move(mesh)), rank_(rank), host_waits_(host_waits), make_(std::move(make)) {
    for (auto const& axes : groups) group(axes);
}

c10d_communicator::~c10d_communicator() {
    if (failed_) give_up(std::move(groups_));
}

c10d::Backend& c10d_communicator::group(std::vector<std::uint8_t> const& axes) {
    auto& g = groups_[axes];
    if (g) return *g;
    auto const ranks = ranks_of_group(mesh_, axes, rank_);
    std::string name = "cantle";
    for (auto r : ranks) name += "/" + std::to_string(r);
    try {
        g = make_(c10::make_intrusive<c10d::PrefixStore>(name, store_), static_cast<int>(member_of(mesh_, axes, rank_)),
                  static_cast<int>(ranks.size()));
    } catch (error const&) {
        throw;
    } catch (std::exception const& e) {
        look_for_failure();
        throw error(error_code::rank_failed, "rank " + std::to_string(rank_),
                    "the group of ranks " + name.substr(name.find('/') + 1) + " cannot be made: " + first_line(e.what()),
                    "start all ranks, with a store that all of them reach");
    }
    return *g;
}

std::unique_ptr<pending> c10d_communicator::start(transfer const& t, at::Tensor mine) {
    auto& g = group(t.axes);
    auto const type = mine.scalar_type();
    auto const sizes = mine.sizes().vec();
    auto const finish = [&](c10::intrusive_ptr<c10d::Work> work, at::Tensor sent, at::Tensor received, shape result) {
        auto p = std::make_unique<c10d_pending>(*this, std::move(work), std::move(sent), std::move(received));
        p->flat_ = true;
        p->type_ = type;
        p->sizes_ = std::move(result);
        return p;
    };
    auto const bytes = [](at::Tensor const& x) { return x.reshape({-1}).view(at::kByte); };
    std::vector<std::int64_t> none;
    switch (t.kind) {
        case collective_kind::all_gather: {
            shape result = sizes;
            result.insert(result.begin(), t.members);
            auto sent = bytes(mine), received = at::empty({t.members * sent.numel()}, sent.options());
            if (sent.numel() == 0) return finish(nullptr, sent, at::empty(result, mine.options()), result);
            return finish(g.all_gather_single(received, sent), sent, received, result);
        }
        case collective_kind::all_to_all: {
            auto sent = bytes(mine), received = at::empty_like(sent);
            if (sent.numel() == 0) return finish(nullptr, sent, at::empty_like(mine), sizes);
            return finish(g.all_to_all_single(received, sent, none, none), sent, received, sizes);
        }
        case collective_kind::permute: {  // an all_to_all in which every member talks to one other
            auto sent = bytes(mine), received = at::empty_like(sent);
            if (sent.numel() == 0) return finish(nullptr, sent, at::empty_like(mine), sizes);
            std::vector<std::int64_t> to(static_cast<std::size_t>(t.members), 0), from(to);
            to[static_cast<std::size_t>(t.send_to)] = from[static_cast<std::size_t>(t.receive_from)] = sent.numel();
            return finish(g.all_to_all_single(received, sent, from, to), sent, received, sizes);
        }
        case collective_kind::all_reduce:
        case collective_kind::reduce_scatter: {
            bool const sums = t.reduce == reduction::sum || t.reduce == reduction::avg;
            auto const op = sums ? c10d::ReduceOp::SUM : t.reduce == reduction::max ? c10d::ReduceOp::MAX : c10d::ReduceOp::MIN;
            std::unique_ptr<c10d_pending> p;
            // Gloo's own reduce_scatter is an all_reduce too, and waits for it without a look at failures.
            if (t.kind == collective_kind::reduce_scatter && sums && mine.numel() > 0 && !host_waits_) {
                auto sent = mine.reshape({-1}), received = at::empty({sent.numel() / t.members}, sent.options());
                c10d::ReduceScatterOptions options;
                options.reduceOp = op;
                p = finish(g.reduce_scatter_single(received, sent, options), sent, received, {sizes.begin() + 1, sizes.end()});
            } else {
                auto received = mine.clone();
                std::vector<at::Tensor> list{received};
                c10d::AllreduceOptions options;
                options.reduceOp = op;
                p = std::make_unique<c10d_pending>(*this, mine.numel() > 0 ? g.allreduce(list, options) : nullptr, at::Tensor(), received);
                if (t.kind == collective_kind::reduce_scatter) p->part_ = t.member;
            }
            p->type_ = t.reduce == reduction::avg && !at::isFloatingType(type) ? at::kFloat : type;
            if (t.reduce == reduction::avg) p->divide_by_ = static_cast<double>(t.members);
            return p;
        }
        case collective_kind::slice: break;
    }
    throw error(error_code::bad_program, "slice", "it is no collective", "");
}

void c10d_communicator::fail(std::string const& why) noexcept {
    failed_ = true;
    try {
        std::vector<std::uint8_t> const word(why.begin(), why.end());
        store_->compareSet(failure_key, {}, word);  // the first word stays
    } catch (std::exception const&) {
        // Nobody is left to tell; the others see their connections close.
    }
}

void c10d_communicator::look_for_failure() {
    if (!store_->check({failure_key})) return;
    auto const word = store_->get(failure_key);
    throw error(error_code::rank_failed, "another rank", std::string(word.begin(), word.end()), "");
}

}  // namespace cantle::libtorch
