// SPDX-License-Identifier: BSL-1.0
// Of the 64 bits of an element, floating point draws take the leading ones: 53 for float64, 24, 11 and 8 for narrower types, so that a run
// in bf16 rounds down what the run in float64 draws; masks compare 53 bits whatever the type. The two elements of a Philox block are the
// sine and cosine of one Box-Muller pair. Every function is taken element by element, in float64: its bits do not depend on where in a
// buffer an element stands, as those of ATen's vector kernels do.
#include <adapters/libtorch/random_ops.hpp>
#include <adapters/libtorch/run_context.hpp>

#include <cantle/base/philox.hpp>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <c10/util/TypeCast.h>
#include <torch/library.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cantle::libtorch {
namespace {

using at::Tensor;
using bits = std::array<std::uint64_t, 2>;  // of the two elements of a block

thread_local bool portable = false;

/// What to draw.
struct draw {
    std::uint64_t seed, number;
    std::int64_t first;
    at::IntArrayRef counts, strides;

    draw(std::int64_t of_op, std::int64_t first_element, at::IntArrayRef of_each, at::IntArrayRef steps)
        : seed(current_run() ? current_run()->seed : 0), number(static_cast<std::uint64_t>(of_op)), first(first_element), counts(of_each),
          strides(steps) {
        TORCH_CHECK(counts.size() == strides.size(), "a draw needs one stride per count, not ", strides.size(), " for ", counts.size());
    }
    std::int64_t size() const { return c10::multiply_integers(counts); }
};

bool on_cpu(at::Device device) { return device.is_cpu() && !portable; }

// ---- CPU: one loop over the elements ----

/// put(local index, bits of the element's block, which of the two) for every element.
template <class Put>
void for_each_element(draw const& d, Put put) {
    at::parallel_for(0, d.size(), 16384, [&](std::int64_t begin, std::int64_t end) {
        auto const dims = d.counts.size();
        std::vector<std::int64_t> at(dims);
        std::int64_t global = d.first, rest = begin;
        for (std::size_t k = dims; k-- > 0;) {
            at[k] = rest % d.counts[k];
            rest /= d.counts[k];
            global += at[k] * d.strides[k];
        }
        std::int64_t known = -1;
        bits block{};
        for (auto i = begin; i < end; ++i) {
            if (global / 2 != known) {
                known = global / 2;
                block = random_pair(d.seed, d.number, static_cast<std::uint64_t>(known));
            }
            put(i, block, static_cast<std::size_t>(global % 2));
            for (std::size_t k = dims; k-- > 0;) {
                global += d.strides[k];
                if (++at[k] < d.counts[k]) break;
                global -= d.counts[k] * d.strides[k];
                at[k] = 0;
            }
        }
    });
}

constexpr double scale_of(int bit_count) { return 1.0 / static_cast<double>(std::uint64_t{1} << bit_count); }
/// The leading bits as a number in [0, 1).
inline double unit(std::uint64_t x, int bit_count) { return static_cast<double>(x >> (64 - bit_count)) * scale_of(bit_count); }
/// In (0, 1): neither end, so that its logarithm is finite and not zero.
inline double inner_unit(std::uint64_t x) { return (static_cast<double>(x >> 12) + 0.5) * scale_of(52); }

int uniform_bits(at::ScalarType type) {
    switch (type) {
        case at::kDouble: return 53;
        case at::kFloat: return 24;
        case at::kHalf: return 11;
        case at::kBFloat16: return 8;
        default: TORCH_CHECK(false, "random real numbers of type ", type, " are not drawn by index");
    }
}

/// Fills a new tensor by value(bits of the block, which of the two).
template <class Value>
Tensor filled(at::IntArrayRef size, at::ScalarType type, draw const& d, Value value) {
    auto out = at::empty(size, at::TensorOptions(type));
    TORCH_CHECK(out.numel() == d.size(), "a draw of ", d.size(), " elements does not fill a tensor of shape ", size);
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, type, "counter_random", [&] {
        auto* const to = out.mutable_data_ptr<scalar_t>();
        for_each_element(d, [&](std::int64_t i, bits const& block, std::size_t which) {
            to[i] = c10::convert<scalar_t>(value(block, which));
        });
    });
    return out;
}

// ---- other devices: the same with tensors of whole numbers below 2^32, in int64 ----

constexpr std::int64_t low32 = 0xffffffff;

Tensor shifted_right(Tensor const& t, std::int64_t by) { return at::bitwise_right_shift(t, by); }
Tensor shifted_left(Tensor const& t, std::int64_t by) { return at::bitwise_left_shift(t, by); }

/// The upper and the lower half of x * m. Halves of 16 bits keep every product below 2^63.
std::pair<Tensor, Tensor> product(Tensor const& x, std::int64_t m) {
    auto const a = x * (m & 0xffff);
    auto const b = x * (m >> 16) + shifted_right(a, 16);
    return {shifted_right(b, 16), at::bitwise_or(shifted_left(at::bitwise_and(b, 0xffff), 16), at::bitwise_and(a, 0xffff))};
}

/// Global indices of the elements, in the order of the local tensor.
Tensor indices(draw const& d, at::Device device) {
    auto all = at::full({1}, d.first, at::TensorOptions(at::kLong).device(device));
    for (std::size_t k = 0; k < d.counts.size(); ++k)
        all = (all.unsqueeze(-1) + at::arange(d.counts[k], all.options()) * d.strides[k]).reshape({-1});
    return all;
}

/// Words of 32 bits of every element's block, and whether it is the second of the two.
struct tensor_bits {
    std::array<Tensor, 4> words;
    Tensor second;

    tensor_bits(draw const& d, at::Device device) {
        auto const element = indices(d, device);
        second = at::bitwise_and(element, 1).to(at::kBool);
        auto const pair = shifted_right(element, 1);
        auto const constant = [&](std::uint64_t x) { return at::full({1}, static_cast<std::int64_t>(x), element.options()); };
        words = {at::bitwise_and(pair, low32), shifted_right(pair, 32), constant(d.number & low32), constant(d.number >> 32)};
        std::int64_t key[] = {static_cast<std::int64_t>(d.seed & low32), static_cast<std::int64_t>(d.seed >> 32)};
        for (int round = 0; round < 10; ++round) {
            auto const [a_high, a_low] = product(words[0], 0xD2511F53);
            auto const [b_high, b_low] = product(words[2], 0xCD9E8D57);
            words = {at::bitwise_xor(at::bitwise_xor(b_high, words[1]), key[0]), b_low,
                     at::bitwise_xor(at::bitwise_xor(a_high, words[3]), key[1]), a_low};
            key[0] = (key[0] + 0x9E3779B9) & low32;
            key[1] = (key[1] + 0xBB67AE85) & low32;
        }
    }
    Tensor high() const { return at::where(second, words[2], words[0]); }
    Tensor low() const { return at::where(second, words[3], words[1]); }
};
/// The leading bits of 64 that stand in two halves.
Tensor leading(Tensor const& high, Tensor const& low, int bit_count) {
    if (bit_count <= 32) return shifted_right(high, 32 - bit_count);
    return at::bitwise_or(shifted_left(high, bit_count - 32), shifted_right(low, 64 - bit_count));
}
Tensor inner_unit(Tensor const& high, Tensor const& low) { return (leading(high, low, 52).to(at::kDouble) + 0.5) * scale_of(52); }

/// x * range / 2^64 for x in two halves, rounded down. 0 < range < 2^63.
Tensor scaled(Tensor const& high, Tensor const& low, std::int64_t range) {
    auto const [h00, l00] = product(low, range & low32);
    auto const [h01, l01] = product(high, range & low32);
    auto const [h10, l10] = product(low, range >> 32);
    auto const [h11, l11] = product(high, range >> 32);
    return shifted_left(h11, 32) + l11 + h01 + h10 + shifted_right(h00 + l01 + l10, 32);
}

// ---- the ops ----

/// x * y / 2^64, rounded down. Precondition: y < 2^63.
std::uint64_t upper_half(std::uint64_t x, std::uint64_t y) {
    std::uint64_t const x0 = x & 0xffffffff, x1 = x >> 32, y0 = y & 0xffffffff, y1 = y >> 32;
    std::uint64_t const a = x0 * y0, b = x1 * y0, c = x0 * y1;
    return x1 * y1 + (b >> 32) + (c >> 32) + (((a >> 32) + (b & 0xffffffff) + (c & 0xffffffff)) >> 32);
}

/// x as that type; what rounding brought to `below` becomes `instead`.
template <class T>
double in_type_below(double x, double below, double instead) {
    return static_cast<double>(c10::convert<T>(x)) >= below ? instead : x;
}

Tensor uniform(at::IntArrayRef size, double from, double to, at::ScalarType type, at::Device device, std::int64_t number,
               std::int64_t first, at::IntArrayRef counts, at::IntArrayRef strides) {
    TORCH_CHECK(from <= to, "uniform numbers from ", from, " to ", to, ": the first is greater");
    draw const d(number, first, counts, strides);
    int const bit_count = uniform_bits(type);
    double const width = to - from;
    if (!on_cpu(device)) {
        tensor_bits const b(d, device);
        auto const x = leading(b.high(), b.low(), bit_count).to(at::kDouble) * scale_of(bit_count) * width + from;
        auto const rounded = x.to(type);
        return (from < to ? rounded.masked_fill(rounded.to(at::kDouble) >= to, from) : rounded).reshape(size);
    }
    Tensor out;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, "counter_uniform", [&] {
        out = filled(size, type, d, [=](bits const& b, std::size_t which) {
            double const x = unit(b[which], bit_count) * width + from;
            return from < to ? in_type_below<scalar_t>(x, to, from) : x;
        });
    });
    return out;
}

Tensor normal(at::IntArrayRef size, double mean, double std, at::ScalarType type, at::Device device, std::int64_t number,
              std::int64_t first, at::IntArrayRef counts, at::IntArrayRef strides) {
    TORCH_CHECK(std >= 0, "a normal distribution has no deviation of ", std);
    uniform_bits(type);
    draw const d(number, first, counts, strides);
    if (!on_cpu(device)) {
        tensor_bits const b(d, device);
        auto const radius = (inner_unit(b.words[0], b.words[1]).log() * -2).sqrt();
        auto const angle = leading(b.words[2], b.words[3], 53).to(at::kDouble) * scale_of(53) * (2 * std::numbers::pi);
        return (radius * at::where(b.second, angle.sin(), angle.cos()) * std + mean).to(type).reshape(size);
    }
    return filled(size, type, d, [=](bits const& b, std::size_t which) {
        double const radius = std::sqrt(-2 * std::log(inner_unit(b[0]))), angle = unit(b[1], 53) * (2 * std::numbers::pi);
        return radius * (which == 0 ? std::cos(angle) : std::sin(angle)) * std + mean;
    });
}

Tensor exponential(at::IntArrayRef size, double lambd, at::ScalarType type, at::Device device, std::int64_t number, std::int64_t first,
                   at::IntArrayRef counts, at::IntArrayRef strides) {
    TORCH_CHECK(lambd > 0, "an exponential distribution has no rate of ", lambd);
    uniform_bits(type);
    draw const d(number, first, counts, strides);
    if (!on_cpu(device)) {
        tensor_bits const b(d, device);
        return (inner_unit(b.high(), b.low()).log().neg() / lambd).to(type).reshape(size);
    }
    return filled(size, type, d, [=](bits const& b, std::size_t which) { return -std::log(inner_unit(b[which])) / lambd; });
}

Tensor randint(at::IntArrayRef size, std::int64_t low, std::int64_t high, at::ScalarType type, at::Device device, std::int64_t number,
               std::int64_t first, at::IntArrayRef counts, at::IntArrayRef strides) {
    TORCH_CHECK(low < high, "whole numbers from ", low, " to below ", high, ": there are none");
    auto const range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    TORCH_CHECK(range >> 63 == 0, "whole numbers from ", low, " to below ", high, " are too many");
    draw const d(number, first, counts, strides);
    if (!on_cpu(device)) {
        tensor_bits const b(d, device);
        return (scaled(b.high(), b.low(), static_cast<std::int64_t>(range)) + low).to(type).reshape(size);
    }
    return filled(size, type, d, [=](bits const& b, std::size_t which) {
        return low + static_cast<std::int64_t>(upper_half(b[which], range));
    });
}

/// k / 2^53 < p is k < ceil(p * 2^53), in whole numbers.
std::int64_t bound_of(double p) {
    TORCH_CHECK(0 <= p && p <= 1, "a probability is between 0 and 1, not ", p);
    return static_cast<std::int64_t>(std::ceil(p * static_cast<double>(std::int64_t{1} << 53)));
}
/// True where the element's number in [0, 1) is below p.
Tensor below(double p, at::IntArrayRef size, at::Device device, draw const& d) {
    auto const bound = bound_of(p);
    if (!on_cpu(device)) {
        tensor_bits const b(d, device);
        return (leading(b.high(), b.low(), 53) < bound).reshape(size);
    }
    return filled(size, at::kBool, d, [=](bits const& b, std::size_t which) { return static_cast<std::int64_t>(b[which] >> 11) < bound; });
}

Tensor bernoulli(at::IntArrayRef size, double p, at::ScalarType type, at::Device device, std::int64_t number, std::int64_t first,
                 at::IntArrayRef counts, at::IntArrayRef strides) {
    return below(p, size, device, draw(number, first, counts, strides)).to(type);
}

Tensor bernoulli_of_tensor(at::IntArrayRef size, Tensor const& p, at::ScalarType type, at::Device device, std::int64_t number,
                           std::int64_t first, at::IntArrayRef counts, at::IntArrayRef strides) {
    auto const x = uniform(size, 0, 1, at::kDouble, device, number, first, counts, strides);
    return (x < p.to(at::kDouble)).to(type);
}

/// The order of one random number per element; equal ones keep theirs.
Tensor randperm(at::IntArrayRef size, at::ScalarType type, at::Device device, std::int64_t number, std::int64_t first,
                at::IntArrayRef counts, at::IntArrayRef strides) {
    TORCH_CHECK(first == 0 && size.size() == 1, "a permutation is drawn as a whole");
    auto const keys = randint(size, 0, std::numeric_limits<std::int64_t>::max(), at::kLong, device, number, first, counts, strides);
    return std::get<1>(keys.sort(/*stable=*/true, 0, false)).to(type);
}

/// native_dropout with a mask drawn by index: (input * mask / (1 - p), mask); (input, true) where it does not train.
std::tuple<Tensor, Tensor> dropout(Tensor const& input, double p, std::optional<bool> train, std::int64_t number, std::int64_t first,
                                   at::IntArrayRef counts, at::IntArrayRef strides) {
    if (!train.value_or(true)) return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
    draw const d(number, first, counts, strides);
    double const scale = p == 1 ? 0.0 : 1 / (1 - p);
    if (!on_cpu(input.device())) {
        auto const mask = below(p, input.sizes(), input.device(), d).logical_not();
        return {input.mul(mask).mul_(scale), mask};
    }
    // One pass; products are taken in float32 for narrower types, as ATen does.
    auto const bound = bound_of(p);
    auto const x = input.contiguous();
    auto out = at::empty_like(x), mask = at::empty(x.sizes(), at::TensorOptions(at::kBool));
    TORCH_CHECK(x.numel() == d.size(), "a draw of ", d.size(), " elements is not one of a tensor of shape ", x.sizes());
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "counter_dropout", [&] {
        using wide = at::opmath_type<scalar_t>;
        auto const* const from = x.const_data_ptr<scalar_t>();
        auto* const to = out.mutable_data_ptr<scalar_t>();
        auto* const kept = mask.mutable_data_ptr<bool>();
        auto const by = static_cast<wide>(scale);
        for_each_element(d, [=](std::int64_t i, bits const& block, std::size_t which) {
            kept[i] = static_cast<std::int64_t>(block[which] >> 11) >= bound;
            to[i] = static_cast<scalar_t>(static_cast<wide>(from[i]) * static_cast<wide>(kept[i]) * by);
        });
    });
    return {out, mask};
}

TORCH_LIBRARY_FRAGMENT(cantle, m) {
    auto const elements = std::string(", int draw, int first, int[] counts, int[] strides) -> ");
    auto const define = [&](std::string const& head, char const* result = "Tensor") { m.def((head + elements + result).c_str()); };
    define("counter_uniform(int[] size, float from, float to, ScalarType dtype, Device device");
    define("counter_normal(int[] size, float mean, float std, ScalarType dtype, Device device");
    define("counter_exponential(int[] size, float lambd, ScalarType dtype, Device device");
    define("counter_randint(int[] size, int low, int high, ScalarType dtype, Device device");
    define("counter_bernoulli(int[] size, float p, ScalarType dtype, Device device");
    define("counter_bernoulli.Tensor(int[] size, Tensor p, ScalarType dtype, Device device");
    define("counter_randperm(int[] size, ScalarType dtype, Device device");
    define("counter_dropout(Tensor input, float p, bool? train", "(Tensor output, Tensor mask)");
}
TORCH_LIBRARY_IMPL(cantle, CompositeExplicitAutograd, m) {
    m.impl("counter_uniform", uniform);
    m.impl("counter_normal", normal);
    m.impl("counter_exponential", exponential);
    m.impl("counter_randint", randint);
    m.impl("counter_bernoulli", bernoulli);
    m.impl("counter_bernoulli.Tensor", bernoulli_of_tensor);
    m.impl("counter_randperm", randperm);
    m.impl("counter_dropout", dropout);
}

}  // namespace

portable_draws_guard::portable_draws_guard() : before_(portable) { portable = true; }
portable_draws_guard::~portable_draws_guard() { portable = before_; }

}  // namespace cantle::libtorch
