// SPDX-License-Identifier: BSL-1.0
// Writing along one dim: routers (A46), the backward of gather, tokens back from experts.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {
namespace {

/// In every line along `dim` each place at most once: what is written twice is whatever came last.
at::Tensor distinct(shape const& index, std::int64_t dim, std::int64_t bound) {
    auto sizes = index;
    sizes[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(index.size()) : dim)] = bound;
    auto const count = index[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(index.size()) : dim)];
    return at::argsort(eighths(sizes), dim).narrow(dim, 0, count).contiguous();
}

}  // namespace

void add_scatter_samples(sample_list& s) {
    struct {
        shape self;
        int dim;
        shape index, src;
    } const all[] = {
        {{12, 8}, -1, {12, 2}, {12, 2}},          // router: [tokens, experts], top 2
        {{12, 8}, 1, {12, 4}, {12, 6}},           // A46: src wider than the index
        {{12, 8}, 1, {6, 4}, {12, 4}},            // index shorter: only some rows are written
        {{24, 6}, 0, {12, 6}, {12, 6}},           //
        {{4, 12, 6}, 1, {4, 12, 6}, {4, 12, 6}},  //
        {{4, 12, 6}, 0, {3, 12, 6}, {4, 12, 6}},  //
        {{24}, 0, {12}, {12}},
    };
    for (auto const& [self, dim, index, src] : all) {
        auto const size = self[static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(self.size()) : dim)];
        auto const once = distinct(index, dim, size), often = indices(index, size);
        auto const begin = [&, dim = dim, self = self](char const* name, at::Tensor const& at) {
            return sample(name).arg("self", eighths(self)).arg("dim", dim).arg("index", at);
        };
        s.push_back(begin("aten::scatter.src", once).arg("src", eighths(src)));
        for (double value : {0.0, 1.0, -2.5}) {
            s.push_back(begin("aten::scatter.value", often).arg("value", value));
            for (auto how : {"add", "multiply"})
                s.push_back(begin("aten::scatter.value_reduce", often).arg("value", value).arg("reduce", how));
        }
        for (auto how : {"add", "multiply"}) s.push_back(begin("aten::scatter.reduce", often).arg("src", eighths(src)).arg("reduce", how));
        s.push_back(begin("aten::scatter_add", often).arg("src", eighths(src)));
        for (auto how : {"sum", "prod", "mean", "amax", "amin"})
            for (bool with_self : {true, false})
                s.push_back(
                    begin("aten::scatter_reduce.two", often).arg("src", eighths(src)).arg("reduce", how).arg("include_self", with_self));
    }
    struct {
        shape self;
        int dim;
        std::int64_t count;
    } const rows[] = {{{24, 6}, 0, 12}, {{4, 12}, -1, 6}, {{4, 12, 6}, 1, 12}, {{12}, 0, 5}, {{2, 24, 3}, 1, 24}};
    for (auto const& [self, dim, count] : rows) {
        auto const d = static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(self.size()) : dim);
        auto source = self;
        source[d] = count;
        auto const once = distinct({count}, 0, self[d]), often = indices({count}, self[d] / 2);
        for (double alpha : {1.0, -2.0})
            s.push_back(sample("aten::index_add")
                            .arg("self", eighths(self))
                            .arg("dim", dim)
                            .arg("index", often)
                            .arg("source", eighths(source))
                            .arg("alpha", alpha));
        s.push_back(sample("aten::index_add")
                        .arg("self", eighths(self))
                        .arg("dim", dim)
                        .arg("index", indices({count}, 2))
                        .arg("source", eighths(source))
                        .arg("alpha", 1.0));
        s.push_back(
            sample("aten::index_copy").arg("self", eighths(self)).arg("dim", dim).arg("index", once).arg("source", eighths(source)));
        for (double value : {0.0, -1.5}) {
            s.push_back(
                sample("aten::index_fill.int_Scalar").arg("self", eighths(self)).arg("dim", dim).arg("index", often).arg("value", value));
            s.push_back(sample("aten::index_fill.int_Tensor")
                            .arg("self", eighths(self))
                            .arg("dim", dim)
                            .arg("index", often)
                            .arg("value", scalar(value - 1)));
        }
    }
}

}  // namespace cantle::libtorch
