// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/oracle_search.hpp>

#include <adapters/libtorch/op_values.hpp>

#include <cantle/rules/expand_axes.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <set>
#include <utility>

namespace cantle::libtorch {
namespace {

constexpr reduction kinds[] = {reduction::sum, reduction::avg, reduction::max, reduction::min};
constexpr std::size_t operands_enumerated = 3;
constexpr std::size_t ample_values = 8;

bool is_ample(plain_values const& v) {
    std::set<double> seen;
    for (double x : v.values) {
        seen.insert(x);
        if (seen.size() >= ample_values) return true;
    }
    return false;
}

/// Fills rows of input placements operand by operand.
class input_rows {
public:
    input_rows(rule_oracle const& oracle, std::int64_t n) {
        for (auto const& t : oracle.query().operands) options_.push_back(placements_of(t, n, false));
    }
    std::vector<std::vector<placement>> list(std::vector<axis_row> const& also) {
        std::vector<placement> row(options_.size());
        extend(0, options_.size() <= operands_enumerated ? options_.size() : 2, row);
        if (options_.size() > operands_enumerated) {
            std::set<std::size_t> dims;
            for (auto const& o : options_)
                for (auto p : o)
                    if (p.is_shard()) dims.insert(p.dim);
            for (auto d : dims) add_alike(placement::shard(d));
            for (auto k : kinds) add_alike(placement::partial(k));
            for (auto const& r : also) add(r.operands);
        }
        return std::move(rows_);
    }

private:
    std::vector<std::vector<placement>> options_;
    std::vector<std::vector<placement>> rows_;
    std::set<std::string> seen_;

    void add(std::vector<placement> const& row) {
        if (mixes_kinds({row, {}})) return;
        if (seen_.insert(text_of(axis_row{row, {}})).second) rows_.push_back(row);
    }
    void add_alike(placement p) {
        std::vector<placement> row;
        for (auto const& o : options_) row.push_back(std::find(o.begin(), o.end(), p) != o.end() ? p : placement::replicate());
        add(row);
    }
    void extend(std::size_t i, std::size_t may_differ, std::vector<placement>& row) {
        if (i == row.size()) return add(row);
        for (auto p : options_[i]) {
            if (!p.is_replicate() && may_differ == 0) continue;
            row[i] = p;
            extend(i + 1, may_differ - !p.is_replicate(), row);
        }
        row[i] = placement::replicate();
    }
};

class searcher {
public:
    searcher(rule_oracle const& oracle, std::int64_t n) : oracle_(oracle), n_(n), mesh_(axis_of(n)) {
        auto const q = oracle.query();
        for (auto const& t : q.outputs) options_.push_back(t.defined ? placements_of(t, n, true) : std::vector{placement::replicate()});
        // Sizes of views and factories, and masks of gradients, depend on how the outputs lie; the programs of most ops do not.
        auto const whole = candidates(std::vector<placement>(q.operands.size()));
        depends_on_outputs_ = whole.size() > 1;
    }
    row_search run(std::vector<axis_row> const& also) {
        row_search found;
        found.all_inputs = oracle_.query().operands.size() <= operands_enumerated;
        for (auto const& inputs : input_rows(oracle_, n_).list(also)) {
            auto const operands = place(inputs);
            if (!operands) continue;
            ++found.inputs;
            for (auto& c : candidates(inputs)) try_play(inputs, *operands, c, found.rows);
        }
        return found;
    }

private:
    /// A program, and the assignments of output placements that lead to it.
    struct candidate {
        rank_play play;
        std::vector<std::vector<placement>> outputs;
    };
    rule_oracle const& oracle_;
    std::int64_t n_;
    device_mesh mesh_;
    std::vector<std::vector<placement>> options_;  // by output
    bool depends_on_outputs_ = true;
    std::set<std::string> seen_;

    std::optional<std::vector<layout>> place(std::vector<placement> const& inputs) const {
        auto s = oracle_.place({inputs, std::vector<placement>(options_.size())}, n_);
        if (!s) return std::nullopt;
        s->layouts.resize(inputs.size());
        return s->layouts;
    }
    std::vector<candidate> candidates(std::vector<placement> const& inputs) const {
        std::vector<candidate> made;
        auto const first = std::find_if(options_.begin(), options_.end(), [](auto const& o) { return o.size() > 1; });
        auto const choices = depends_on_outputs_ && first != options_.end() ? *first : std::vector{placement::replicate()};
        for (bool own : {true, false})
            for (auto p : choices) {
                std::vector<placement> outputs;
                for (auto const& o : options_) outputs.push_back(std::find(o.begin(), o.end(), p) != o.end() ? p : placement::replicate());
                auto const s = oracle_.place({inputs, outputs}, n_);
                if (!s) continue;
                try {
                    rank_play play(oracle_.query(), s->layouts, mesh_, own ? oracle_.local() : local_rule(run_as_is));
                    auto const same = std::find_if(made.begin(), made.end(), [&](candidate const& c) { return c.play.same_as(play); });
                    if (same != made.end()) same->outputs.push_back(std::move(outputs));
                    else made.push_back({std::move(play), {std::move(outputs)}});
                } catch (std::exception const&) {}  // no layouts that the rule yields
            }
        return made;
    }
    void try_play(std::vector<placement> const& inputs, std::vector<layout> const& operands, candidate& c, std::vector<true_row>& found) {
        auto left = options_;
        if (!oracle_.values_matter())
            for (auto& o : left) std::erase_if(o, [](placement p) { return p.is_partial(); });
        try {
            bool const many = rule_oracle::splits(operands);
            for (auto how : partial_splits) {
                auto const outputs = oracle_.outputs_of(c.play, operands, mesh_, how);
                for (std::size_t o = 0; o < left.size(); ++o) {
                    auto const& t = oracle_.query().outputs[o];
                    std::erase_if(left[o], [&](placement p) {
                        layout l(1);
                        if (t.defined && !l.apply(0, n_, p, t.sizes)) return true;
                        return !oracle_.difference_of(outputs[o], o, l, mesh_).empty();
                    });
                    if (left[o].empty()) return;
                }
                if (!many) break;
            }
        } catch (std::exception const&) { return; }  // the op refuses these operands
        bool ample = true;
        for (std::size_t o = 0; o < left.size(); ++o) {
            keep_strongest(left[o]);
            if (oracle_.query().outputs[o].defined) ample = ample && is_ample(oracle_.wanted(o));
        }
        std::vector<placement> outputs;
        emit(inputs, left, outputs, c, ample, found);
    }
    static void keep_strongest(std::vector<placement>& list) {
        if (std::any_of(list.begin(), list.end(), [](placement p) { return p.is_replicate(); })) list = {placement::replicate()};
        auto const all = list;
        std::erase_if(list, [&](placement p) {
            return p.is_shard() && p.outer > 1 && std::find(all.begin(), all.end(), placement::shard(p.dim)) != all.end();
        });
    }
    void emit(std::vector<placement> const& inputs, std::vector<std::vector<placement>> const& left, std::vector<placement>& outputs,
              candidate const& c, bool ample, std::vector<true_row>& found) {
        if (outputs.size() < left.size()) {
            for (auto p : left[outputs.size()]) {
                outputs.push_back(p);
                emit(inputs, left, outputs, c, ample, found);
                outputs.pop_back();
            }
            return;
        }
        // The program must be the one of these outputs.
        if (depends_on_outputs_ && left.size() == 1 && std::find(c.outputs.begin(), c.outputs.end(), outputs) == c.outputs.end()) return;
        axis_row row{inputs, outputs};
        if (seen_.insert(text_of(row)).second) found.push_back({std::move(row), ample});
    }
};

/// The layout on a mesh whose axes stand in reverse order.
layout reversed(layout const& l, device_mesh const& mesh) {
    layout r(mesh.dims());
    auto const axis = [&](std::size_t a) { return mesh.dims() - 1 - a; };
    std::int64_t outer = 1;
    for (auto const& d : l.digits()) {
        if (!d.is_cut()) {
            outer = d.extent;
            continue;
        }
        r.push_cut(axis(static_cast<std::size_t>(d.axis)), d.extent, d.dim, outer);
        outer = 1;
    }
    for (std::size_t a = 0; a < mesh.dims(); ++a)
        if (l.on(a).is_partial()) r.set_partial(axis(a), l.on(a).reduce);
    return r;
}

}  // namespace

std::vector<placement> placements_of(tensor_meta const& t, std::int64_t n, bool whole_factors) {
    std::vector<placement> list{placement::replicate()};
    for (std::size_t d = 0; d < t.rank(); ++d)
        for (std::int64_t outer = 1; outer * n <= t.sizes[d]; ++outer)
            if (t.sizes[d] % (outer * n) == 0 && (outer == 1 || whole_factors)) list.push_back(placement::shard(d, outer));
    for (auto k : kinds)
        if (has_partials(to_scalar_type(t.type), k)) list.push_back(placement::partial(k));
    return list;
}

row_search find_true_rows(rule_oracle const& oracle, std::int64_t n, std::vector<axis_row> const& also) {
    return searcher(oracle, n).run(also);
}

bool is_dominated(axis_row const& row, axis_row const& better) {
    for (std::size_t i = 0; i < row.operands.size(); ++i)
        if (row.operands[i] != better.operands[i] && !row.operands[i].is_replicate()) return false;
    for (std::size_t o = 0; o < row.outputs.size(); ++o)
        if (row.outputs[o] != better.outputs[o] && !better.outputs[o].is_replicate()) return false;
    return true;
}

bool mixes_kinds(axis_row const& row) {
    std::optional<reduction> kind;
    for (auto const* list : {&row.operands, &row.outputs})
        for (auto p : *list)
            if (p.is_partial() && std::exchange(kind, p.reduce).value_or(p.reduce) != p.reduce) return true;
    return false;
}

std::vector<oracle_strategy> composed_strategies(rule_oracle const& oracle, device_mesh const& mesh, bool inner_first, std::size_t most) {
    layout_table layouts;
    auto axes = mesh.axes();
    if (inner_first) std::reverse(axes.begin(), axes.end());
    auto const table = expand_axes(oracle.query(), device_mesh(axes), oracle.rules(), layouts);
    std::vector<oracle_strategy> picked;
    auto const count = std::min(most, table.size());
    for (std::size_t k = 0; k < count; ++k) {
        auto s = strategy_of(table, k * table.size() / count, layouts);
        if (inner_first) {
            for (auto& l : s.layouts) l = reversed(l, mesh);
            for (auto& c : s.inner) c.axis = static_cast<std::uint32_t>(mesh.dims() - 1 - c.axis);
        }
        picked.push_back(std::move(s));
    }
    return picked;
}

}  // namespace cantle::libtorch
