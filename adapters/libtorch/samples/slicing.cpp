// SPDX-License-Identifier: BSL-1.0
// Parts of dims and what joins them: slices of rotary embeddings (halves, every second element), causal masks, gates, fused projections.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {
namespace {

struct bounds { argument_value start, end; std::int64_t step; };

shape with(shape x, std::size_t d, std::int64_t size) {
    x[d] = size;
    return x;
}
shape without(shape x, std::size_t d) {
    x.erase(x.begin() + static_cast<std::ptrdiff_t>(d));
    return x;
}

void add_slices(sample_list& s, shape const& x, int dim) {
    auto const d = static_cast<std::size_t>(dim < 0 ? dim + static_cast<int>(x.size()) : dim);
    auto const size = x[d];
    using i = std::int64_t;
    bounds const all[] = {{i{1}, size - 1, 2}, {i{0}, INT64_MAX, 1}, {none, none, 1}, {i{0}, size, 1},  {i{0}, size / 2, 1}, {-size / 2, none, 1},
                          {i{0}, size, 2},     {i{1}, INT64_MAX, 2}, {i{2}, size, 3}, {i{2}, size, 2}, {i{-size}, size, 1}, {i{1}, size - 1, 1}};
    for (auto const& [start, end, step] : all) {
        for (auto name : {"aten::slice.Tensor", "aten::slice_copy.Tensor"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("start", start).arg("end", end).arg("step", step));
        // What is taken, for the ops that put it back.
        auto const* from = std::get_if<i>(&start);
        auto const* to = std::get_if<i>(&end);
        auto const first = !from ? 0 : *from < 0 ? *from + size : *from;
        auto const last = !to ? size : std::min(size, *to);
        auto const part = with(x, d, (last - first + step - 1) / step);
        if (from && to)
            s.push_back(sample("aten::slice_backward")
                            .arg("grad_output", eighths(part))
                            .arg("input_sizes", x)
                            .arg("dim", dim)
                            .arg("start", start)
                            .arg("end", end)
                            .arg("step", step));
        s.push_back(sample("aten::slice_scatter")
                        .arg("self", eighths(x))
                        .arg("src", eighths(part))
                        .arg("dim", dim)
                        .arg("start", start)
                        .arg("end", end)
                        .arg("step", step));
    }
    for (auto name : {"aten::narrow", "aten::narrow_copy"}) {
        s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("start", 1).arg("length", 2));
        s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("start", 0).arg("length", argument_value(size)));
        s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("start", argument_value(-size)).arg("length", argument_value(size)));
    }
    auto const dropped = without(x, d);
    for (auto name : {"aten::select.int", "aten::select_copy.int"})
        s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("index", 1));
    s.push_back(sample("aten::select.int").arg("self", eighths(x)).arg("dim", dim).arg("index", -1));
    s.push_back(sample("aten::select_backward").arg("grad_output", eighths(dropped)).arg("input_sizes", x).arg("dim", dim).arg("index", 1));
    s.push_back(sample("aten::select_backward").arg("grad_output", eighths(dropped)).arg("input_sizes", x).arg("dim", dim).arg("index", -1));
    s.push_back(sample("aten::select_scatter").arg("self", eighths(x)).arg("src", eighths(dropped)).arg("dim", dim).arg("index", 1));
    for (auto name : {"aten::unbind.int", "aten::unbind_copy.int"}) s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim));
    for (auto name : {"aten::split.Tensor", "aten::split_copy.Tensor"})
        for (auto part : {size / 2, size - 1, size, 2 * size})
            s.push_back(sample(name).arg("self", eighths(x)).arg("split_size", argument_value(part)).arg("dim", dim));
    for (auto name : {"aten::split_with_sizes", "aten::split_with_sizes_copy", "aten::split.sizes"})
        for (auto const& parts : {shape{1, size - 1}, shape{size / 3, size / 3, size / 3}, shape{size}})
            s.push_back(sample(name).arg("self", eighths(x)).arg(std::string(name) == "aten::split.sizes" ? "split_size" : "split_sizes", parts).arg("dim", dim));
    for (auto count : {1, 2, 3}) s.push_back(sample("aten::chunk").arg("self", eighths(x)).arg("chunks", count).arg("dim", dim));
    // Windows: overlapping, side by side, with gaps, one over all.
    struct { std::int64_t size, step; } const windows[] = {{3, 1}, {2, 2}, {1, 3}, {3, 2}, {size, 1}};
    for (auto const& [width, step] : windows) {
        for (auto name : {"aten::unfold", "aten::unfold_copy"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("dimension", dim).arg("size", width).arg("step", step));
        auto grad = with(x, d, (size - width) / step + 1);
        grad.push_back(width);
        s.push_back(sample("aten::unfold_backward")
                        .arg("grad_in", eighths(grad))
                        .arg("input_sizes", x)
                        .arg("dim", dim)
                        .arg("size", width)
                        .arg("step", step));
    }
}

void add_diagonals(sample_list& s) {
    struct { shape x; std::int64_t offset; int a, b; } const all[] = {{{12, 12}, 0, 0, 1}, {{4, 12, 6}, 1, 0, 1}, {{12, 4, 4}, 0, -2, -1}, {{2, 24, 3, 12}, -1, 0, 2}};
    for (auto const& [x, offset, a, b] : all) {
        auto const make = [&, offset = offset, a = a, b = b](sample op) { return op.arg("offset", offset).arg("dim1", a).arg("dim2", b); };
        for (auto name : {"aten::diagonal", "aten::diagonal_copy"}) s.push_back(make(sample(name).arg("self", eighths(x))));
        auto const part = at::diagonal(eighths(x), offset, a, b).sizes().vec();
        s.push_back(make(sample("aten::diagonal_backward").arg("grad_output", eighths(part)).arg("input_sizes", x)));
        s.push_back(make(sample("aten::diagonal_scatter").arg("self", eighths(x)).arg("src", eighths(part))));
    }
}

void add_joins(sample_list& s) {
    for (shape const& x : {shape{12, 24}, shape{4, 12, 6}, shape{12}, shape{2, 12, 4, 6}})
        for (int d : {0, -1}) {
            auto const at = d < 0 ? x.size() - 1 : 0;
            s.push_back(sample("aten::cat").arg("tensors", std::vector{eighths(x), eighths(with(x, at, 5)), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::cat").arg("tensors", std::vector{eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::cat").arg("tensors", std::vector{eighths(x), eighths({0}), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::stack").arg("tensors", std::vector{eighths(x), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::stack").arg("tensors", std::vector{eighths(x), eighths(x), eighths(x)}).arg("dim", x.size() > 1 ? 1 : 0));
        }
    // A53: more than 52 tensors.
    std::vector<at::Tensor> many;
    for (int i = 0; i < 60; ++i) many.push_back(eighths({12, 1 + i % 3}));
    s.push_back(sample("aten::cat").arg("tensors", many).arg("dim", 1));
}

}  // namespace

void add_slicing_samples(sample_list& s) {
    add_slices(s, {12, 24}, 0);
    add_slices(s, {12, 24}, -1);
    add_slices(s, {4, 12, 6}, 1);
    add_slices(s, {24}, 0);
    add_slices(s, {2, 3, 12, 4}, 2);
    add_diagonals(s);
    add_joins(s);
}

}  // namespace cantle::libtorch
