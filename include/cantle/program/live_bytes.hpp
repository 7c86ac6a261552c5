// SPDX-License-Identifier: BSL-1.0
#pragma once
// How many bytes a rank holds while each step of its program runs. Counted as the executor works: tensors go at their last use, views
// share memory where strides allow it, sources belong to the caller and outputs stay; a transfer holds what it sends (packed where the
// layout asks for it) and what it receives until its first reader waits for it, and unpacks then. What a kernel takes for itself while it
// runs is not counted, nor what an allocator loses between tensors, nor states of an optimizer: the program has none.
#include <cantle/graph/training_graph.hpp>
#include <cantle/program/local_storage.hpp>
#include <cantle/program/program.hpp>
#include <cantle/program/step_shapes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cantle {

/// Memory that is held: by the value that made it, or for a transfer in flight that moves this value.
struct held_memory {
    enum class use : std::uint8_t { source, value, sent, received };
    program_value value = 0;
    use what = use::value;
    std::int64_t bytes = 0;
};

struct memory_profile {
    std::vector<std::int64_t> at_step;   ///< [step] most bytes held at once while it runs
    std::int64_t sources = 0;            ///< bytes of parameters, inputs and the like
    std::int64_t peak = 0;
    std::size_t peak_step = 0;           ///< the first step where it is reached
    std::vector<held_memory> at_peak;    ///< largest first
    std::size_t unsized_values = 0;      ///< made on the way inside an op, of a size that nobody knows: counted as nothing
};

namespace detail {

class memory_walk {
public:
    memory_walk(rank_program const& p, training_graph const& g, bool asynchronous)
        : p_(p), g_(g), asynchronous_(asynchronous), at_(p.values.size()), pending_(p.values.size()), made_for_(p.values.size(), nullptr) {
        note_graph_values();
    }
    memory_profile run() {
        for (auto const& in : p_.inputs) {
            auto const& info = p_.values[in.value];
            bind(in.value, in.piece.sizes, contiguous_strides(in.piece.sizes), info.type, held_memory::use::source);
            ++storages_[*at_[in.value].storage].owners;  // the caller's
            profile_.sources += storages_[*at_[in.value].storage].bytes;
        }
        for (step_ = 0; step_ < p_.steps.size(); ++step_) {
            high_ = held_;
            look();
            auto const& s = p_.steps[step_];
            for (auto v : s.inputs) wait_for(v);
            if (!s.is_transfer()) run_call(s);
            else if (s.move.communicates()) start(s);
            else run_slice(s);
            for (auto v : s.last_uses) {
                wait_for(v);
                if (at_[v].storage) release(*at_[v].storage);
                at_[v].storage.reset();
            }
            profile_.at_step.push_back(high_);
        }
        std::sort(profile_.at_peak.begin(), profile_.at_peak.end(), [](held_memory const& a, held_memory const& b) {
            return a.bytes != b.bytes ? a.bytes > b.bytes : a.value != b.value ? a.value < b.value : a.what < b.what;
        });
        return std::move(profile_);
    }

private:
    struct storage {
        held_memory is;
        std::int64_t bytes = 0;
        std::size_t owners = 0;
    };
    struct placed {
        std::optional<std::size_t> storage;
        std::optional<shape> sizes;
        shape strides;
        dtype type = dtype::float32;
    };
    struct flight {
        bool is = false;
        std::size_t sent = 0, step = 0;
    };
    rank_program const& p_;
    training_graph const& g_;
    bool asynchronous_;
    std::vector<placed> at_;                       // [value]
    std::vector<flight> pending_;                  // [value]
    std::vector<tensor_meta const*> made_for_;     // [value] the graph's tensor that a call makes, for its strides
    std::vector<storage> storages_;
    std::vector<std::size_t> live_;                // storages with owners
    memory_profile profile_;
    std::int64_t held_ = 0, high_ = 0;
    std::size_t step_ = 0;

    /// The last calls of a vertex make the graph's tensors: matched by shape, as a local program may end in any of its values.
    void note_graph_values() {
        for (auto const& s : p_.steps) {
            if (s.is_transfer()) continue;
            auto const& outputs = g_[s.at].outputs;
            for (std::size_t o = 0; o < s.outputs.size(); ++o)
                if (s.outputs.size() == outputs.size() && p_.values[s.outputs[o]].sizes) made_for_[s.outputs[o]] = &outputs[o];
        }
    }
    std::size_t allocate(held_memory is) {
        storages_.push_back({is, is.bytes, 1});
        live_.push_back(storages_.size() - 1);
        held_ += is.bytes;
        look();
        return storages_.size() - 1;
    }
    void release(std::size_t s) {
        if (--storages_[s].owners > 0) return;
        held_ -= storages_[s].bytes;
        live_.erase(std::find(live_.begin(), live_.end(), s));
    }
    void look() {
        high_ = std::max(high_, held_);
        if (held_ <= profile_.peak) return;
        profile_.peak = held_;
        profile_.peak_step = step_;
        profile_.at_peak.clear();
        for (auto s : live_)
            if (storages_[s].bytes > 0) profile_.at_peak.push_back(storages_[s].is);
    }
    void bind(program_value v, shape const& sizes, shape strides, dtype type, held_memory::use what) {
        at_[v] = {allocate({v, what, element_count(sizes) * element_bytes(type)}), sizes, std::move(strides), type};
    }
    void share(program_value v, std::size_t storage, shape sizes, shape strides, dtype type) {
        ++storages_[storage].owners;
        at_[v] = {storage, std::move(sizes), std::move(strides), type};
    }

    void run_call(program_step const& s) {
        std::vector<tensor_meta> inferred;
        bool asked = false;
        for (std::size_t o = 0; o < s.outputs.size(); ++o) {
            auto const v = s.outputs[o];
            auto const& info = p_.values[v];
            if (!info.defined) continue;
            auto sizes = info.sizes;
            auto type = info.type;
            if (!sizes) {
                if (!std::exchange(asked, true)) inferred = infer(s);
                if (o < inferred.size()) {
                    sizes = inferred[o].sizes;
                    type = inferred[o].type;
                }
            }
            if (!sizes) {
                ++profile_.unsized_values;
                continue;
            }
            if (!s.inputs.empty() && at_[s.inputs[0]].storage && at_[s.inputs[0]].sizes) {
                auto const from = at_[s.inputs[0]];
                if (auto strides = shared_strides(s.call, *from.sizes, from.strides, *sizes)) {
                    share(v, *from.storage, *sizes, std::move(*strides), type);
                    continue;
                }
            }
            bind(v, *sizes, made_for_[v] ? dense_strides(*sizes, made_for_[v]->strides) : contiguous_strides(*sizes), type,
                 held_memory::use::value);
        }
    }
    /// Metas of a step inside an op; empty where they are not known.
    std::vector<tensor_meta> infer(program_step const& s) const {
        std::vector<tensor_meta> operands;
        for (auto v : s.inputs) {
            if (!at_[v].sizes) return {};
            operands.push_back({*at_[v].sizes, at_[v].strides, at_[v].type, true});
        }
        return step_outputs(s.call, operands);
    }
    /// A contiguous buffer of what a transfer sends: the tensor itself where nothing is to be packed.
    std::size_t packed(program_step const& s) {
        auto const from = at_[s.inputs[0]];
        if (!moves_as_it_is(s)) {
            bool const padded = !s.move.spread.empty();
            return allocate({s.outputs[0], held_memory::use::sent,
                             padded ? element_count(s.move.sent()) * element_bytes(from.type) : storage_bytes(from)});
        }
        ++storages_[*from.storage].owners;
        return *from.storage;
    }
    bool moves_as_it_is(program_step const& s) const {
        auto const& from = at_[s.inputs[0]];
        return s.move.pack.is_identity() && s.move.spread.empty() && from.sizes && is_contiguous(*from.sizes, from.strides);
    }
    static std::int64_t storage_bytes(placed const& t) { return t.sizes ? element_count(*t.sizes) * element_bytes(t.type) : 0; }

    void run_slice(program_step const& s) {
        if (!at_[s.inputs[0]].storage) return;
        auto const from = at_[s.inputs[0]];
        auto const& after = s.move.after;
        if (s.move.takes_part() && moves_as_it_is(s)) share(s.outputs[0], *from.storage, after, contiguous_strides(after), from.type);
        else bind(s.outputs[0], after, contiguous_strides(after), from.type, held_memory::use::value);  // its part alone is copied
    }
    void start(program_step const& s) {
        auto const v = s.outputs[0];
        auto const from = at_[s.inputs[0]];
        if (!from.storage || !from.sizes) {
            ++profile_.unsized_values;
            return;
        }
        auto const sent = packed(s);
        auto const& after = p_.values[v].sizes ? *p_.values[v].sizes : *from.sizes;
        bind(v, after, contiguous_strides(after), from.type, held_memory::use::received);
        pending_[v] = {true, sent, step_};
        if (!asynchronous_) wait_for(v);
    }
    void wait_for(program_value v) {
        if (!pending_[v].is) return;
        pending_[v].is = false;
        auto const& move = p_.steps[pending_[v].step].move;
        if (!move.unpack.is_identity() || !move.close.empty()) {
            auto const received = *at_[v].storage;
            at_[v].storage = allocate({v, held_memory::use::value, storages_[received].bytes});
            release(received);
        } else {
            storages_[*at_[v].storage].is.what = held_memory::use::value;
        }
        release(pending_[v].sent);
    }
};

}  // namespace detail

/// The bytes that `p` holds step by step. `asynchronous`: transfers are waited for at their first reader, else at once. Preconditions: p is
/// a program of g that check_programs passes.
inline memory_profile live_bytes(rank_program const& p, training_graph const& g, bool asynchronous = true) {
    return detail::memory_walk(p, g, asynchronous).run();
}

}  // namespace cantle
