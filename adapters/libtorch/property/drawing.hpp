// SPDX-License-Identifier: BSL-1.0
#pragma once
// A small random computation, drawn op by op and then captured with its backward. What is drawn is a list of sources and steps; a step
// reads earlier values and appends its results. It runs twice: on zeros while it is drawn, to learn the shapes, and once inside capture.
#include <cantle/graph/training_graph.hpp>

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace cantle::libtorch {

/// Random numbers that are the same with every standard library.
class dice {
public:
    explicit dice(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t below(std::uint64_t n) { return engine_() % n; }
    std::int64_t range(std::int64_t first, std::int64_t last) {
        return first + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first + 1)));
    }
    /// True in `percent` of a hundred.
    bool chance(std::uint64_t percent) { return below(100) < percent; }
    template <class T>
    T const& one_of(std::vector<T> const& list) { return list[below(list.size())]; }

private:
    std::mt19937_64 engine_;
};

using tensor_list = std::vector<at::Tensor>;

/// What may be drawn from: the values so far.
class drawing {
public:
    using step = std::function<tensor_list(tensor_list const&)>;
    static constexpr std::int64_t most_elements = 2500;

    explicit drawing(dice& d) : random(d) {}
    dice& random;

    std::size_t parameter(shape const& sizes) { return source("w", sizes, at::kDouble, true, 0); }
    std::size_t input(shape const& sizes) { return source("x", sizes, at::kDouble, random.chance(50), 0); }
    /// Whole numbers below `bound`.
    std::size_t indices(shape const& sizes, std::int64_t bound) { return source("i", sizes, at::kLong, false, bound); }
    std::size_t mask(shape const& sizes) { return source("m", sizes, at::kBool, false, 0); }

    /// Runs `f` on the values so far and keeps what it gives; false (and nothing kept) where it cannot run or gives too much.
    bool apply(step f);
    /// Some earlier value that `fits`, later ones more often.
    std::optional<std::size_t> pick(std::function<bool(at::Tensor const&)> const& fits);
    std::optional<std::size_t> pick_float(std::int64_t least_rank = 0, std::int64_t most_rank = 8) {
        return pick([=](at::Tensor const& t) { return t.scalar_type() == at::kDouble && t.dim() >= least_rank && t.dim() <= most_rank; });
    }
    at::Tensor const& at(std::size_t v) const { return values_[v]; }
    std::int64_t some_dim(std::size_t v) { return random.range(0, at(v).dim() - 1); }
    std::size_t last() const { return values_.size() - 1; }

    /// Captures everything; the loss takes in all values that no step reads. Nothing where nothing depends on a parameter.
    std::optional<training_graph> capture_all(bool tangent);
    /// By name of an index source: its indices are below this.
    std::map<std::string, std::int64_t> const& bounds() const { return bounds_; }

private:
    struct item {
        step run;                    ///< empty: a source
        std::string name;
        bool trained = false;
        std::size_t values = 1;
    };
    std::vector<item> items_;
    tensor_list values_;
    std::map<std::string, std::int64_t> bounds_;

    std::size_t source(std::string const& kind, shape const& sizes, at::ScalarType type, bool trained, std::int64_t bound);
};

/// Draws one op of some family; false where none of its kind fits.
bool draw_op(drawing& d);

/// What a captured case starts from.
struct random_graph {
    training_graph graph;
    std::map<std::string, std::int64_t> bounds;  ///< of index sources, by name
};
/// A training graph of `ops` drawn ops and their backward.
random_graph draw_training_graph(dice& d, int ops);

}  // namespace cantle::libtorch
