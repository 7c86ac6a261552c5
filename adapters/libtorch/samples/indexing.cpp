// SPDX-License-Identifier: BSL-1.0
// Reading and writing by index: rotary tables by position, multi-query heads (Falcon), tokens of experts, one element per row.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {
namespace {

/// Tensors that index, one per dim from the front; undefined ones stand for None.
sample& indexed_by(sample& s, std::vector<at::Tensor> const& list) {
    operand_slots slots;
    for (auto const& t : list) {
        slots.indices.push_back(t.defined() ? static_cast<std::int32_t>(s.made.operands.size()) : -1);
        if (t.defined()) s.made.operands.push_back(t);
    }
    s.made.operation.arguments.push_back({"indices", std::move(slots)});
    return s;
}

struct indexed {
    shape self;
    std::vector<at::Tensor> by;
};

std::vector<indexed> reads() {
    at::Tensor const skip;
    auto const negative = indices({6}, 12) - 12;
    return {
        {{24, 6}, {indices({12}, 24)}},                                   // rows of a table
        {{24, 6}, {indices({4, 12}, 24)}},                                // [batch, sequence] of positions
        {{4, 12, 6, 3}, {skip, skip, indices({1}, 6)}},                   // Falcon: one head
        {{4, 12, 6}, {skip, indices({12}, 12)}},                          //
        {{12, 24}, {indices({12}, 12), indices({12}, 24)}},               // a element per row
        {{12, 24, 3}, {indices({4, 1}, 12), indices({6}, 24)}},           // broadcast
        {{12, 5, 24}, {indices({6}, 12), skip, indices({6}, 24)}},        // not in a row: their dims come first
        {{2, 12, 24, 3}, {skip, indices({6, 4}, 12), indices({4}, 24)}},  //
        {{12, 4}, {negative}},                                            // from the end
        {{4, 12}, {skip, indices({}, 12)}},                               // a single one
    };
}

}  // namespace

void add_indexing_samples(sample_list& s) {
    for (auto const& [self, by] : reads()) {
        for (auto name : {"aten::index.Tensor", "aten::_unsafe_index.Tensor"}) {
            auto made = sample(name).arg("self", eighths(self));
            s.push_back(indexed_by(made, by));
        }
    }
    auto integers = sample("aten::index.Tensor").arg("self", indices({12, 4}, 100));
    s.push_back(indexed_by(integers, {indices({6}, 12)}));
    auto booleans = sample("aten::index.Tensor").arg("self", flags({12, 4}));
    s.push_back(indexed_by(booleans, {indices({12}, 12)}));
    auto masked = sample("aten::index.Tensor").arg("self", eighths({12, 4}));
    s.push_back(indexed_by(masked, {flags({12})}));

    // Every place is written once, or values are added: what is written twice is whatever came last.
    at::Tensor const skip;
    struct put {
        shape self;
        std::vector<at::Tensor> by;
        shape values;
    };
    put const once[] = {{{24, 4}, {indices({12}, 12)}, {12, 4}},
                        {{16}, {at::arange(16)}, {16}},                                 // A43
                        {{4, 4}, {at::arange(4), at::arange(4)}, {4}},                  // A44
                        {{4, 4}, {indices({4}, 4), indices({4}, 4)}, {4}},              //
                        {{4, 12, 6, 3}, {skip, skip, indices({1}, 6)}, {4, 12, 1, 3}},  // Falcon's backward
                        {{4, 12, 6}, {skip, indices({12}, 12)}, {6}},                   // values broadcast
                        {{12, 5, 24}, {indices({6}, 12), skip, indices({6}, 24)}, {6, 5}},
                        {{12, 24}, {indices({12}, 12).reshape({12, 1}), indices({24}, 24)}, {12, 24}},
                        {{12, 4}, {indices({6}, 12) - 12}, {6, 1}}};
    for (auto name : {"aten::index_put", "aten::_unsafe_index_put"})
        for (bool accumulate : {false, true})
            for (auto const& [self, by, values] : once) {
                auto made = sample(name).arg("self", eighths(self));
                s.push_back(indexed_by(made, by).arg("values", eighths(values)).arg("accumulate", accumulate));
            }
    put const often[] = {{{6, 4}, {indices({24}, 6)}, {24, 4}},
                         {{12, 3}, {indices({4, 6}, 12)}, {4, 6, 3}},
                         {{4, 12}, {indices({12}, 4), indices({12}, 12)}, {}},
                         {{4, 12}, {indices({12, 1}, 4), indices({2}, 12)}, {12, 2}},
                         {{12, 5, 24}, {at::zeros({6}, at::kLong), skip, at::zeros({6}, at::kLong)}, {6, 5}},
                         {{4, 4}, {at::zeros({4}, at::kLong), at::zeros({4}, at::kLong)}, {4}}};
    for (auto const& [self, by, values] : often) {
        auto made = sample("aten::index_put").arg("self", eighths(self));
        s.push_back(indexed_by(made, by).arg("values", eighths(values)).arg("accumulate", true));
    }

    struct {
        shape self;
        int dim;
        shape index;
    } const selections[] = {{{24, 6}, 0, {12}}, {{4, 12}, -1, {24}}, {{4, 12, 6}, 1, {3}},
                            {{12}, 0, {5}},     {{12, 4}, 0, {}},    {{2, 12, 3, 4}, 1, {12}}};
    for (auto const& [self, dim, index] : selections) {
        auto const size = self[static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(self.size()) : dim)];
        s.push_back(sample("aten::index_select").arg("self", eighths(self)).arg("dim", dim).arg("index", indices(index, size)));
    }
    s.push_back(sample("aten::index_select").arg("self", flags({12, 4})).arg("dim", 0).arg("index", indices({12}, 12)));
    struct {
        shape self;
        int dim;
        shape index;
    } const gathers[] = {{{1, 12}, 1, {1, 12}},      {{4, 24}, 1, {4, 12}}, {{4, 24}, -1, {2, 12}}, {{12, 6}, 0, {24, 6}},
                         {{4, 12, 6}, 1, {4, 3, 6}}, {{12}, 0, {24}},       {{12, 6}, 0, {12, 3}}};
    for (auto const& [self, dim, index] : gathers) {
        auto const size = self[static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(self.size()) : dim)];
        s.push_back(
            sample("aten::gather").arg("self", eighths(self)).arg("dim", dim).arg("index", indices(index, size)).arg("sparse_grad", false));
    }
}

}  // namespace cantle::libtorch
