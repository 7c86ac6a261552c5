// SPDX-License-Identifier: BSL-1.0
#pragma once
// What a rank runs in place of an op under one strategy: mostly the op itself with sizes made local; for rows that need the rank's offset
// or collectives inside, a few ops more. All ranks run the same steps; only literals differ (SPMD). A rule says what is true, its local
// program how it comes true: the oracle plays it, lowering copies it (DECISIONS 4, 6).
#include <cantle/graph/op_query.hpp>
#include <cantle/mesh/local_piece.hpp>
#include <cantle/mesh/placement.hpp>

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

/// One operand or output as a rank sees it.
struct port_view {
    tensor_meta global;
    local_piece piece;             ///< sizes and offset of what this rank holds
    layout const* lies = nullptr;  ///< its layout on the mesh

    shape const& sizes() const { return piece.sizes; }
    /// Mesh axes that cut dim d, as a bit mask.
    std::uint32_t cut_axes(std::size_t d) const { return axes_cutting(*lies, d); }
    bool is_cut(std::size_t d) const { return cut_axes(d) != 0; }
    /// First global index of dim d that this rank holds.
    std::int64_t offset(std::size_t d) const { return piece.offset[d]; }
};

/// An op on one rank: what a local rule is asked about.
struct local_view {
    op const* operation = nullptr;
    std::vector<port_view> operands, outputs;
    std::size_t mesh_dims = 0;
    std::uint64_t draw = 0;  ///< of a random op: its number in the graph (program/draw_numbers.hpp)

    port_view const* operand(std::string_view argument) const {
        auto const s = operation->slot(argument);
        return s ? &operands[*s] : nullptr;
    }
};

/// A value of a local program: the op's local operands come first, then the results of the steps.
using local_value = std::uint32_t;

/// Call an op (its tensor slots index `inputs`), or reduce one value over the ranks of one axis.
struct local_step {
    op call;                          ///< name empty: an all_reduce
    std::vector<local_value> inputs;
    std::uint32_t outputs = 1;        ///< number of values it makes
    std::uint32_t axis = 0;           ///< of an all_reduce
    reduction reduce = reduction::sum;
    bool is_all_reduce() const { return call.name.empty(); }
};

/// Steps in order, and which values are the op's outputs.
class local_program {
public:
    explicit local_program(std::size_t operands) : next_(static_cast<local_value>(operands)) {}

    /// Run `call` on `inputs`; gives its first result, the others follow it.
    local_value call(op call, std::vector<local_value> inputs, std::uint32_t outputs = 1) {
        steps_.push_back({std::move(call), std::move(inputs), outputs, 0, reduction::sum});
        return std::exchange(next_, next_ + outputs);
    }
    /// All-reduce over each axis of the mask, outermost first; the value itself where the mask is empty.
    local_value all_reduce(local_value value, std::uint32_t axes, reduction kind) {
        for (std::uint32_t a = 0; axes >> a; ++a)
            if (axes >> a & 1u) {
                steps_.push_back({{}, {value}, 1, a, kind});
                value = next_++;
            }
        return value;
    }
    void returns(std::vector<local_value> values) { results_ = std::move(values); }

    std::vector<local_step> const& steps() const { return steps_; }
    std::vector<local_value> const& results() const { return results_; }

private:
    std::vector<local_step> steps_;
    std::vector<local_value> results_;
    local_value next_;
};

/// Writes the local program of an op; pieces of all ports are given. Throws cantle::error where the layouts are none that its rule yields.
using local_rule = std::function<void(local_view const&, local_program&)>;

/// The op with its argument of that name replaced (nothing happens where it has none).
inline void set_argument(op& o, std::string_view name, argument_value value) {
    for (auto& a : o.arguments)
        if (a.name == name) a.value = std::move(value);
}

/// One call of `o` on all operands with all outputs: how most local rules end.
inline void run_whole(op o, local_view const& v, local_program& p) {
    std::vector<local_value> in(v.operands.size()), out;
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<local_value>(i);
    auto const first = p.call(std::move(o), std::move(in), static_cast<std::uint32_t>(v.outputs.size()));
    for (std::size_t i = 0; i < v.outputs.size(); ++i) out.push_back(first + static_cast<local_value>(i));
    p.returns(std::move(out));
}

/// The rule of all ops without one of their own: the op itself, "size" (views, expand, factories) being the local one of output 0.
inline void run_as_is(local_view const& v, local_program& p) {
    op o = *v.operation;
    if (!v.outputs.empty()) set_argument(o, "size", v.outputs[0].sizes());
    run_whole(std::move(o), v, p);
}

}  // namespace cantle
