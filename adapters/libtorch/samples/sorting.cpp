// SPDX-License-Identifier: BSL-1.0
// Sorting and counting: top experts of a token, tokens by expert, how many tokens an expert gets.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_sorting_samples(sample_list& s) {
    for (shape const& x : {shape{12, 8}, shape{24}, shape{4, 12, 6}, shape{2, 3, 12, 5}, shape{1, 24}})
        for (int dim : {-1, 0}) {
            auto const size = x[dim < 0 ? x.size() - 1 : 0];
            for (bool largest : {true, false})
                s.push_back(sample("aten::topk")
                                .arg("self", eighths(x))
                                .arg("k", argument_value((size + 1) / 2))
                                .arg("dim", dim)
                                .arg("largest", largest)
                                .arg("sorted", true));
            for (bool down : {false, true}) {
                for (auto name : {"aten::sort", "aten::argsort"})
                    s.push_back(sample(name).arg("self", eighths(x)).arg("dim", dim).arg("descending", down));
                for (auto name : {"aten::sort.stable", "aten::argsort.stable"})
                    s.push_back(sample(name).arg("self", coarse(x)).arg("stable", true).arg("dim", dim).arg("descending", down));
            }
        }
    // Where no dim is named it is the last one.
    s.push_back(sample("aten::sort").arg("self", eighths({12, 24})));
    s.push_back(sample("aten::topk").arg("self", eighths({12, 24})).arg("k", 2));

    for (shape const& x : {shape{24}, shape{12, 4}, shape{2, 3, 12}}) {
        s.push_back(sample("aten::histc").arg("self", coarse(x)).arg("bins", 4).arg("min", 0).arg("max", 2));
        s.push_back(sample("aten::histc").arg("self", eighths(x)).arg("bins", 6).arg("min", -1.0).arg("max", 3.0));
        s.push_back(sample("aten::histc").arg("self", eighths(x)).arg("bins", 5).arg("min", 0).arg("max", 0));
    }
    for (std::int64_t n : {24, 12}) {
        s.push_back(sample("aten::bincount").arg("self", indices({n}, 5)).arg("weights", none).arg("minlength", 0));
        s.push_back(sample("aten::bincount").arg("self", at::arange(n)).arg("weights", none).arg("minlength", 0));
        s.push_back(sample("aten::bincount").arg("self", indices({n}, 7)).arg("weights", eighths({n})).arg("minlength", 3));
    }
    auto const sorted = [](shape const& x) { return std::get<0>(at::sort(eighths(x))); };
    struct {
        shape sequence, values;
    } const searches[] = {{{12}, {24}}, {{24}, {4, 12}}, {{4, 12}, {4, 24}}, {{2, 12, 6}, {2, 12, 3}}, {{5}, {12}}};
    for (auto const& [sequence, values] : searches)
        for (bool right : {false, true}) {
            s.push_back(sample("aten::searchsorted.Tensor")
                            .arg("sorted_sequence", sorted(sequence))
                            .arg("self", eighths(values))
                            .arg("out_int32", false)
                            .arg("right", right));
            if (sequence.size() == 1) {
                s.push_back(sample("aten::searchsorted.Scalar")
                                .arg("sorted_sequence", sorted(sequence))
                                .arg("self", 0.5)
                                .arg("out_int32", false)
                                .arg("right", right));
                s.push_back(sample("aten::bucketize.Tensor")
                                .arg("self", eighths(values))
                                .arg("boundaries", sorted(sequence))
                                .arg("out_int32", false)
                                .arg("right", right));
            }
        }
    auto const shuffled = eighths({4, 12});
    s.push_back(sample("aten::searchsorted.Tensor")
                    .arg("sorted_sequence", shuffled)
                    .arg("self", eighths({4, 6}))
                    .arg("out_int32", true)
                    .arg("right", false)
                    .arg("side", none)
                    .arg("sorter", at::argsort(shuffled)));
    for (shape const& x : {shape{24}, shape{4, 12}, shape{2, 3, 12}})
        for (int classes : {8, 12, -1}) s.push_back(sample("aten::one_hot").arg("self", indices(x, 8)).arg("num_classes", classes));
}

}  // namespace cantle::libtorch
