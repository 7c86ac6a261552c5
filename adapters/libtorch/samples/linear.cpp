// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

namespace {
void add_whole_linears(sample_list& s) {
    for (shape const& rows : {shape{12}, shape{2, 12}, shape{}, shape{3, 4, 2}, shape{5}}) {
        auto const with = [&](std::int64_t last) {
            auto x = rows;
            x.push_back(last);
            return x;
        };
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", none));
        s.push_back(sample("aten::linear").arg("input", eighths(with(24))).arg("weight", eighths({12, 24})).arg("bias", eighths({12})));
        s.push_back(sample("cantle::linear_grad_input").arg("grad", eighths(with(12))).arg("weight", eighths({12, 24})));
        if (!rows.empty()) s.push_back(sample("cantle::linear_grad_weight").arg("grad", eighths(with(12))).arg("input", eighths(with(24))));
    }
}

/// self may broadcast, and beta and alpha have any sign; a beta of 0 leaves self unread.
void add_products_with_addend(sample_list& s) {
    auto const scaled = [&s](sample made, argument_value beta, argument_value alpha) {
        s.push_back(made.arg("beta", std::move(beta)).arg("alpha", std::move(alpha)));
    };
    std::pair<argument_value, argument_value> const scales[] = {{std::int64_t{1}, std::int64_t{1}}, {0.5, -2.0}, {-1.5, 0.25}};
    for (auto const& [beta, alpha] : scales) {
        for (shape const& self : {shape{12, 6}, shape{6}, shape{12, 1}, shape{1, 6}, shape{}})
            scaled(sample("aten::addmm").arg("self", eighths(self)).arg("mat1", eighths({12, 24})).arg("mat2", eighths({24, 6})), beta,
                   alpha);
        for (shape const& self : {shape{12, 4, 6}, shape{12, 1, 6}, shape{4, 6}, shape{6}, shape{1, 4, 1}})
            scaled(sample("aten::baddbmm").arg("self", eighths(self)).arg("batch1", eighths({12, 4, 3})).arg("batch2", eighths({12, 3, 6})),
                   beta, alpha);
        for (shape const& self : {shape{4, 6}, shape{6}})
            scaled(sample("aten::addbmm").arg("self", eighths(self)).arg("batch1", eighths({12, 4, 3})).arg("batch2", eighths({12, 3, 6})),
                   beta, alpha);
        for (shape const& self : {shape{12}, shape{1}})
            scaled(sample("aten::addmv").arg("self", eighths(self)).arg("mat", eighths({12, 24})).arg("vec", eighths({24})), beta, alpha);
        for (shape const& self : {shape{12, 6}, shape{6}})
            scaled(sample("aten::addr").arg("self", eighths(self)).arg("vec1", eighths({12})).arg("vec2", eighths({6})), beta, alpha);
    }
    scaled(sample("aten::addmm").arg("self", eighths({12, 6})).arg("mat1", eighths({12, 4})).arg("mat2", eighths({4, 6})), std::int64_t{0},
           std::int64_t{1});
    scaled(sample("aten::baddbmm").arg("self", eighths({2, 4, 6})).arg("batch1", eighths({2, 4, 12})).arg("batch2", eighths({2, 12, 6})),
           0.0, 0.125);
}
}  // namespace

void add_linear_samples(sample_list& s) {
    add_whole_linears(s);
    add_products_with_addend(s);
    std::pair<shape, shape> const matrices[] = {
        {{12, 24}, {24, 12}}, {{4, 12}, {12, 3}}, {{1, 12}, {12, 5}}, {{6, 1}, {1, 4}}, {{5, 7}, {7, 12}}};
    for (auto const& [a, b] : matrices) s.push_back(sample("aten::mm").arg("self", eighths(a)).arg("mat2", eighths(b)));
    std::pair<shape, shape> const batches[] = {
        {{12, 4, 12}, {12, 12, 6}}, {{2, 12, 3}, {2, 3, 12}}, {{1, 4, 6}, {1, 6, 4}}, {{6, 1, 12}, {6, 12, 1}}, {{3, 5, 7}, {3, 7, 2}}};
    for (auto const& [a, b] : batches) s.push_back(sample("aten::bmm").arg("self", eighths(a)).arg("mat2", eighths(b)));
    std::pair<shape, shape> const broadcasts[] = {{{12}, {12}},
                                                  {{12, 4}, {4}},
                                                  {{6}, {6, 12}},
                                                  {{2, 12, 4}, {4, 6}},
                                                  {{2, 12, 4}, {2, 4, 6}},
                                                  {{12, 1, 4, 6}, {3, 6, 2}},
                                                  {{1, 4, 6}, {12, 6, 3}},
                                                  {{4}, {12, 4, 6}},
                                                  {{12, 3, 4}, {4}}};
    for (auto const& [a, b] : broadcasts) s.push_back(sample("aten::matmul").arg("self", eighths(a)).arg("other", eighths(b)));
    for (std::int64_t k : {12, 24, 5}) {
        s.push_back(sample("aten::mv").arg("self", eighths({12, k})).arg("vec", eighths({k})));
        s.push_back(sample("aten::dot").arg("self", eighths({k})).arg("tensor", eighths({k})));
        s.push_back(sample("aten::vdot").arg("self", eighths({k})).arg("other", eighths({k})));
        s.push_back(sample("aten::outer").arg("self", eighths({12})).arg("vec2", eighths({k})));
        s.push_back(sample("aten::ger").arg("self", eighths({k})).arg("vec2", eighths({12})));
    }
    auto const einsum = [&s](char const* equation, std::vector<shape> const& operands) {
        std::vector<at::Tensor> list;
        for (auto const& x : operands) list.push_back(eighths(x));
        s.push_back(sample("aten::einsum").arg("equation", equation).arg("tensors", list).arg("path", none));
    };
    einsum("bij,bjk->bik", {{2, 12, 4}, {2, 4, 6}});
    einsum("bshd,bthd->bhst", {{2, 3, 12, 4}, {2, 6, 12, 4}});
    einsum("i,j->ij", {{12}, {4}});
    einsum("ij,kj", {{12, 4}, {6, 4}});
    einsum("ii->i", {{12, 12}});
    einsum("ab,bc,cd->ad", {{4, 6}, {6, 12}, {12, 2}});
    einsum("...i,i->...", {{4, 12}, {12}});
    einsum("ij,jk->ik", {{12, 1}, {4, 6}});
}

void add_grouped_mm_samples(sample_list& s) {
    // Groups: empty ones, one that spans several ranks' parts, odd sizes. Ends count along the dim that holds the runs.
    auto const ends = [](std::vector<std::int64_t> list) { return at::tensor(list, at::kLong).to(at::kInt); };
    // The kernels take no float64: small whole numbers, so that float32 holds even products of large parts that cancel.
    auto const floats = [](shape const& x) { return (indices(x, 5) - 1).to(at::kFloat); };
    auto const push = [&s](at::Tensor a, at::Tensor b, at::Tensor offs) {
        auto made = sample("aten::_grouped_mm").arg("self", std::move(a)).arg("mat2", std::move(b));
        offs.defined() ? made.arg("offs", offs) : made.arg("offs", none);
        s.push_back(made.arg("bias", none).arg("out_dtype", none));
    };
    for (auto const& offs : {ends({5, 5, 17, 48}), ends({12, 24, 36, 48}), ends({0, 0, 48, 48})}) {
        push(floats({48, 24}), floats({4, 24, 48}), offs);  // tokens by expert
        push(floats({12, 48}), floats({48, 24}), offs);     // weight gradient of experts
        push(floats({4, 12, 24}), floats({24, 48}), offs);
    }
    push(floats({12, 8}), floats({2, 8, 16}), ends({7, 12}));
    push(floats({12, 8, 24}), floats({12, 24, 16}), {});
    push(floats({3, 12, 16}), floats({3, 16, 48}), {});
}

}  // namespace cantle::libtorch
