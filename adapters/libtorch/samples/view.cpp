// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_view_samples(sample_list& s) {
    std::pair<shape, shape> const views[] = {{{2, 12, 4}, {24, 4}}, {{24, 4}, {2, 12, 4}}, {{12, 12}, {12, 3, 4}}, {{4, 4, 4}, {8, 8}},
                                             {{12, 8}, {16, 6}},    {{24}, {1, 24}},       {{3, 48}, {3, 6, 8}},   {{16}, {2, 8}},
                                             {{12, 1, 4}, {12, 4}}, {{6, 16}, {96}}};
    for (auto const& [from, to] : views) {
        for (auto name : {"aten::view", "aten::_unsafe_view"}) s.push_back(sample(name).arg("self", eighths(from)).arg("size", to));
        s.push_back(sample("aten::reshape").arg("self", eighths(from)).arg("shape", to));
        s.push_back(sample("aten::_reshape_alias").arg("self", eighths(from)).arg("size", to).arg("stride", contiguous_strides(to)));
    }
    for (shape const& x : {shape{12, 1, 4}, shape{1, 24}, shape{2, 1, 12, 1}}) {
        s.push_back(sample("aten::squeeze").arg("self", eighths(x)));
        s.push_back(sample("aten::squeeze.dim").arg("self", eighths(x)).arg("dim", 1));
        s.push_back(sample("aten::squeeze.dims").arg("self", eighths(x)).arg("dim", shape{0, 1}));
        for (int d : {0, 1, -1}) s.push_back(sample("aten::unsqueeze").arg("self", eighths(x)).arg("dim", d));
    }
    s.push_back(sample("aten::permute").arg("self", eighths({2, 12, 4})).arg("dims", shape{2, 0, 1}));
    s.push_back(sample("aten::permute").arg("self", eighths({4, 6, 12})).arg("dims", shape{-1, 1, 0}));
    s.push_back(sample("aten::transpose.int").arg("self", eighths({2, 12, 4})).arg("dim0", 1).arg("dim1", -1));
    s.push_back(sample("aten::transpose.int").arg("self", eighths({12, 6})).arg("dim0", 0).arg("dim1", 1));
    for (shape const& x : {shape{12}, shape{12, 4}, shape{3, 24}}) s.push_back(sample("aten::t").arg("self", eighths(x)));
    s.push_back(sample("aten::expand").arg("self", eighths({1, 6})).arg("size", shape{12, 4, 6}).arg("implicit", false));
    s.push_back(sample("aten::expand").arg("self", eighths({12, 1, 4})).arg("size", shape{12, 24, -1}).arg("implicit", false));
    s.push_back(sample("aten::expand").arg("self", eighths({})).arg("size", shape{12, 4}).arg("implicit", false));
    for (shape const& x : {shape{12, 24}, shape{4, 12, 6}}) {
        auto const rank = static_cast<int>(x.size());
        for (int d : {0, 1, -1}) {
            auto const size = x[static_cast<std::size_t>(d < 0 ? d + rank : d)];
            auto part = x;
            part[static_cast<std::size_t>(d < 0 ? d + rank : d)] = size / 2;
            auto dropped = x;
            dropped.erase(dropped.begin() + (d < 0 ? d + rank : d));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 1)
                            .arg("end", argument_value(size - 1))
                            .arg("step", 2));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 0)
                            .arg("end", argument_value(INT64_MAX))
                            .arg("step", 1));
            s.push_back(sample("aten::slice.Tensor")
                            .arg("self", eighths(x))
                            .arg("dim", d)
                            .arg("start", 0)
                            .arg("end", argument_value(size))
                            .arg("step", 1));
            s.push_back(sample("aten::slice_backward")
                            .arg("grad_output", eighths(part))
                            .arg("input_sizes", x)
                            .arg("dim", d)
                            .arg("start", 1)
                            .arg("end", argument_value(1 + size / 2))
                            .arg("step", 1));
            s.push_back(sample("aten::narrow").arg("self", eighths(x)).arg("dim", d).arg("start", 1).arg("length", 2));
            s.push_back(sample("aten::select.int").arg("self", eighths(x)).arg("dim", d).arg("index", 1));
            s.push_back(
                sample("aten::select_backward").arg("grad_output", eighths(dropped)).arg("input_sizes", x).arg("dim", d).arg("index", 1));
            s.push_back(sample("aten::cat").arg("tensors", std::vector{eighths(x), eighths(part), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::stack").arg("tensors", std::vector{eighths(x), eighths(x)}).arg("dim", d));
            s.push_back(sample("aten::split.Tensor").arg("self", eighths(x)).arg("split_size", argument_value(size / 2)).arg("dim", d));
            s.push_back(sample("aten::split_with_sizes").arg("self", eighths(x)).arg("split_sizes", shape{1, size - 1}).arg("dim", d));
        }
    }
}

}  // namespace cantle::libtorch
