// SPDX-License-Identifier: BSL-1.0
// Reductions, norms, scans, softmax.
#include <adapters/libtorch/samples/samples.hpp>

#include <limits>

namespace cantle::libtorch {
namespace {

/// Mostly true, or mostly false, so that "all" and "any" over a dim have both answers.
at::Tensor mostly(bool value, shape const& x) {
    auto const rare = indices(x, 7) == 0;
    return x.empty() ? at::full({}, value, at::kBool) : value ? rare.logical_not() : rare;
}
/// Numbers of both signs, mostly not zero or mostly zero.
at::Tensor mostly_numbers(bool value, shape const& x) { return mostly(value, x).to(at::kDouble) * eighths(x); }

void add_over_dims(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 8}, {1}}, {{4, 12, 6}, {0, 1}}, {{2, 12, 4}, {-1}}, {{12}, {0}},
                                             {{}, {}},       {{5, 3}, {0}},        {{4, 6}, {}}};
    for (auto const& [x, dims] : cases)
        for (bool keep : {false, true}) {
            auto const of = [&x = x, &dims = dims](char const* name) { return sample(name).arg("self", eighths(x)).arg("dim", dims); };
            s.push_back(of("aten::sum.dim_IntList").arg("keepdim", keep).arg("dtype", none));
            s.push_back(of("aten::mean.dim").arg("keepdim", keep).arg("dtype", none));
            for (auto name : {"aten::amax", "aten::amin"}) s.push_back(of(name).arg("keepdim", keep));
            if (!dims.empty()) s.push_back(of("aten::logsumexp").arg("keepdim", keep));
            if (!x.empty())
                for (auto name : {"aten::var.correction", "aten::std.correction", "aten::var_mean.correction", "aten::std_mean.correction"})
                    s.push_back(of(name).arg("correction", 1).arg("keepdim", keep));
            for (double order : {2.0, 1.0, 0.0, 3.0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
                s.push_back(sample("aten::linalg_vector_norm")
                                .arg("self", eighths(x))
                                .arg("ord", order)
                                .arg("dim", dims.empty() ? argument_value{} : argument_value{dims})
                                .arg("keepdim", keep)
                                .arg("dtype", none));
                s.push_back(of("aten::norm.ScalarOpt_dim").arg("keepdim", keep).arg("p", order));
            }
            if (!dims.empty()) {
                for (bool all : {false, true}) {
                    auto const name = all ? "aten::all.dims" : "aten::any.dims";
                    s.push_back(sample(name).arg("self", mostly(all, x)).arg("dim", dims).arg("keepdim", keep));
                    s.push_back(sample(name).arg("self", mostly_numbers(all, x)).arg("dim", dims).arg("keepdim", keep));
                }
            }
        }
    for (auto const& [x, dims] : cases)
        if (!dims.empty()) s.push_back(sample("aten::count_nonzero.dim_IntList").arg("self", coarse(x)).arg("dim", dims));
}

void add_over_one_dim(sample_list& s) {
    std::pair<shape, int> const cases[] = {{{12, 8}, 1}, {{2, 12, 4}, 0}, {{4, 6, 2}, -2}, {{12}, 0}, {{5, 3}, -1}};
    for (auto const& [x, d] : cases) {
        auto const of = [&x = x, d = d](char const* name) { return sample(name).arg("self", eighths(x)).arg("dim", d); };
        for (bool keep : {false, true}) {
            for (auto name : {"aten::max.dim", "aten::min.dim", "aten::argmax", "aten::argmin", "aten::aminmax"})
                s.push_back(of(name).arg("keepdim", keep));
            s.push_back(sample("aten::prod.dim_int").arg("self", eighths(x) * 2).arg("dim", d).arg("keepdim", keep).arg("dtype", none));
            for (bool all : {false, true}) {
                auto const name = all ? "aten::all.dim" : "aten::any.dim";
                s.push_back(sample(name).arg("self", mostly(all, x)).arg("dim", d).arg("keepdim", keep));
                s.push_back(sample(name).arg("self", mostly_numbers(all, x)).arg("dim", d).arg("keepdim", keep));
            }
            for (auto name : {"aten::var.dim", "aten::std.dim", "aten::var_mean.dim", "aten::std_mean.dim"})
                s.push_back(sample(name).arg("self", eighths(x)).arg("dim", shape{d}).arg("unbiased", true).arg("keepdim", keep));
        }
        s.push_back(of("aten::cumsum").arg("dtype", none));
        s.push_back(sample("aten::cumprod").arg("self", eighths(x) / 2).arg("dim", d).arg("dtype", none));
        for (auto name : {"aten::logcumsumexp", "aten::cummax", "aten::cummin"}) s.push_back(of(name));
        s.push_back(sample("aten::count_nonzero").arg("self", coarse(x)).arg("dim", d));
        for (auto name : {"aten::_softmax", "aten::_log_softmax"}) s.push_back(of(name).arg("half_to_float", false));
        s.push_back(of("aten::_safe_softmax").arg("dtype", none));
        s.push_back(sample("aten::_softmax_backward_data")
                        .arg("grad_output", eighths(x))
                        .arg("output", at::softmax(eighths(x), d))
                        .arg("dim", d)
                        .arg("input_dtype", dtype::float64));
        s.push_back(sample("aten::_log_softmax_backward_data")
                        .arg("grad_output", eighths(x))
                        .arg("output", at::log_softmax(eighths(x), d))
                        .arg("dim", d)
                        .arg("input_dtype", dtype::float64));
    }
}

void add_over_all(sample_list& s) {
    for (shape const& x : {shape{12, 8}, shape{2, 12, 4}, shape{}, shape{1, 5}}) {
        for (auto name : {"aten::sum", "aten::mean"}) s.push_back(sample(name).arg("self", eighths(x)).arg("dtype", none));
        s.push_back(sample("aten::prod").arg("self", eighths(x) / 2).arg("dtype", none));
        s.push_back(sample("aten::sum").arg("self", flags(x)).arg("dtype", none));
        s.push_back(sample("aten::sum").arg("self", indices(x, 9)).arg("dtype", none));
        for (auto name : {"aten::max", "aten::min"}) s.push_back(sample(name).arg("self", eighths(x)));
        for (auto name : {"aten::any", "aten::all"})
            for (bool all : {false, true}) {
                s.push_back(sample(name).arg("self", mostly(all, x)));
                s.push_back(sample(name).arg("self", mostly_numbers(all, x)));
                s.push_back(sample(name).arg("self", at::full(x, all, at::kBool)));
                auto one = at::full(x, !all, at::kBool);  // a single one is unlike the rest: a piece does not tell
                one.view(-1)[one.numel() / 2].fill_(all);
                s.push_back(sample(name).arg("self", one));
            }
        for (auto name : {"aten::argmax", "aten::argmin"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("dim", none).arg("keepdim", false));
        s.push_back(sample("aten::count_nonzero").arg("self", coarse(x)).arg("dim", none));
        if (x.empty()) continue;
        for (auto name : {"aten::var", "aten::std", "aten::var_mean", "aten::std_mean"})
            s.push_back(sample(name).arg("self", eighths(x)).arg("unbiased", false));
        s.push_back(sample("aten::norm.Scalar").arg("self", eighths(x)).arg("p", 2));
        s.push_back(sample("aten::norm.ScalarOpt_dtype").arg("self", eighths(x)).arg("p", none).arg("dtype", dtype::float64));
        s.push_back(sample("aten::norm.ScalarOpt_dim_dtype")
                        .arg("self", eighths(x))
                        .arg("p", 2)
                        .arg("dim", shape{0})
                        .arg("keepdim", true)
                        .arg("dtype", dtype::float64));
    }
    for (shape const& x : {shape{12}, shape{24}})
        for (auto name : {"aten::dot", "aten::vdot"})
            s.push_back(sample(name).arg("self", eighths(x)).arg(name[6] == 'd' ? "tensor" : "other", eighths(x)));
    // fp32 and bf16 sums: with and without a cast inside
    s.push_back(sample("aten::sum.dim_IntList")
                    .arg("self", eighths({12, 4}, false, at::kBFloat16))
                    .arg("dim", shape{0})
                    .arg("keepdim", false)
                    .arg("dtype", dtype::float32));
}

}  // namespace

void add_reduction_samples(sample_list& s) {
    add_over_dims(s);
    add_over_one_dim(s);
    add_over_all(s);
}

}  // namespace cantle::libtorch
