// SPDX-License-Identifier: BSL-1.0
// The families of ops that random training graphs are drawn from: what occurs in models.
#include <adapters/libtorch/property/drawing.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace cantle::libtorch {
namespace {

using value = std::size_t;
using values = tensor_list;

bool is_double(at::Tensor const& t) { return t.scalar_type() == at::kDouble; }

/// One result of one value.
template <class F>
bool unary(drawing& d, std::optional<value> x, F f) {
    if (!x) return false;
    return d.apply([x = *x, f](values const& v) { return tensor_list{f(v[x])}; });
}
template <class F>
bool binary(drawing& d, value x, value y, F f) {
    return d.apply([x, y, f](values const& v) { return tensor_list{f(v[x], v[y])}; });
}

bool draw_linear(drawing& d) {
    auto const x = d.pick_float(2, 4);
    if (!x) return false;
    static std::vector<std::int64_t> const sizes{2, 4, 6, 8, 12, 5, 3};
    auto const out = d.random.one_of(sizes);
    auto const w = d.parameter({out, d.at(*x).size(-1)});
    if (d.random.chance(60)) return binary(d, *x, w, [](auto const& a, auto const& b) { return at::linear(a, b); });
    auto const bias = d.parameter({out});
    return d.apply([=](values const& v) { return tensor_list{at::linear(v[*x], v[w], v[bias])}; });
}
bool draw_product(drawing& d) {
    auto const x = d.pick_float(2, 4);
    if (!x) return false;
    auto const& a = d.at(*x);
    auto const y = d.pick([&](at::Tensor const& t) {
        return is_double(t) && t.dim() == a.dim() && t.size(-1) == a.size(-1) &&
               (a.dim() == 2 || t.sizes().slice(0, static_cast<std::size_t>(a.dim() - 2)) ==
                                    a.sizes().slice(0, static_cast<std::size_t>(a.dim() - 2)));
    });
    if (d.random.chance(30)) {
        auto const w = d.parameter({a.size(-1), d.random.one_of(std::vector<std::int64_t>{2, 4, 6, 12})});
        return binary(d, *x, w, [](auto const& p, auto const& q) { return at::matmul(p, q); });
    }
    return binary(d, *x, *y, [](auto const& p, auto const& q) { return at::matmul(p, q.transpose(-1, -2)); });
}
bool draw_arithmetic(drawing& d) {
    auto const x = d.pick_float();
    if (!x) return false;
    auto const& a = d.at(*x);
    auto y = d.pick([&](at::Tensor const& t) {
        if (!is_double(t) || t.dim() > a.dim()) return false;
        for (std::int64_t i = 1; i <= t.dim(); ++i)
            if (t.size(-i) != a.size(-i) && t.size(-i) != 1) return false;
        return true;
    });
    if (!y || d.random.chance(25)) {  // a parameter that broadcasts
        shape s = a.sizes().vec();
        for (auto& n : s)
            if (d.random.chance(50)) n = 1;
        if (d.random.chance(50))
            while (!s.empty() && s.front() == 1) s.erase(s.begin());
        y = d.parameter(s);
    }
    switch (d.random.below(6)) {
        case 0: return binary(d, *x, *y, [](auto const& p, auto const& q) { return p - q; });
        case 1: return binary(d, *x, *y, [](auto const& p, auto const& q) { return p * q; });
        case 2: return binary(d, *x, *y, [](auto const& p, auto const& q) { return at::maximum(p, q); });
        case 3: return binary(d, *y, *x, [](auto const& p, auto const& q) { return p / (q.abs() + 1.0); });
        default: return binary(d, *x, *y, [](auto const& p, auto const& q) { return p + q; });
    }
}
bool draw_literal(drawing& d) {
    auto const x = d.pick_float();
    switch (d.random.below(6)) {
        case 0: return unary(d, x, [](auto const& t) { return t * 0.5; });
        case 1: return unary(d, x, [](auto const& t) { return t + 1.0; });
        case 2: return unary(d, x, [](auto const& t) { return 2.0 - t; });
        case 3: return unary(d, x, [](auto const& t) { return at::pow(t, 2); });
        case 4: return unary(d, x, [](auto const& t) { return t / 3.0; });
        default: return unary(d, x, [](auto const& t) { return -t; });
    }
}
bool draw_activation(drawing& d) {
    auto const x = d.pick_float();
    switch (d.random.below(11)) {
        case 0: return unary(d, x, [](auto const& t) { return at::tanh(t); });
        case 1: return unary(d, x, [](auto const& t) { return at::gelu(t); });
        case 2: return unary(d, x, [](auto const& t) { return at::silu(t); });
        case 3: return unary(d, x, [](auto const& t) { return at::sigmoid(t); });
        case 4: return unary(d, x, [](auto const& t) { return at::exp(at::tanh(t)); });
        case 5: return unary(d, x, [](auto const& t) { return at::rsqrt(t * t + 1.0); });
        case 6: return unary(d, x, [](auto const& t) { return at::clamp(t, -1.0, 1.5); });
        case 7: return unary(d, x, [](auto const& t) { return at::abs(t); });
        default: return unary(d, x, [](auto const& t) { return at::relu(t); });
    }
}
bool draw_reduction(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    shape dims{d.some_dim(*x)};
    if (d.random.chance(25)) {
        auto const other = d.some_dim(*x);
        if (other != dims[0]) dims.push_back(other);
    }
    bool const keep = d.random.chance(50);
    auto const dim = dims[0];
    switch (d.random.below(7)) {
        case 0: return unary(d, x, [=](auto const& t) { return at::mean(t, dims, keep); });
        case 1: return unary(d, x, [=](auto const& t) { return at::amax(t, dims, keep); });
        case 2: return unary(d, x, [=](auto const& t) { return std::get<0>(at::max(t, dim, keep)); });
        case 3: return unary(d, x, [=](auto const& t) { return at::cumsum(t, dim); });
        case 4: return unary(d, x, [](auto const& t) { return t.sum(); });
        default: return unary(d, x, [=](auto const& t) { return at::sum(t, dims, keep); });
    }
}
bool draw_normalisation(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const dim = d.some_dim(*x);
    switch (d.random.below(4)) {
        case 0: return unary(d, x, [=](auto const& t) { return at::softmax(t, dim); });
        case 1: return unary(d, x, [=](auto const& t) { return at::log_softmax(t, dim); });
        case 2: return unary(d, x, [](auto const& t) { return t * at::rsqrt((t * t).mean(-1, true) + 1e-5); });
        default: break;
    }
    std::int64_t const n = d.at(*x).size(-1);
    if (d.random.chance(30)) return unary(d, x, [=](auto const& t) { return at::layer_norm(t, {n}); });
    auto const w = d.parameter({n}), b = d.parameter({n});
    return d.apply([=](values const& v) { return tensor_list{at::layer_norm(v[*x], {n}, v[w], v[b])}; });
}
bool draw_view(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const& t = d.at(*x);
    shape s = t.sizes().vec();
    auto const i = static_cast<std::size_t>(d.some_dim(*x));
    if (d.random.chance(50) && i + 1 < s.size()) {  // [.. a b ..] -> [.. ab ..]
        s[i] *= s[i + 1];
        s.erase(s.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {                                        // [.. ab ..] -> [.. a b ..]
        std::vector<std::int64_t> divisors;
        for (std::int64_t n = 2; n < s[i]; ++n)
            if (s[i] % n == 0) divisors.push_back(n);
        if (divisors.empty()) return false;
        auto const a = d.random.one_of(divisors);
        s[i] /= a;
        s.insert(s.begin() + static_cast<std::ptrdiff_t>(i), a);
    }
    return unary(d, x, [s](auto const& v) { return v.reshape(s); });
}
bool draw_dims(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const rank = d.at(*x).dim();
    auto const i = d.some_dim(*x), j = d.some_dim(*x);
    switch (d.random.below(6)) {
        case 0: return unary(d, x, [=](auto const& t) { return t.unsqueeze(i); });
        case 1: return unary(d, x, [](auto const& t) { return t.squeeze(); });
        case 2: return rank == 2 && unary(d, x, [](auto const& t) { return t.t(); });
        case 3: {
            shape s = d.at(*x).sizes().vec();
            s.insert(s.begin(), d.random.range(2, 4));
            return unary(d, x, [=](auto const& t) { return t.unsqueeze(0).expand(s); });
        }
        case 4: {
            shape order;
            for (std::int64_t k = 0; k < rank; ++k) order.push_back((k + i) % rank);
            return unary(d, x, [=](auto const& t) { return t.permute(order); });
        }
        default: return i != j && unary(d, x, [=](auto const& t) { return t.transpose(i, j); });
    }
}
bool draw_slicing(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const i = d.some_dim(*x);
    auto const n = d.at(*x).size(i);
    switch (d.random.below(7)) {
        case 0: {
            auto const first = d.random.range(0, n - 1), last = d.random.range(first + 1, n);
            return unary(d, x, [=](auto const& t) { return at::slice(t, i, first, last, 1); });
        }
        case 1: return n > 2 && unary(d, x, [=](auto const& t) { return at::slice(t, i, 0, n, 2); });
        case 2: return d.at(*x).dim() > 1 && unary(d, x, [=, k = d.random.range(0, n - 1)](auto const& t) { return t.select(i, k); });
        case 3: return n > 1 && d.apply([=, x = *x](values const& v) { return at::split(v[x], (n + 1) / 2, i); });
        case 4: return unary(d, x, [=](auto const& t) { return at::flip(t, {i}); });
        case 5: return unary(d, x, [=](auto const& t) { return at::constant_pad_nd(t, {1, 2}, 0); });
        default: return n % 3 == 0 && d.apply([=, x = *x](values const& v) { return at::chunk(v[x], 3, i); });
    }
}
bool draw_joining(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const i = d.some_dim(*x);
    auto const y = d.pick([&](at::Tensor const& t) {
        if (!is_double(t) || t.dim() != d.at(*x).dim()) return false;
        for (std::int64_t k = 0; k < t.dim(); ++k)
            if (k != i && t.size(k) != d.at(*x).size(k)) return false;
        return true;
    });
    if (d.random.chance(25) && d.at(*y).sizes() == d.at(*x).sizes())
        return binary(d, *x, *y, [=](auto const& a, auto const& b) { return at::stack({a, b}, i); });
    return binary(d, *x, *y, [=](auto const& a, auto const& b) { return at::cat({a, b}, i); });
}
bool draw_indexing(drawing& d) {
    if (d.random.chance(30)) {
        auto const bound = d.random.one_of(std::vector<std::int64_t>{6, 12, 8, 10});
        auto const table = d.parameter({bound, d.random.one_of(std::vector<std::int64_t>{4, 6, 8})});
        auto const i = d.indices({d.random.range(2, 4), d.random.one_of(std::vector<std::int64_t>{4, 6})}, bound);
        return binary(d, table, i, [](auto const& t, auto const& k) { return at::embedding(t, k); });
    }
    auto const x = d.pick_float(1);
    if (!x) return false;
    auto const i = d.some_dim(*x);
    auto const n = d.at(*x).size(i);
    if (d.random.chance(50)) {
        auto const k = d.indices({d.random.one_of(std::vector<std::int64_t>{2, 4, 6})}, n);
        return binary(d, *x, k, [=](auto const& t, auto const& at) { return at::index_select(t, i, at); });
    }
    shape s = d.at(*x).sizes().vec();
    s[static_cast<std::size_t>(i)] = d.random.one_of(std::vector<std::int64_t>{1, 2, 4});
    auto const k = d.indices(s, n);
    return binary(d, *x, k, [=](auto const& t, auto const& at) { return at::gather(t, i, at); });
}
bool draw_choice(drawing& d) {
    auto const x = d.pick_float();
    if (!x) return false;
    auto const& t = d.at(*x);
    auto const y = d.pick([&](at::Tensor const& u) { return is_double(u) && u.sizes() == t.sizes(); });
    switch (d.random.below(4)) {
        case 0: {
            auto const m = d.mask(t.sizes().vec());
            return d.apply([=](values const& v) { return tensor_list{at::where(v[m], v[*x], v[*y])}; });
        }
        case 1: {
            shape s = t.sizes().vec();
            for (auto& n : s)
                if (d.random.chance(40)) n = 1;
            auto const m = d.mask(s);
            return d.apply([=](values const& v) { return tensor_list{v[*x].masked_fill(v[m], -2.0)}; });
        }
        case 2: return t.dim() >= 2 && unary(d, x, [](auto const& u) { return at::tril(u); });
        default: return binary(d, *x, *y, [](auto const& a, auto const& b) { return at::where(a > b, a, b * 0.5); });
    }
}
bool draw_factory(drawing& d) {
    auto const x = d.pick_float(1);
    if (!x) return false;
    switch (d.random.below(5)) {
        case 0: return unary(d, x, [](auto const& t) { return t + at::arange(t.size(-1), t.options()); });
        case 1: return unary(d, x, [](auto const& t) { return t * at::full(t.sizes(), 0.5, t.options()); });
        case 2: return unary(d, x, [](auto const& t) { return t + at::ones_like(t); });
        case 3: return unary(d, x, [](auto const& t) { return t * (t > 0).to(at::kDouble); });
        default: return unary(d, x, [](auto const& t) {
            auto const n = at::arange(t.size(-1), t.options().dtype(at::kLong));
            return t.masked_fill(n < 2, 0.0);
        });
    }
}
bool draw_attention(drawing& d) {
    auto x = d.pick_float(4, 4);
    if (!x) {
        auto const y = d.pick_float(3, 3);
        if (!y || d.at(*y).size(-1) % 2 != 0) return false;
        if (!unary(d, y, [](auto const& t) { return t.reshape({t.size(0), t.size(1), 2, t.size(2) / 2}).transpose(1, 2); })) return false;
        x = d.last();
    }
    bool const causal = d.random.chance(50);
    auto const k = d.pick([&](at::Tensor const& t) { return is_double(t) && t.sizes() == d.at(*x).sizes(); });
    auto const v = d.pick([&](at::Tensor const& t) { return is_double(t) && t.sizes() == d.at(*x).sizes(); });
    return d.apply([=](values const& all) {
        return tensor_list{at::scaled_dot_product_attention(all[*x], all[*k], all[*v], std::nullopt, 0.0, causal)};
    });
}
bool draw_cross_entropy(drawing& d) {
    auto const x = d.pick_float(2, 3);
    if (!x) return false;
    auto const& t = d.at(*x);
    auto const y = d.indices(t.sizes().slice(0, static_cast<std::size_t>(t.dim() - 1)).vec(), t.size(-1));
    return d.apply([=](values const& v) {
        return tensor_list{at::cross_entropy_loss(v[*x].flatten(0, -2), v[y].flatten())};
    });
}

struct family {
    std::uint64_t weight;
    bool (*draw)(drawing&);
};
constexpr family families[] = {
    {6, draw_linear},  {4, draw_product}, {6, draw_arithmetic}, {3, draw_literal},  {4, draw_activation}, {4, draw_reduction},
    {2, draw_normalisation}, {4, draw_view}, {4, draw_dims}, {4, draw_slicing}, {3, draw_joining}, {3, draw_indexing},
    {2, draw_choice}, {2, draw_factory}, {1, draw_attention}, {1, draw_cross_entropy},
};

}  // namespace

bool draw_op(drawing& d) {
    std::uint64_t sum = 0;
    for (auto const& f : families) sum += f.weight;
    auto at = d.random.below(sum);
    for (auto const& f : families) {
        if (at < f.weight) return f.draw(d);
        at -= f.weight;
    }
    return false;
}

}  // namespace cantle::libtorch
