// SPDX-License-Identifier: BSL-1.0
#pragma once
// The rules that come with cantle, family by family. Coverage: the ops of LLaMA, GPT-2, BERT and an MLP, forward and backward.
#include <cantle/rules/activation.hpp>
#include <cantle/rules/arithmetic.hpp>
#include <cantle/rules/attention.hpp>
#include <cantle/rules/batch_norm.hpp>
#include <cantle/rules/cast.hpp>
#include <cantle/rules/comparison.hpp>
#include <cantle/rules/convolution.hpp>
#include <cantle/rules/embedding.hpp>
#include <cantle/rules/factory.hpp>
#include <cantle/rules/grouped_mm.hpp>
#include <cantle/rules/indexing.hpp>
#include <cantle/rules/joining.hpp>
#include <cantle/rules/linear.hpp>
#include <cantle/rules/loss.hpp>
#include <cantle/rules/norm.hpp>
#include <cantle/rules/normalisation.hpp>
#include <cantle/rules/optimizer.hpp>
#include <cantle/rules/padding.hpp>
#include <cantle/rules/pointwise.hpp>
#include <cantle/rules/pooling.hpp>
#include <cantle/rules/random.hpp>
#include <cantle/rules/reduction.hpp>
#include <cantle/rules/region.hpp>
#include <cantle/rules/resampling.hpp>
#include <cantle/rules/scatter.hpp>
#include <cantle/rules/slicing.hpp>
#include <cantle/rules/softmax.hpp>
#include <cantle/rules/sorting.hpp>
#include <cantle/rules/triangle.hpp>
#include <cantle/rules/view.hpp>

namespace cantle {

inline rule_registry standard_rules() {
    rule_registry r;
    rules::add_arithmetic_rules(r);
    rules::add_activation_rules(r);
    rules::add_comparison_rules(r);
    rules::add_cast_rules(r);
    rules::add_linear_rules(r);
    rules::add_grouped_mm_rules(r);
    rules::add_view_rules(r);
    rules::add_slicing_rules(r);
    rules::add_joining_rules(r);
    rules::add_padding_rules(r);
    rules::add_indexing_rules(r);
    rules::add_scatter_rules(r);
    rules::add_sorting_rules(r);
    rules::add_reduction_rules(r);
    rules::add_norm_rules(r);
    rules::add_softmax_rules(r);
    rules::add_attention_rules(r);
    rules::add_normalisation_rules(r);
    rules::add_batch_norm_rules(r);
    rules::add_convolution_rules(r);
    rules::add_pooling_rules(r);
    rules::add_resampling_rules(r);
    rules::add_embedding_rules(r);
    rules::add_loss_rules(r);
    rules::add_factory_rules(r);
    rules::add_triangle_rules(r);
    rules::add_random_rules(r);
    rules::add_optimizer_rules(r);
    rules::add_region_rules(r);
    return r;
}

}  // namespace cantle
