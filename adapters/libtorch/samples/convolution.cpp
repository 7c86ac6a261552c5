// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_convolution_samples(sample_list& s) {
    struct shape_of {
        shape input, weight;  // weight: [out, in/groups, kernel...], transposed [in, out/groups, kernel...]
        shape stride, padding, dilation;
        bool transposed;
        shape output_padding;
        std::int64_t groups;
    };
    for (auto const& c :
         {shape_of{{2, 12, 6, 5}, {24, 12, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1},  // ResNet
          shape_of{{4, 12, 5, 5}, {6, 12, 3, 3}, {2, 2}, {1, 1}, {1, 1}, false, {0, 0}, 1},   // strided
          shape_of{{3, 4, 12, 6}, {12, 4, 1, 1}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1},   // 1x1: the image may be cut
          shape_of{{2, 3, 24, 24}, {12, 3, 2, 2}, {2, 2}, {0, 0}, {1, 1}, false, {0, 0}, 1},  // patches
          shape_of{{2, 4, 12, 12}, {4, 4, 1, 1}, {2, 3}, {0, 0}, {1, 1}, false, {0, 0}, 1},   // every other pixel
          shape_of{{2, 12, 7, 7}, {12, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 12},  // depthwise
          shape_of{{2, 24, 5, 4}, {24, 6, 3, 3}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 4},   // grouped
          shape_of{{2, 12, 5, 4}, {36, 4, 2, 2}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 3},
          shape_of{{2, 4, 9, 9}, {6, 4, 3, 3}, {1, 1}, {2, 2}, {2, 2}, false, {0, 0}, 1},  // dilated
          shape_of{{12, 8, 10}, {12, 8, 3}, {1}, {1}, {1}, false, {0}, 1},                 // Whisper
          shape_of{{2, 4, 24}, {4, 4, 4}, {4}, {0}, {1}, false, {0}, 1},
          shape_of{{1, 4, 4, 4, 6}, {12, 4, 2, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false, {0, 0, 0}, 1},
          shape_of{{2, 3, 4, 4, 12}, {4, 3, 2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}, false, {0, 0, 0}, 1},  // patches of video
          shape_of{{2, 12, 4, 4}, {12, 6, 3, 3}, {2, 2}, {1, 1}, {1, 1}, true, {1, 1}, 1},
          shape_of{{2, 4, 12, 6}, {4, 12, 2, 2}, {2, 2}, {0, 0}, {1, 1}, true, {0, 0}, 1},  // U-Net's way up
          shape_of{{2, 4, 12, 6}, {4, 3, 2, 2}, {3, 3}, {0, 0}, {1, 1}, true, {1, 1}, 1},
          shape_of{{2, 12, 4, 3}, {12, 6, 2, 2}, {1, 1}, {0, 0}, {1, 1}, true, {0, 0}, 4}}) {
        auto const input = eighths(c.input) / 4, weight = eighths(c.weight) / 4;
        auto const outputs = c.transposed ? c.weight[1] * c.groups : c.weight[0];
        auto const literals = [&c](sample& made) -> sample& {
            return made.arg("stride", c.stride)
                .arg("padding", c.padding)
                .arg("dilation", c.dilation)
                .arg("transposed", c.transposed)
                .arg("output_padding", c.output_padding)
                .arg("groups", c.groups);
        };
        at::Tensor out;
        for (bool bias : {true, false}) {
            auto forward = sample("aten::convolution").arg("input", input).arg("weight", weight);
            bias ? forward.arg("bias", eighths({outputs})) : forward.arg("bias", none);
            s.push_back(literals(forward));
            out = call_op(forward.made.operation, forward.made.operands)[0];
        }
        auto const grad = eighths(out.sizes().vec());
        for (auto const& mask : {std::vector<bool>{true, true, true}, std::vector<bool>{true, true, false},
                                 std::vector<bool>{false, true, true}, std::vector<bool>{true, false, false}}) {
            auto backward = sample("aten::convolution_backward").arg("grad_output", grad).arg("input", input).arg("weight", weight);
            mask[2] ? backward.arg("bias_sizes", shape{outputs}) : backward.arg("bias_sizes", none);
            s.push_back(literals(backward).arg("output_mask", mask));
        }
    }
}

}  // namespace cantle::libtorch
