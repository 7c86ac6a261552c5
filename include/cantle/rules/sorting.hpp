// SPDX-License-Identifier: BSL-1.0
#pragma once
// Ops that compare elements of a dim with each other, and counts. Sorting passes cuts of all other dims and no Partial; counts of the parts
// of a tensor add up.
#include <cantle/rules/moving.hpp>

#include <string>

namespace cantle::rules {

/// topk, sort, argsort: dim is the last one where nothing is said.
inline void sort_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const rank = q.operands[0].rank();
    auto const dim = detail::absolute_dim(q.operation->get<std::int64_t>("dim", -1), rank);
    for (std::size_t d = 0; d < rank; ++d)
        if (d != dim) rows.add({placement::shard(d)}, std::vector<placement>(q.outputs.size(), placement::shard(d)));
}

/// histc(self, bins, min, max): with min == max the range is that of the values, which a rank does not know.
inline void histogram_rule(op_query const& q, std::int64_t, row_list& rows) {
    if (q.operation->get<double>("min", 0.0) == q.operation->get<double>("max", 0.0)) return;
    for (std::size_t d = 0; d < q.operands[0].rank(); ++d) rows.add({placement::shard(d)}, {placement::partial()});
}

/// bincount(self, weights, minlength): as long as the largest value, so no rank can do its part alone. Linear in the weights.
inline void bincount_rule(op_query const& q, std::int64_t, row_list& rows) {
    if (auto const w = q.operation->slot("weights")) detail::add_linear_rows(rows, {*w});
}

/// searchsorted(sorted_sequence, self) and bucketize(self, boundaries): how many elements of the sequence lie below each value. So counts
/// of parts of the sequence add up, and a larger value never has a smaller count. A sorter names places of the whole sequence.
inline void search_rule(op_query const& q, std::int64_t, row_list& rows) {
    bool const buckets = q.operation->find("boundaries") != nullptr;
    auto const sequence = *q.operation->slot(buckets ? "boundaries" : "sorted_sequence");
    auto const values = q.operation->slot("self"), sorter = q.operation->slot("sorter");
    auto const& sorted = q.operands[sequence];
    std::size_t const last = sorted.rank() - 1;
    std::vector<placement> const whole(q.operands.size());
    auto in = whole;
    for (std::size_t d = 0; values && d < q.operands[*values].rank(); ++d) {
        in = whole;
        in[*values] = placement::shard(d);
        if (d < last) {  // one sequence per row
            in[sequence] = placement::shard(d);
            if (sorter) in[*sorter] = placement::shard(d);
        }
        rows.add(in, {placement::shard(d)});
    }
    in = whole;
    in[sequence] = placement::shard(last);
    if (!sorter) rows.add(in, {placement::partial()});
    if (values) detail::add_kind_rows(rows, {reduction::max, reduction::min}, {*values});
}

/// one_hot(self, num_classes) -> [..., classes]. Without a number of classes it is the largest value that counts.
inline void one_hot_rule(op_query const& q, std::int64_t, row_list& rows) {
    if (q.operation->get<std::int64_t>("num_classes", -1) < 0) return;
    for (std::size_t d = 0; d < q.operands[0].rank(); ++d) rows.add({placement::shard(d)}, {placement::shard(d)});
}

inline void add_sorting_rules(rule_registry& r) {
    r.add_all({"aten::topk", "aten::sort", "aten::sort.stable", "aten::argsort", "aten::argsort.stable"}, sort_rule);
    r.add("aten::histc", histogram_rule);
    r.add("aten::bincount", bincount_rule);
    r.add_all({"aten::searchsorted.Tensor", "aten::searchsorted.Scalar", "aten::bucketize.Tensor"}, search_rule);
    r.add("aten::one_hot", one_hot_rule);
}

}  // namespace cantle::rules
