// SPDX-License-Identifier: BSL-1.0
// Views: flatten and unflatten as attention, mixtures of experts and losses do them, awkward ones that no cut survives, dims of size 1.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {
namespace {

void add_reshapes(sample_list& s) {
    std::pair<shape, shape> const views[] = {{{2, 12, 4}, {24, 4}}, {{24, 4}, {2, 12, 4}}, {{12, 12}, {12, 3, 4}},
                                             {{4, 4, 4}, {8, 8}},   {{12, 8}, {16, 6}},    {{24}, {1, 24}},
                                             {{3, 48}, {3, 6, 8}},  {{16}, {2, 8}},        {{12, 1, 4}, {12, 4}},
                                             {{6, 16}, {96}},       {{5, 7}, {35}},        {{4, 6, 12}, {4, 6, 12}}};
    for (auto const& [from, to] : views) {
        for (auto name : {"aten::view", "aten::_unsafe_view", "aten::view_copy"})
            s.push_back(sample(name).arg("self", eighths(from)).arg("size", to));
        s.push_back(sample("aten::reshape").arg("self", eighths(from)).arg("shape", to));
        s.push_back(sample("aten::_reshape_alias").arg("self", eighths(from)).arg("size", to).arg("stride", contiguous_strides(to)));
    }
    s.push_back(sample("aten::view").arg("self", eighths({4, 12, 6})).arg("size", shape{4, -1}));
    for (shape const& x : {shape{4, 12, 6}, shape{2, 3, 24}})
        for (int first : {0, 1, -2})
            s.push_back(sample("aten::flatten.using_ints").arg("self", eighths(x)).arg("start_dim", first).arg("end_dim", -1));
    s.push_back(sample("aten::unflatten.int").arg("self", eighths({4, 24})).arg("dim", -1).arg("sizes", shape{6, -1}));
    s.push_back(sample("aten::unflatten.int").arg("self", eighths({24, 5})).arg("dim", 0).arg("sizes", shape{2, 12}));
    for (shape const& x : {shape{12, 1, 4}, shape{1, 24}, shape{2, 1, 12, 1}}) {
        for (auto name : {"aten::squeeze", "aten::squeeze_copy"}) s.push_back(sample(name).arg("self", eighths(x)));
        for (auto name : {"aten::squeeze.dim", "aten::squeeze_copy.dim"}) s.push_back(sample(name).arg("self", eighths(x)).arg("dim", 1));
        for (auto name : {"aten::squeeze.dims", "aten::squeeze_copy.dims"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("dim", shape{0, 1}));
        for (auto name : {"aten::unsqueeze", "aten::unsqueeze_copy"})
            for (int d : {0, 1, -1}) s.push_back(sample(name).arg("self", eighths(x)).arg("dim", d));
    }
    // A13: element types of other widths, and of the same.
    for (auto name : {"aten::view.dtype", "aten::view_copy.dtype"}) {
        s.push_back(sample(name).arg("self", indices({12, 24}, 200).to(at::kByte)).arg("dtype", dtype::int64));
        s.push_back(sample(name).arg("self", indices({4, 12}, 1000)).arg("dtype", dtype::int32));
        // bits of floats between 1 and 2: those of small numbers would be too small to tell apart
        s.push_back(
            sample(name).arg("self", (indices({4, 12}, 1000) * 4096 + 0x3f800000).to(at::kInt)).arg("dtype", dtype::float32));
    }
    // Rotary embeddings in complex numbers. The oracle reads real parts; where they go, the imaginary ones go too.
    for (shape const& x : {shape{12, 2}, shape{4, 6, 12, 2}}) {
        s.push_back(sample("aten::view_as_complex").arg("self", eighths(x)));
        s.push_back(sample("aten::view_as_real").arg("self", at::view_as_complex(eighths(x)).clone()));
    }
    // Windows that overlap: no view of whole dims.
    for (auto name : {"aten::as_strided", "aten::as_strided_copy"}) {
        s.push_back(sample(name).arg("self", eighths({24})).arg("size", shape{12, 6}).arg("stride", shape{1, 2}).arg("storage_offset", 1));
        s.push_back(
            sample(name).arg("self", eighths({4, 6})).arg("size", shape{6, 4}).arg("stride", shape{1, 5}).arg("storage_offset", none));
    }
}

void add_permutations(sample_list& s) {
    for (auto name : {"aten::permute", "aten::permute_copy"}) {
        s.push_back(sample(name).arg("self", eighths({2, 12, 4})).arg("dims", shape{2, 0, 1}));
        s.push_back(sample(name).arg("self", eighths({4, 6, 12})).arg("dims", shape{-1, 1, 0}));
        s.push_back(sample(name).arg("self", eighths({2, 12, 4, 3})).arg("dims", shape{0, 2, 1, 3}));
    }
    for (auto name : {"aten::transpose.int", "aten::transpose_copy.int"}) {
        s.push_back(sample(name).arg("self", eighths({2, 12, 4})).arg("dim0", 1).arg("dim1", -1));
        s.push_back(sample(name).arg("self", eighths({12, 6})).arg("dim0", 0).arg("dim1", 1));
        s.push_back(sample(name).arg("self", eighths({12})).arg("dim0", 0).arg("dim1", -1));
    }
    for (auto name : {"aten::t", "aten::t_copy"})
        for (shape const& x : {shape{12}, shape{12, 4}, shape{3, 24}}) s.push_back(sample(name).arg("self", eighths(x)));
    s.push_back(sample("aten::movedim.int").arg("self", eighths({4, 6, 12})).arg("source", -1).arg("destination", 0));
    s.push_back(sample("aten::movedim.int").arg("self", eighths({12, 2, 4, 3})).arg("source", 0).arg("destination", 2));
    s.push_back(
        sample("aten::movedim.intlist").arg("self", eighths({4, 6, 12})).arg("source", shape{0, 1}).arg("destination", shape{-1, 0}));
    s.push_back(sample("aten::movedim.intlist").arg("self", eighths({12, 24})).arg("source", shape{1}).arg("destination", shape{0}));
}

void add_copies(sample_list& s) {
    for (auto name : {"aten::expand", "aten::expand_copy"}) {
        s.push_back(sample(name).arg("self", eighths({1, 6})).arg("size", shape{12, 4, 6}).arg("implicit", false));
        s.push_back(sample(name).arg("self", eighths({12, 1, 4})).arg("size", shape{12, 24, -1}).arg("implicit", false));
        s.push_back(sample(name).arg("self", eighths({})).arg("size", shape{12, 4}).arg("implicit", false));
        // Grouped-query attention: keys of 2 heads for 12 queries.
        s.push_back(sample(name).arg("self", eighths({4, 2, 1, 3, 5})).arg("size", shape{4, 2, 6, 3, 5}).arg("implicit", false));
    }
    struct {
        shape from, repeats;
    } const repeated[] = {{{12, 1, 4}, {1, 3, 1}}, {{6}, {4, 2}}, {{4, 6}, {12, 1}}, {{12, 5}, {2, 1, 3}}, {{3, 24}, {1, 2}}, {{}, {12}}};
    for (auto const& [from, repeats] : repeated) s.push_back(sample("aten::repeat").arg("self", eighths(from)).arg("repeats", repeats));
    s.push_back(sample("aten::tile").arg("self", eighths({4, 6})).arg("dims", shape{2}));
    s.push_back(sample("aten::tile").arg("self", eighths({12, 3})).arg("dims", shape{4, 1, 2}));
    struct {
        shape from;
        std::int64_t repeats;
        argument_value dim;
    } const interleaved[] = {
        {{4, 12}, 3, std::int64_t{1}}, {{2, 6, 4}, 4, std::int64_t{-2}}, {{4, 6}, 2, none}, {{12}, 2, std::int64_t{0}}, {{5, 3}, 6, none}};
    for (auto const& [from, repeats, dim] : interleaved)
        s.push_back(sample("aten::repeat_interleave.self_int").arg("self", eighths(from)).arg("repeats", repeats).arg("dim", dim));
    s.push_back(sample("aten::repeat_interleave.self_int")
                    .arg("self", eighths({2, 6, 4}))
                    .arg("repeats", 2)
                    .arg("dim", 1)
                    .arg("output_size", argument_value(std::int64_t{12})));
}

}  // namespace

void add_view_samples(sample_list& s) {
    add_reshapes(s);
    add_permutations(s);
    add_copies(s);
}

}  // namespace cantle::libtorch
