// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_linear_samples(sample_list& s) {
    for (shape const& rows : {shape{12}, shape{2, 12}, shape{}}) {
        auto const with = [&](std::int64_t last) {
            auto x = rows;
            x.push_back(last);
            return x;
        };
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", none));
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", eighths({12})));
        s.push_back(sample("cantle::linear_grad_input").arg("grad", eighths(with(12))).arg("weight", eighths({12, 24})));
        if (!rows.empty()) s.push_back(sample("cantle::linear_grad_weight").arg("grad", eighths(with(12))).arg("input", eighths(with(24))));
    }
    s.push_back(sample("aten::mm").arg("self", eighths({12, 24})).arg("mat2", eighths({24, 12})));
    s.push_back(sample("aten::mm").arg("self", eighths({4, 12})).arg("mat2", eighths({12, 3})));
    s.push_back(sample("aten::bmm").arg("self", eighths({12, 4, 12})).arg("mat2", eighths({12, 12, 6})));
    s.push_back(sample("aten::bmm").arg("self", eighths({2, 12, 3})).arg("mat2", eighths({2, 3, 12})));
}

}  // namespace cantle::libtorch
