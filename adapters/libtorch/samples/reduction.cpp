// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_reduction_samples(sample_list& s) {
    std::pair<shape, shape> const cases[] = {{{12, 24}, {1}}, {{4, 12, 6}, {0, 1}}, {{2, 12, 4}, {-1}}, {{12}, {0}}, {{}, {}}};
    for (auto const& [x, dims] : cases)
        for (bool keep : {false, true}) {
            s.push_back(sample("aten::sum.dim_IntList").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep).arg("dtype", none));
            s.push_back(sample("aten::mean.dim").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep).arg("dtype", none));
            s.push_back(sample("aten::amax").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep));
            s.push_back(sample("aten::amin").arg("self", eighths(x)).arg("dim", dims).arg("keepdim", keep));
        }
    for (shape const& x : {shape{12, 24}, shape{2, 12, 4}}) {
        s.push_back(sample("aten::sum").arg("self", eighths(x)).arg("dtype", none));
        s.push_back(sample("aten::sum").arg("self", flags(x)).arg("dtype", none));
        s.push_back(sample("aten::mean").arg("self", eighths(x)).arg("dtype", none));
        for (int d : {0, 1, -1}) {
            s.push_back(sample("aten::_softmax").arg("self", eighths(x)).arg("dim", d).arg("half_to_float", false));
            s.push_back(sample("aten::_log_softmax").arg("self", eighths(x)).arg("dim", d).arg("half_to_float", false));
            s.push_back(sample("aten::_safe_softmax").arg("self", eighths(x)).arg("dim", d).arg("dtype", none));
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
    // fp32 and bf16 sums: with and without a cast inside
    s.push_back(sample("aten::sum.dim_IntList")
                    .arg("self", eighths({12, 4}, false, at::kBFloat16))
                    .arg("dim", shape{0})
                    .arg("keepdim", false)
                    .arg("dtype", dtype::float32));
}

}  // namespace cantle::libtorch
