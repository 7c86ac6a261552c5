// SPDX-License-Identifier: BSL-1.0
// Padding of sequences and images, flips and rolls.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_padding_samples(sample_list& s) {
    struct { shape x, pad; } const pads[] = {{{4, 12}, {1, 2}},           {{4, 12}, {0, 0, 2, 0}}, {{2, 3, 12, 6}, {1, 1, 0, 0}}, {{12, 24}, {0, -1}},
                                             {{12, 4, 6}, {0, 0, 0, 3}}, {{12}, {0, 0}},          {{4, 12, 6}, {0, 1, 0, 0, 2, 1}}};
    for (auto const& [x, pad] : pads)
        for (double value : {0.0, 1.5, -2.0}) {
            s.push_back(sample("aten::constant_pad_nd").arg("self", eighths(x)).arg("pad", pad).arg("value", value));
            s.push_back(sample("aten::pad").arg("self", eighths(x)).arg("pad", pad).arg("mode", "constant").arg("value", value));
        }
    s.push_back(sample("aten::constant_pad_nd").arg("self", indices({4, 12}, 7)).arg("pad", shape{0, 1}).arg("value", 0));
    s.push_back(sample("aten::pad").arg("self", eighths({4, 12})).arg("pad", shape{0, 1}).arg("mode", "constant").arg("value", none));
    s.push_back(sample("aten::pad").arg("self", eighths({4, 12, 6})).arg("pad", shape{2, 1}).arg("mode", "reflect").arg("value", none));

    auto const copying = [&s](char const* name, shape const& x, shape const& padding) {
        s.push_back(sample(name).arg("self", eighths(x)).arg("padding", padding));
        auto grown = x;
        for (std::size_t i = 0; i < padding.size(); ++i) grown[x.size() - 1 - i / 2] += padding[i];
        s.push_back(sample(std::string(name) + "_backward").arg("grad_output", eighths(grown)).arg("self", eighths(x)).arg("padding", padding));
    };
    for (auto kind : {"aten::reflection_pad", "aten::replication_pad"}) {
        auto const one = std::string(kind) + "1d", two = std::string(kind) + "2d";
        for (shape const& padding : {shape{1, 2}, shape{0, 3}, shape{0, 0}}) {
            copying(one.c_str(), {4, 12, 6}, padding);
            copying(one.c_str(), {12, 24}, padding);
        }
        for (shape const& padding : {shape{1, 1, 1, 1}, shape{2, 0, 0, 0}, shape{0, 0, 1, 0}}) {
            copying(two.c_str(), {2, 12, 4, 6}, padding);
            copying(two.c_str(), {3, 4, 12}, padding);
        }
    }
    for (shape const& x : {shape{12}, shape{4, 12}, shape{2, 12, 6}, shape{1, 24, 3}}) {
        auto const rank = static_cast<std::int64_t>(x.size());
        for (shape const& dims : {shape{0}, shape{-1}, shape{}}) {
            s.push_back(sample("aten::flip").arg("self", eighths(x)).arg("dims", dims));
            s.push_back(sample("aten::roll").arg("self", eighths(x)).arg("shifts", shape{-1}).arg("dims", dims));
        }
        if (rank > 1) {
            s.push_back(sample("aten::flip").arg("self", eighths(x)).arg("dims", shape{0, rank - 1}));
            s.push_back(sample("aten::roll").arg("self", eighths(x)).arg("shifts", shape{5, 2}).arg("dims", shape{0, -1}));
        }
    }
}

}  // namespace cantle::libtorch
