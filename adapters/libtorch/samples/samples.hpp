// SPDX-License-Identifier: BSL-1.0
#pragma once
// Concrete operands for every op that the standard rules cover, one file per rule family: data distinct multiples of 1/8 in a shuffled
// order, dims that 2, 3 and 4 divide. The oracle's tests and `cantle check-rules` run them.
#include <adapters/libtorch/call_op.hpp>
#include <adapters/libtorch/oracle.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cantle::libtorch {

inline constexpr std::monostate none{};

/// The streams that samples are drawn from: one each, so that two operands of one op never hold the same values.
inline std::mt19937_64& value_stream() {
    static std::mt19937_64 stream(815);
    return stream;
}
inline std::mt19937_64& index_stream() {
    static std::mt19937_64 stream(4711);
    return stream;
}
/// Samples made in its lifetime draw from streams of their own: whoever adds samples this way leaves the values of all others as they are.
class own_streams {
public:
    explicit own_streams(std::uint64_t seed) : values_(value_stream()), indices_(index_stream()) {
        value_stream().seed(seed);
        index_stream().seed(seed + 1);
    }
    ~own_streams() {
        value_stream() = values_;
        index_stream() = indices_;
    }
    own_streams(own_streams const&) = delete;
    own_streams& operator=(own_streams const&) = delete;

private:
    std::mt19937_64 values_, indices_;
};

/// Distinct multiples of 1/8, shuffled, never 0; about a third of them negative (so that sums are not 0), none where `positive`.
inline at::Tensor eighths(shape const& sizes, bool positive = false, at::ScalarType type = at::kDouble) {
    auto& random = value_stream();
    auto const n = element_count(sizes);
    std::vector<std::int64_t> k(static_cast<std::size_t>(n));
    std::iota(k.begin(), k.end(), positive ? 1 : -n / 3);
    for (auto& x : k) x += !positive && x >= 0;
    if (n == 1) k[0] = static_cast<std::int64_t>(3 + random() % 20);
    for (std::size_t i = k.size(); i > 1; --i) std::swap(k[i - 1], k[random() % i]);
    std::vector<double> values(k.begin(), k.end());
    for (auto& v : values) v /= 8;
    return at::tensor(values, at::kDouble).view(sizes).to(type);
}
/// Numbers below `bound` in a shuffled order, all of them about equally often.
inline at::Tensor indices(shape const& sizes, std::int64_t bound) {
    auto& random = index_stream();
    std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(sizes)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) % bound;
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
    return at::tensor(values, at::kLong).view(sizes);
}
inline at::Tensor scalar(double v) { return at::full({}, v, at::kDouble); }
/// True and false mixed; a single one is true.
inline at::Tensor flags(shape const& sizes) { return sizes.empty() ? at::ones({}, at::kBool) : (indices(sizes, 5) % 2).to(at::kBool); }
/// Few values, often equal: for comparisons.
inline at::Tensor coarse(shape const& sizes) { return sizes.empty() ? scalar(1) : indices(sizes, 5).to(at::kDouble) / 2; }

/// Builds a sample argument by argument, in schema order.
struct sample {
    rule_sample made;
    explicit sample(std::string name) { made.operation.name = std::move(name); }
    sample& arg(std::string name, at::Tensor t) {
        made.operation.arguments.push_back({std::move(name), operand_slot{static_cast<std::uint32_t>(made.operands.size())}});
        made.operands.push_back(std::move(t));
        return *this;
    }
    sample& arg(std::string name, std::vector<at::Tensor> const& list) {
        operand_slots slots;
        for (auto const& t : list) {
            slots.indices.push_back(static_cast<std::int32_t>(made.operands.size()));
            made.operands.push_back(t);
        }
        made.operation.arguments.push_back({std::move(name), std::move(slots)});
        return *this;
    }
    /// A literal. Whole numbers, fractions, flags and texts become what a graph holds; never one of them another.
    template <class T>
    sample& arg(std::string name, T v) {
        argument_value held;
        if constexpr (std::is_same_v<T, bool>)
            held = v;
        else if constexpr (std::is_integral_v<T>)
            held = static_cast<std::int64_t>(v);
        else if constexpr (std::is_same_v<T, char const*>)
            held = std::string(v);
        else
            held = std::move(v);
        made.operation.arguments.push_back({std::move(name), std::move(held)});
        return *this;
    }
    sample& no_values() {
        made.values_matter = false;
        return *this;
    }
    operator rule_sample() const { return made; }
};

using sample_list = std::vector<rule_sample>;

void add_pointwise_samples(sample_list& s);
void add_comparison_samples(sample_list& s);
void add_cast_samples(sample_list& s);
void add_linear_samples(sample_list& s);
void add_grouped_mm_samples(sample_list& s);
void add_view_samples(sample_list& s);
void add_slicing_samples(sample_list& s);
void add_padding_samples(sample_list& s);
void add_indexing_samples(sample_list& s);
void add_scatter_samples(sample_list& s);
void add_sorting_samples(sample_list& s);
void add_reduction_samples(sample_list& s);
void add_attention_samples(sample_list& s);
void add_layer_norm_samples(sample_list& s);
void add_group_norm_samples(sample_list& s);
void add_batch_norm_samples(sample_list& s);
void add_convolution_samples(sample_list& s);
void add_pooling_samples(sample_list& s);
void add_resampling_samples(sample_list& s);
void add_embedding_samples(sample_list& s);
void add_loss_samples(sample_list& s);
void add_nll_loss_samples(sample_list& s);
void add_elementwise_loss_samples(sample_list& s);
void add_factory_samples(sample_list& s);
void add_random_samples(sample_list& s);
void add_optimizer_samples(sample_list& s);

/// Ops that only GPU kernels run: no samples. Each has the rule of an op that is judged (cantle::sdpa, native_layer_norm_backward).
std::vector<std::string> ops_without_cpu_kernel();

/// Samples of all families, in a fixed order.
sample_list rule_samples();

}  // namespace cantle::libtorch
