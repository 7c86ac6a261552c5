// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/rank_play.hpp>

#include <adapters/libtorch/call_op.hpp>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cantle::libtorch {
namespace {

using tensors = std::vector<at::Tensor>;
using ranks = std::vector<tensors>;

void set(op& o, std::string_view name, argument_value value) {
    for (auto& a : o.arguments)
        if (a.name == name) a.value = std::move(value);
}
at::Tensor const& argument(op const& o, tensors const& operands, std::string_view name) { return operands.at(o.slot(name).value()); }

/// Number of inner reductions of that kind on that output.
std::size_t reductions_on(axis_row const& row, std::uint32_t output, reduction kind) {
    return static_cast<std::size_t>(
        std::count(row.inner.begin(), row.inner.end(), inner_collective{collective_kind::all_reduce, kind, true, output}));
}
/// All ranks get the reduction of all, if `happens`.
void all_reduce(tensors& by_rank, reduction kind, bool happens) {
    if (!happens) return;
    auto const all = at::stack(by_rank);
    auto const result = kind == reduction::max ? all.amax(0) : all.sum(0);
    for (auto& t : by_rank) t = result;
}

/// A rank's rows of a table that is cut along its rows: indices local to the rank, and which of them are its own.
struct own_rows {
    at::Tensor indices, mine;
};
own_rows rows_of(at::Tensor const& indices, std::int64_t rank, std::int64_t rows) {
    auto const local = indices - rank * rows;
    auto const mine = at::logical_and(local >= 0, local < rows);
    return {at::where(mine, local, at::zeros_like(local)), mine};
}

/// weight[V/n, D] S(0): foreign rows give zero.
ranks masked_embedding(op const& o, ranks const& in) {
    ranks out;
    for (std::size_t r = 0; r < in.size(); ++r) {
        auto const& weight = argument(o, in[r], "weight");
        auto const own = rows_of(argument(o, in[r], "indices"), static_cast<std::int64_t>(r), weight.size(0));
        auto local = in[r];
        local[o.slot("indices").value()] = own.indices;
        auto call = o;
        set(call, "padding_idx", std::int64_t{-1});  // has no part in forward
        out.push_back({call_op(call, local)[0] * own.mine.unsqueeze(-1).to(weight.scalar_type())});
    }
    return out;
}

/// The gradient of a table cut along its rows: a rank keeps the tokens that are its own.
ranks masked_embedding_backward(op const& o, ranks const& in) {
    ranks out;
    auto const rows = o.get<std::int64_t>("num_weights", 0) / static_cast<std::int64_t>(in.size());
    auto const padding = o.get<std::int64_t>("padding_idx", -1);
    for (std::size_t r = 0; r < in.size(); ++r) {
        auto const rank = static_cast<std::int64_t>(r);
        auto const& grad = argument(o, in[r], "grad_output");
        auto const own = rows_of(argument(o, in[r], "indices"), rank, rows);
        auto const mine = own.mine.reshape({-1});
        auto local = in[r];
        local[o.slot("grad_output").value()] = grad.reshape({-1, grad.size(-1)}).index({mine});
        local[o.slot("indices").value()] = own.indices.reshape({-1}).index({mine});
        auto call = o;
        set(call, "num_weights", rows);
        set(call, "padding_idx", padding >= rank * rows && padding < (rank + 1) * rows ? padding - rank * rows : std::int64_t{-1});
        out.push_back(call_op(call, local));
    }
    return out;
}

/// Tokens cut: the mean divides by the count of all ranks, whether or not a rank has any target that counts.
ranks cross_entropy_over_tokens(op const& o, axis_row const& row, ranks const& in) {
    auto const how = o.get<std::string>("reduction", "mean");
    auto call = o;
    if (how == "mean") set(call, "reduction", std::string("sum"));
    ranks out;
    tensors counts;
    for (auto const& operands : in) {
        out.push_back(call_op(call, operands));
        counts.push_back(out.back()[2]);
    }
    all_reduce(counts, reduction::sum, reductions_on(row, 2, reduction::sum) == 1);
    for (std::size_t r = 0; r < out.size(); ++r) {
        out[r][2] = counts[r];
        if (how == "mean") out[r][0] = out[r][0] / counts[r];
    }
    return out;
}

/// Vocabulary cut: three reductions over [...]. A row that does not declare one does not get it.
ranks cross_entropy_over_vocabulary(op const& o, axis_row const& row, ranks const& in) {
    auto const ignore = o.get<std::int64_t>("ignore_index", -100);
    auto const how = o.get<std::string>("reduction", "mean");
    auto const type = argument(o, in[0], "logits").scalar_type();
    tensors maximum, sum, picked;
    for (auto const& operands : in) maximum.push_back(argument(o, operands, "logits").amax({-1}));
    all_reduce(maximum, reduction::max, reductions_on(row, 1, reduction::max) >= 1);
    for (std::size_t r = 0; r < in.size(); ++r) {
        auto const& logits = argument(o, in[r], "logits");
        auto const own = rows_of(argument(o, in[r], "target"), static_cast<std::int64_t>(r), logits.size(-1));
        sum.push_back((logits - maximum[r].unsqueeze(-1)).exp().sum({-1}));
        picked.push_back(logits.gather(-1, own.indices.unsqueeze(-1)).squeeze(-1) * own.mine.to(type));
    }
    all_reduce(sum, reduction::sum, reductions_on(row, 1, reduction::sum) >= 1);
    all_reduce(picked, reduction::sum, reductions_on(row, 1, reduction::sum) >= 2);
    ranks out;
    for (std::size_t r = 0; r < in.size(); ++r) {
        auto const counts = (argument(o, in[r], "target") != ignore).to(type);
        auto const logsumexp = maximum[r] + sum[r].log();
        auto const loss = (logsumexp - picked[r]) * counts;
        auto const total = how == "none" ? at::zeros({}, type) : counts.sum();
        out.push_back({how == "none" ? loss : how == "sum" ? loss.sum() : loss.sum() / total, logsumexp, total});
    }
    return out;
}

/// The gradient of a rank's share of the vocabulary: softmax from the global logsumexp, less 1 at the target if it is the rank's own.
ranks masked_cross_entropy_backward(op const& o, ranks const& in) {
    ranks out;
    for (std::size_t r = 0; r < in.size(); ++r) {
        auto const& logits = argument(o, in[r], "logits");
        auto const& target = argument(o, in[r], "target");
        auto const own = rows_of(target, static_cast<std::int64_t>(r), logits.size(-1));
        auto const softmax = (logits - argument(o, in[r], "logsumexp").unsqueeze(-1)).exp();
        auto const hit = at::zeros_like(logits).scatter(-1, own.indices.unsqueeze(-1), own.mine.unsqueeze(-1).to(logits.scalar_type()));
        auto scale = argument(o, in[r], "grad");
        if (o.get<std::string>("reduction", "mean") == "mean") scale = scale / argument(o, in[r], "total_weight");
        auto const counts = (target != o.get<std::int64_t>("ignore_index", -100)).to(logits.scalar_type());
        out.push_back({(softmax - hit) * (scale * counts).unsqueeze(-1)});
    }
    return out;
}

}  // namespace

op localised(op const& operation, op_query const& global, std::vector<shape> const& local) {
    op o = operation;
    auto const is = [&o](std::string_view prefix) { return o.name.rfind(prefix, 0) == 0; };
    if (is("aten::squeeze")) return {"aten::reshape", {{"self", operand_slot{0}}, {"shape", local[0]}}};
    if (is("aten::slice.Tensor") && global.operands[0].sizes == global.outputs[0].sizes) {
        set(o, "start", std::monostate{});
        set(o, "end", std::monostate{});
    }
    if (o.name == "aten::slice_backward" || o.name == "aten::select_backward") set(o, "input_sizes", local[0]);
    if (o.name == "aten::_reshape_alias") set(o, "stride", contiguous_strides(local[0]));
    if (o.name == "aten::reshape") set(o, "shape", local[0]);
    set(o, "size", local[0]);  // views, expand, factories; no other op names an argument so
    return o;
}

ranks play_ranks(op const& o, op_query const& global, axis_row const& row, ranks const& in, std::vector<shape> const& local) {
    if (row.masked && o.name == "aten::embedding") return masked_embedding(o, in);
    if (row.masked && o.name == "aten::embedding_dense_backward") return masked_embedding_backward(o, in);
    if (row.masked && o.name == "cantle::cross_entropy") return cross_entropy_over_vocabulary(o, row, in);
    if (row.masked && o.name == "cantle::cross_entropy_backward") return masked_cross_entropy_backward(o, in);
    if (!row.inner.empty() && o.name == "cantle::cross_entropy") return cross_entropy_over_tokens(o, row, in);
    auto const call = localised(o, global, local);
    ranks out;
    for (auto const& operands : in) out.push_back(call_op(call, operands));
    return out;
}

}  // namespace cantle::libtorch
