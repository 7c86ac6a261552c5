// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

namespace {
/// `align`: the op has the literal align_corners. Scales by name of the dim, given or None.
void add_upsamples(sample_list& s, std::string const& name, std::size_t image, bool align) {
    std::vector<std::pair<shape, shape>> sizes;  // low, high
    if (image == 1) sizes = {{{2, 12, 12}, {24}}, {{12, 4, 5}, {7}}, {{3, 4, 12}, {48}}, {{1, 2, 12}, {36}}, {{2, 3, 12}, {12}}};
    if (image == 2)
        sizes = {{{2, 12, 4, 6}, {8, 12}},
                 {{12, 4, 5, 3}, {7, 4}},
                 {{3, 2, 12, 4}, {48, 4}},
                 {{2, 3, 12, 12}, {36, 24}},
                 {{1, 4, 4, 4}, {2, 2}}};
    if (image == 3) sizes = {{{2, 12, 2, 4, 6}, {4, 8, 12}}, {{4, 3, 12, 2, 3}, {24, 4, 5}}};
    std::vector<char const*> scales{"scales"};
    if (image == 2) scales = {"scales_h", "scales_w"};
    if (image == 3) scales = {"scales_d", "scales_h", "scales_w"};
    for (auto const& [low, high] : sizes)
        for (bool given : {false, true})
            for (bool corners : {false, true}) {
                if (corners && (!align || given)) continue;
                auto const literals = [&, low = low, high = high](sample& made) -> sample& {
                    if (align) made.arg("align_corners", corners);
                    for (std::size_t i = 0; i < image; ++i) {
                        double const ratio = static_cast<double>(high[i]) / static_cast<double>(low[i + 2]);
                        given ? made.arg(scales[i], ratio) : made.arg(scales[i], none);
                    }
                    return made;
                };
                auto forward = sample("aten::" + name).arg("self", eighths(low)).arg("output_size", high);
                s.push_back(literals(forward));
                auto big = shape{low[0], low[1]};
                big.insert(big.end(), high.begin(), high.end());
                auto backward = sample("aten::" + name + "_backward").arg("grad_output", eighths(big)).arg("output_size", high);
                s.push_back(literals(backward.arg("input_size", low)));
            }
}
}  // namespace

void add_resampling_samples(sample_list& s) {
    for (std::size_t image = 1; image <= 3; ++image) {
        add_upsamples(s, "upsample_nearest" + std::to_string(image) + "d", image, false);
        add_upsamples(s, "_upsample_nearest_exact" + std::to_string(image) + "d", image, false);
    }
    add_upsamples(s, "upsample_linear1d", 1, true);
    add_upsamples(s, "upsample_bilinear2d", 2, true);
    add_upsamples(s, "upsample_bicubic2d", 2, true);
    add_upsamples(s, "upsample_trilinear3d", 3, true);
    for (auto const& [x, factor] : {std::pair{shape{2, 12, 4, 6}, 2}, std::pair{shape{12, 36, 2, 3}, 3}, std::pair{shape{48, 3, 4}, 2},
                                    std::pair{shape{3, 4, 12, 2}, 1}, std::pair{shape{2, 3, 16, 12, 5}, 4}})
        s.push_back(sample("aten::pixel_shuffle").arg("self", eighths(x)).arg("upscale_factor", factor));
    for (auto const& [x, factor] : {std::pair{shape{2, 12, 4, 6}, 2}, std::pair{shape{12, 4, 36, 3}, 3}, std::pair{shape{12, 24, 4}, 2},
                                    std::pair{shape{3, 4, 12, 2}, 1}, std::pair{shape{2, 3, 2, 48, 4}, 4}})
        s.push_back(sample("aten::pixel_unshuffle").arg("self", eighths(x)).arg("downscale_factor", factor));
}

}  // namespace cantle::libtorch
