// SPDX-License-Identifier: BSL-1.0
#pragma once
// Matrix products: y[..., N] = x[..., K] w[N, K]^T whole over the unflattened dims (case E1), its two gradients, and the products of ATen.
// Every one is bilinear: a cut of a free dim passes, a cut of the contracted dim on both sides gives Partial(sum), and Partial(sum) on
// one side passes while the other is Replicate.
#include <cantle/rules/contraction.hpp>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

namespace cantle::rules {

namespace detail {
/// "abc..." for n dims in front of the last one.
inline std::string leading_letters(std::size_t n) {
    std::string s;
    for (std::size_t i = 0; i < n; ++i) s += static_cast<char>('a' + i);
    return s;
}
}  // namespace detail

/// aten::linear(input[..., K], weight[N, K], bias[N]?) -> [..., N]. A bias is added once: Partial where the product is (case E6).
inline void linear_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const rest = detail::leading_letters(q.operands[0].rank() - 1);
    add_contraction_rows(q, {{{0, rest + "z"}, {1, "yz"}}, rest + "y", q.operation->slot("bias"), 1, {}}, rows);
}

/// cantle::linear_grad_input(grad[..., N], weight[N, K]) -> [..., K].
inline void linear_grad_input_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const rest = detail::leading_letters(q.operands[0].rank() - 1);
    add_contraction_rows(q, {{{0, rest + "y"}, {1, "yz"}}, rest + "z", std::nullopt, 1, {}}, rows);
}

/// cantle::linear_grad_weight(grad[..., N], input[..., K]) -> [N, K].
inline void linear_grad_weight_rule(op_query const& q, std::int64_t, row_list& rows) {
    auto const rest = detail::leading_letters(q.operands[0].rank() - 1);
    add_contraction_rows(q, {{{0, rest + "y"}, {1, rest + "z"}}, "yz", std::nullopt, 1, rest}, rows);
}

/// aten::matmul: vectors have one letter, batch dims broadcast from the right.
inline void matmul_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::size_t const a = q.operands[0].rank(), b = q.operands[1].rank();
    auto const batch = detail::leading_letters(std::max<std::size_t>({a, b, 2}) - 2);
    auto const letters = [&batch](std::size_t rank, std::string const& last, std::string const& vector) {
        return rank == 1 ? vector : batch.substr(batch.size() - (rank - 2)) + last;
    };
    auto const out = batch + (a > 1 ? "y" : "") + (b > 1 ? "z" : "");
    add_contraction_rows(q, {{{0, letters(a, "yk", "k")}, {1, letters(b, "kz", "k")}}, out, std::nullopt, 1, {}}, rows);
}

/// aten::einsum with the letters of its equation. Where it has an ellipsis nothing is cut.
inline void einsum_rule(op_query const& q, std::int64_t, row_list& rows) {
    std::string equation;
    for (char x : q.operation->get<std::string>("equation", ""))
        if (x != ' ') equation += x;
    if (equation.find('.') != std::string::npos) return;
    auto const arrow = equation.find("->");
    auto const left = equation.substr(0, arrow);
    contraction c;
    std::string part;
    auto const* list = q.operation->find("tensors");
    auto const* slots = list ? std::get_if<operand_slots>(list) : nullptr;
    auto const close = [&] {
        if (slots && c.factors.size() < slots->indices.size())
            c.factors.push_back({static_cast<std::uint32_t>(slots->indices[c.factors.size()]), part});
        part.clear();
    };
    for (char x : left) x == ',' ? close() : static_cast<void>(part += x);
    close();
    if (arrow != std::string::npos)
        c.out = equation.substr(arrow + 2);
    else  // the letters that occur once, in alphabetical order
        for (char x : left)
            if (x != ',' && std::count(left.begin(), left.end(), x) == 1) c.out.insert(std::upper_bound(c.out.begin(), c.out.end(), x), x);
    for (std::size_t i = 0; i < c.factors.size(); ++i) {
        if (c.factors[i].letters.size() != q.operands[c.factors[i].operand].rank()) return;
        for (std::size_t k = 0; k < i; ++k)
            if (c.factors[k].operand == c.factors[i].operand) return;  // a tensor with itself is not linear in it
    }
    std::string diagonal;  // letters that stand twice in one factor cannot be cut anywhere
    for (auto const& f : c.factors)
        for (char x : f.letters)
            if (std::count(f.letters.begin(), f.letters.end(), x) > 1) diagonal += x;
    for (char x : diagonal) {
        for (auto& g : c.factors) std::replace(g.letters.begin(), g.letters.end(), x, '.');
        std::replace(c.out.begin(), c.out.end(), x, '.');
    }
    add_contraction_rows(q, c, rows);
}

inline void add_linear_rules(rule_registry& r) {
    r.add("aten::linear", linear_rule);
    r.add("cantle::linear_grad_input", linear_grad_input_rule);
    r.add("cantle::linear_grad_weight", linear_grad_weight_rule);
    r.add("aten::matmul", matmul_rule);
    r.add("aten::einsum", einsum_rule);
    r.add("aten::mm", product_rule({{"self", "mk"}, {"mat2", "kn"}}, "mn"));
    r.add("aten::bmm", product_rule({{"self", "bmk"}, {"mat2", "bkn"}}, "bmn"));
    r.add("aten::mv", product_rule({{"self", "mk"}, {"vec", "k"}}, "m"));
    r.add_all({"aten::outer", "aten::ger"}, product_rule({{"self", "m"}, {"vec2", "n"}}, "mn"));
    r.add("aten::addmm", product_rule({{"mat1", "mk"}, {"mat2", "kn"}}, "mn", "self"));
    r.add("aten::baddbmm", product_rule({{"batch1", "bmk"}, {"batch2", "bkn"}}, "bmn", "self"));
    r.add("aten::addbmm", product_rule({{"batch1", "bmk"}, {"batch2", "bkn"}}, "mn", "self"));
    r.add("aten::addmv", product_rule({{"mat", "mk"}, {"vec", "k"}}, "m", "self"));
    r.add("aten::addr", product_rule({{"vec1", "m"}, {"vec2", "n"}}, "mn", "self"));
}

}  // namespace cantle::rules
