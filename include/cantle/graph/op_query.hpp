// SPDX-License-Identifier: BSL-1.0
#pragma once
// An op with the tensors it sees: what rules and cost models are asked about. Metas are global, or local to some mesh axes, as the asker
// says.
#include <cantle/graph/op.hpp>
#include <cantle/graph/tensor_meta.hpp>

#include <span>

namespace cantle {

/// A view of one op and its tensors; valid while they live. Undefined outputs have defined == false.
struct op_query {
    op const* operation = nullptr;
    std::span<tensor_meta const> operands;  ///< one per operand slot
    std::span<tensor_meta const> outputs;   ///< one per output

    std::string const& name() const { return operation->name; }
};

}  // namespace cantle
