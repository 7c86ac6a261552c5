// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/verify_sizes.hpp>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace cantle::libtorch {
namespace {

/// What a size means, by the names that our models and the configurations of transformers give it.
enum class meaning { kept, width, heads, kv_heads, head_dim, part_of_head, feed_forward, vocabulary, positions, window, experts };

meaning meaning_of(std::string_view key) {
    struct row {
        meaning what;
        std::initializer_list<std::string_view> keys;
    };
    static row const rows[] = {
        {meaning::width, {"dim", "hidden_size", "n_embd", "d_model", "word_embed_proj_dim"}},
        {meaning::heads, {"heads", "num_attention_heads", "n_head", "n_heads", "num_heads"}},
        {meaning::kv_heads, {"kv_heads", "num_key_value_heads", "num_kv_heads"}},
        {meaning::head_dim, {"head_dim", "d_kv", "nope_dim"}},
        {meaning::part_of_head, {"rope_dim", "value_dim", "rotary_dim"}},
        {meaning::feed_forward,
         {"ffn", "hidden", "intermediate_size", "hidden_dim", "d_ff", "ffn_dim", "n_inner", "ffn_hidden_size", "expert_ffn", "kv_rank"}},
        {meaning::vocabulary, {"vocab", "vocab_size", "classes"}},
        {meaning::positions, {"positions", "n_positions", "max_position_embeddings"}},
        {meaning::window, {"window", "window_size", "sliding_window"}},
        {meaning::experts, {"experts", "num_local_experts"}},
    };
    for (auto const& r : rows)
        if (std::find(r.keys.begin(), r.keys.end(), key) != r.keys.end()) return r.what;
    return meaning::kept;
}

/// Hands out small numbers that `ranks` divides as far as it divides the full ones, each one once.
class small_numbers {
public:
    small_numbers(std::int64_t ranks, bool uneven) : ranks_(ranks), uneven_(uneven) {}
    std::int64_t part(std::int64_t full) const { return std::gcd(full, ranks_); }
    bool alike(std::int64_t full, std::int64_t small) const { return part(full) == part(small); }
    /// 5 on 3 ranks is 2 2 1; 4 would be 2 2 0.
    bool leaves_none_empty(std::int64_t n) const { return !uneven_ || n % ranks_ == 0 || (n + ranks_ - 1) / ranks_ * (ranks_ - 1) < n; }
    /// At least `least`, at most `full`. Equal full sizes get equal small ones: what was one tensor size stays one.
    std::int64_t of(std::int64_t full, std::int64_t least, std::int64_t unit = 1) {
        if (auto const known = given_.find(full); known != given_.end()) return known->second;
        auto const g = full % (part(full) * unit) == 0 ? part(full) * unit : part(full);
        for (std::int64_t n = std::max<std::int64_t>(1, (least + g - 1) / g) * g; n < full; n += g)
            if (alike(full, n) && leaves_none_empty(n) && !used_.count(n)) return keep(full, n);
        return keep(full, full);
    }
    std::int64_t keep(std::int64_t full, std::int64_t small) {
        used_.insert(small);
        return given_[full] = small;
    }

private:
    std::int64_t ranks_;
    bool uneven_;
    std::map<std::int64_t, std::int64_t> given_;
    std::set<std::int64_t> used_;

};

/// The smallest share of `full` that is at least `least` wide and even.
std::int64_t narrower(std::int64_t full, std::int64_t least) {
    for (std::int64_t n = least; n < full; ++n)
        if (full % n == 0 && n % 2 == 0) return n;
    return full;
}

}  // namespace

size_kind kind_of_size(std::string_view key) {
    switch (meaning_of(key)) {
        case meaning::kept:
        case meaning::window: return size_kind::other;
        case meaning::positions: return size_kind::length;
        default: return size_kind::dim;
    }
}

model_request small_instance(graph_origin const& origin, std::int64_t ranks, int level, size_needs needs) {
    small_numbers small(ranks, needs.uneven);
    auto const first = [&](meaning wanted) -> std::optional<std::int64_t> {
        for (auto const& [key, value] : origin.config)
            if (meaning_of(key) == wanted) return value;
        return std::nullopt;
    };
    model_request r;
    r.model = origin.model;
    r.recipe = origin.recipe;
    r.precision = origin.precision;
    auto const least_batch = std::max<std::int64_t>(small.part(origin.batch), std::min<std::int64_t>(origin.batch, 2));
    r.batch = needs.uneven ? small.of(origin.batch, 2) : small.keep(origin.batch, least_batch);
    r.sequence = small.of(origin.sequence, std::max<std::int64_t>(2 * small.part(origin.sequence), 8) << level);

    auto const heads = first(meaning::heads).value_or(1), kv_heads = first(meaning::kv_heads).value_or(heads);
    auto const width = first(meaning::width).value_or(1);
    auto const head_dim = first(meaning::head_dim).value_or(width / heads);
    auto const small_kv = small_numbers(ranks, needs.uneven).of(kv_heads, kv_heads == 1 ? 1 : 2);
    auto const small_heads = heads % kv_heads == 0 ? small_kv * (heads / kv_heads) : heads;
    auto const narrow = head_dim > 1 ? head_dim / narrower(head_dim, std::int64_t{8} << level) : 1;  // all head dims by the same number
    if (first(meaning::heads) && width == heads * head_dim) small.keep(width, small_heads * (head_dim / narrow));
    auto const top = [&] {
        for (auto const& [key, value] : origin.config)
            if (key == "top" || key == "num_experts_per_tok") return value;
        return std::int64_t{1};
    }();
    for (auto const& [key, value] : origin.config) {
        auto n = value;
        switch (meaning_of(key)) {
            case meaning::kept: break;
            case meaning::width: n = small.of(value, 16, needs.unit); break;
            case meaning::heads: n = small_heads; break;
            case meaning::kv_heads: n = small_kv; break;
            case meaning::head_dim:
            case meaning::part_of_head: n = value % narrow == 0 ? value / narrow : value; break;
            case meaning::feed_forward: n = small.of(value, 20, needs.unit); break;
            case meaning::vocabulary: n = small.of(value, 90); break;
            case meaning::positions:
                n = r.sequence + std::clamp<std::int64_t>(value - origin.sequence, 0, 8);
                while (n < value && !(small.alike(value, n) && small.leaves_none_empty(n))) ++n;
                break;
            case meaning::window:
                n = value >= origin.sequence ? r.sequence : std::max<std::int64_t>(2, value * r.sequence / origin.sequence);
                break;
            case meaning::experts: n = std::min(value, small_numbers(ranks, needs.uneven).of(value, top + 1)); break;
        }
        r.overrides.emplace_back(key, n);
    }
    return r;
}

}  // namespace cantle::libtorch
