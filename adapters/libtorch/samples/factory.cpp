// SPDX-License-Identifier: BSL-1.0
// Ops that make tensors, random ones, and matrices known by their diagonal.
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {
namespace {
sample with_options(sample made, argument_value type = dtype::float64) {
    made.arg("dtype", std::move(type)).arg("layout", none).arg("device", symbol{"device", "device"}).arg("pin_memory", none);
    return made;
}
std::vector<shape> const shapes{{12, 4}, {24}, {}, {5, 3}, {1, 2, 6}};
}  // namespace

void add_factory_samples(sample_list& s) {
    auto const push = [&s](sample made) { s.push_back(with_options(std::move(made))); };
    for (auto const& x : shapes) {
        for (double c : {0.375, 0.0}) {
            push(sample("aten::full").arg("size", x).arg("fill_value", c));
            push(sample("aten::new_full").arg("self", eighths({4})).arg("size", x).arg("fill_value", c));
            push(sample("aten::full_like").arg("self", eighths(x)).arg("fill_value", c));
            s.push_back(sample("aten::fill.Scalar").arg("self", eighths(x)).arg("value", c));
            s.push_back(sample("aten::fill.Tensor").arg("self", eighths(x)).arg("value", eighths({})));
        }
        push(sample("aten::zeros").arg("size", x));
        push(sample("aten::ones").arg("size", x));
        push(sample("aten::new_zeros").arg("self", eighths({4, 6})).arg("size", x));
        push(sample("aten::new_ones").arg("self", eighths({4, 6})).arg("size", x));
        for (auto name : {"aten::zeros_like", "aten::ones_like"}) push(sample(name).arg("self", eighths(x)));
        s.push_back(with_options(sample("aten::ones_like").arg("self", flags(x)), dtype::boolean));
        s.push_back(sample("aten::zero").arg("self", eighths(x)));
        push(sample("aten::scalar_tensor").arg("s", x.empty() ? 3 : static_cast<int>(x[0])));
        // memory as it is
        s.push_back(with_options(sample("aten::empty.memory_format").arg("size", x)).no_values());
        s.push_back(with_options(sample("aten::new_empty").arg("self", eighths({4})).arg("size", x)).no_values());
        s.push_back(with_options(sample("aten::empty_strided").arg("size", x).arg("stride", contiguous_strides(x))).no_values());
        auto const dense = contiguous_strides(x);
        s.push_back(
            with_options(sample("aten::new_empty_strided").arg("self", eighths({4})).arg("size", x).arg("stride", dense)).no_values());
        shape order(x.size());
        std::iota(order.begin(), order.end(), 0);
        s.push_back(with_options(sample("aten::empty_permuted").arg("size", x).arg("physical_layout", order)).no_values());
        s.push_back(with_options(sample("aten::empty_like").arg("self", eighths(x))).no_values());
    }
    for (std::int64_t n : {12, 24, 7, 1, 0}) {
        for (argument_value type : {argument_value{dtype::float64}, argument_value{}}) {
            s.push_back(with_options(sample("aten::arange").arg("end", n), type));
            s.push_back(with_options(sample("aten::arange.start").arg("start", 3).arg("end", 3 + n), type));
            s.push_back(with_options(sample("aten::arange.start_step").arg("start", 3).arg("end", 3 + 2 * n).arg("step", 2), type));
            s.push_back(with_options(sample("aten::arange.start_step").arg("start", 3).arg("end", 3 - 2 * n).arg("step", -2), type));
        }
        push(sample("aten::arange").arg("end", static_cast<double>(n) + 0.75));
        push(sample("aten::arange.start_step").arg("start", 0.25).arg("end", 0.25 + 0.5 * static_cast<double>(n)).arg("step", 0.5));
        push(sample("aten::linspace").arg("start", -1).arg("end", 2.5).arg("steps", n));
        push(sample("aten::eye").arg("n", n));
        push(sample("aten::eye.m").arg("n", n).arg("m", 8));
    }
    std::pair<shape, int> const triangles[] = {{{12, 12}, 0}, {{4, 12, 8}, 1}, {{8, 12}, -2}, {{2, 3, 4, 4}, 0}, {{5, 3}, 1}};
    for (auto const& [x, diagonal] : triangles)
        for (auto name : {"aten::tril", "aten::triu"}) s.push_back(sample(name).arg("self", eighths(x)).arg("diagonal", diagonal));
    s.push_back(sample("aten::tril").arg("self", flags({12, 12})).arg("diagonal", 0));
    s.push_back(sample("aten::triu").arg("self", indices({12, 12}, 7)).arg("diagonal", 1));
}

void add_random_samples(sample_list& s) {
    for (auto const& x : shapes) {
        auto const drawn = [&s](sample made, argument_value type = dtype::float64) {
            s.push_back(with_options(std::move(made), std::move(type)));
        };
        auto const from = [&s](sample made) { s.push_back(made.arg("generator", none)); };
        for (auto name : {"aten::rand", "aten::randn"}) drawn(sample(name).arg("size", x));
        drawn(sample("aten::randint").arg("high", 9).arg("size", x), dtype::int64);
        drawn(sample("aten::randint.low").arg("low", 3).arg("high", 9).arg("size", x), dtype::int64);
        drawn(sample("aten::normal.float_float").arg("mean", 0.0).arg("std", 1.0).arg("size", x).arg("generator", none));
        for (auto name : {"aten::rand_like", "aten::randn_like"}) drawn(sample(name).arg("self", eighths(x)));
        drawn(sample("aten::randint_like").arg("self", eighths(x)).arg("high", 9));
        drawn(sample("aten::randint_like.low_dtype").arg("self", eighths(x)).arg("low", 3).arg("high", 9));
        from(sample("aten::bernoulli").arg("self", eighths(x, true) / 64));
        from(sample("aten::bernoulli.p").arg("self", eighths(x)).arg("p", 0.5));
        from(sample("aten::bernoulli.Tensor").arg("self", eighths(x)).arg("p", eighths(x, true) / 64));
        from(sample("aten::normal_functional").arg("self", eighths(x)).arg("mean", 0.0).arg("std", 1.0));
        from(sample("aten::uniform").arg("self", eighths(x)).arg("from", 0.0).arg("to", 1.0));
        from(sample("aten::exponential").arg("self", eighths(x)).arg("lambd", 1.0));
        from(sample("aten::normal.Tensor_float").arg("mean", eighths(x)).arg("std", 1.0));
        from(sample("aten::normal.float_Tensor").arg("mean", 0.0).arg("std", eighths(x, true)));
        from(sample("aten::normal.Tensor_Tensor").arg("mean", eighths(x)).arg("std", eighths(x, true)));
        drawn(sample("aten::randperm").arg("n", x.empty() ? 6 : static_cast<int>(x[0])), dtype::int64);
        {
            own_streams const own(2);
            s.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.5).arg("train", none));
        }
        s.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.0).arg("train", true));
        s.push_back(sample("aten::native_dropout").arg("input", eighths(x)).arg("p", 0.5).arg("train", false));
        for (double scale : {2.0, -1.0})
            s.push_back(sample("aten::native_dropout_backward").arg("grad_output", eighths(x)).arg("mask", flags(x)).arg("scale", scale));
    }
}

}  // namespace cantle::libtorch
