// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

sample_list rule_samples() {
    sample_list s;
    add_pointwise_samples(s);
    add_comparison_samples(s);
    add_cast_samples(s);
    add_linear_samples(s);
    add_grouped_mm_samples(s);
    add_view_samples(s);
    add_slicing_samples(s);
    add_padding_samples(s);
    add_indexing_samples(s);
    add_scatter_samples(s);
    add_sorting_samples(s);
    add_reduction_samples(s);
    add_attention_samples(s);
    add_layer_norm_samples(s);
    add_group_norm_samples(s);
    add_batch_norm_samples(s);
    add_convolution_samples(s);
    add_pooling_samples(s);
    add_resampling_samples(s);
    add_embedding_samples(s);
    add_loss_samples(s);
    add_nll_loss_samples(s);
    add_elementwise_loss_samples(s);
    add_factory_samples(s);
    add_random_samples(s);
    add_optimizer_samples(s);
    return s;
}

}  // namespace cantle::libtorch
