// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

namespace {
struct window_of {
    shape x, kernel, stride, padding;
    bool ceil;
};

void add_max_pools(sample_list& s) {
    for (auto const& c :
         {window_of{{2, 12, 8, 8}, {3, 3}, {2, 2}, {1, 1}, false}, window_of{{12, 4, 6, 6}, {2, 2}, {}, {0, 0}, false},
          window_of{{12, 6, 7}, {3, 2}, {2, 2}, {0, 0}, true}, window_of{{1, 3, 12, 12}, {2, 2}, {2, 2}, {0, 0}, false},
          window_of{{3, 4, 5, 5}, {1, 1}, {1, 1}, {0, 0}, false}, window_of{{2, 12, 4, 4, 6}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, false},
          window_of{{4, 3, 5, 4, 4}, {3, 2, 2}, {1, 2, 2}, {1, 0, 0}, false}}) {
        std::string const name = c.kernel.size() == 2 ? "aten::max_pool2d_with_indices" : "aten::max_pool3d_with_indices";
        shape const dilation(c.kernel.size(), 1);
        auto const x = eighths(c.x);
        auto const literals = [&](sample& made) -> sample& {
            return made.arg("kernel_size", c.kernel)
                .arg("stride", c.stride)
                .arg("padding", c.padding)
                .arg("dilation", dilation)
                .arg("ceil_mode", c.ceil);
        };
        auto forward = sample(name).arg("self", x);
        s.push_back(literals(forward));
        auto const out = call_op(forward.made.operation, forward.made.operands);
        auto backward = sample(name + "_backward").arg("grad_output", eighths(out[0].sizes().vec())).arg("self", x);
        s.push_back(literals(backward).arg("indices", out[1]));
    }
    for (auto const& [x, size] : {std::pair{shape{2, 12, 8, 6}, shape{4, 3}}, std::pair{shape{12, 6, 6}, shape{1, 1}}}) {
        auto const forward = sample("aten::adaptive_max_pool2d").arg("self", eighths(x)).arg("output_size", size);
        s.push_back(forward);
        auto const out = call_op(forward.made.operation, forward.made.operands);
        s.push_back(sample("aten::adaptive_max_pool2d_backward")
                        .arg("grad_output", eighths(out[0].sizes().vec()))
                        .arg("self", forward.made.operands[0])
                        .arg("indices", out[1]));
    }
}

void add_average_pools(sample_list& s) {
    for (auto const& c : {window_of{{2, 12, 8, 8}, {3, 3}, {2, 2}, {1, 1}, false}, window_of{{3, 4, 24, 12}, {2, 2}, {}, {0, 0}, false},
                          window_of{{12, 6, 7}, {3, 2}, {2, 2}, {0, 0}, true}, window_of{{1, 3, 12, 24}, {1, 2}, {3, 2}, {0, 0}, false},
                          window_of{{2, 2, 12, 12}, {3, 3}, {2, 2}, {0, 0}, false}, window_of{{2, 4, 12, 12}, {2, 2}, {2, 2}, {0, 0}, true},
                          window_of{{2, 12, 4, 4, 24}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, false},
                          window_of{{4, 3, 5, 4, 4}, {3, 2, 2}, {1, 2, 2}, {1, 0, 0}, false}, window_of{{2, 12, 24}, {2}, {2}, {0}, false},
                          window_of{{4, 3, 12}, {3}, {1}, {1}, false}}) {
        auto const image = c.kernel.size();
        std::string const name = "aten::avg_pool" + std::to_string(image) + "d";
        auto const literals = [&](sample& made, argument_value divisor) -> sample& {
            made.arg("kernel_size", c.kernel)
                .arg("stride", c.stride)
                .arg("padding", c.padding)
                .arg("ceil_mode", c.ceil)
                .arg("count_include_pad", image == 2);
            return image == 1 ? made : made.arg("divisor_override", std::move(divisor));
        };
        for (argument_value const& divisor : {argument_value{none}, argument_value{std::int64_t{3}}}) {
            auto forward = sample(name).arg("self", eighths(c.x));
            s.push_back(literals(forward, divisor));
            if (image == 1) break;
            auto const out = call_op(forward.made.operation, forward.made.operands);
            auto backward = sample(name + "_backward").arg("grad_output", eighths(out[0].sizes().vec())).arg("self", eighths(c.x));
            s.push_back(literals(backward, divisor));
        }
    }
    for (auto const& [x, size] :
         {std::pair{shape{2, 12, 8, 6}, shape{1, 1}}, std::pair{shape{12, 24, 12}, shape{12, 4}}, std::pair{shape{4, 3, 7, 5}, shape{3, 2}},
          std::pair{shape{2, 3, 12, 12}, shape{1, 12}}, std::pair{shape{1, 4, 3, 3}, shape{6, 12}},
          std::pair{shape{2, 12, 4, 4, 6}, shape{1, 1, 1}}, std::pair{shape{3, 4, 12, 6, 4}, shape{12, 3, 4}}}) {
        std::string const name = "aten::_adaptive_avg_pool" + std::to_string(size.size()) + "d";
        auto const forward = sample(name).arg("self", eighths(x)).arg("output_size", size);
        s.push_back(forward);
        auto const out = call_op(forward.made.operation, forward.made.operands);
        s.push_back(sample(name + "_backward").arg("grad_output", eighths(out[0].sizes().vec())).arg("self", eighths(x)));
    }
}
}  // namespace

void add_pooling_samples(sample_list& s) {
    add_max_pools(s);
    add_average_pools(s);
}

}  // namespace cantle::libtorch
