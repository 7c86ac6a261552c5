// SPDX-License-Identifier: BSL-1.0
#pragma once
// The rules that come with cantle, family by family. Coverage: the ops of LLaMA, GPT-2, BERT and an MLP, forward and backward.
#include <cantle/rules/attention.hpp>
#include <cantle/rules/embedding.hpp>
#include <cantle/rules/factory.hpp>
#include <cantle/rules/linear.hpp>
#include <cantle/rules/loss.hpp>
#include <cantle/rules/normalisation.hpp>
#include <cantle/rules/pointwise.hpp>
#include <cantle/rules/reduction.hpp>
#include <cantle/rules/region.hpp>
#include <cantle/rules/view.hpp>

namespace cantle {

inline rule_registry standard_rules() {
    rule_registry r;
    rules::add_pointwise_rules(r);
    rules::add_linear_rules(r);
    rules::add_view_rules(r);
    rules::add_reduction_rules(r);
    rules::add_attention_rules(r);
    rules::add_normalisation_rules(r);
    rules::add_embedding_rules(r);
    rules::add_loss_rules(r);
    rules::add_factory_rules(r);
    rules::add_region_rules(r);
    return r;
}

}  // namespace cantle
