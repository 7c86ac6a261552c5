// SPDX-License-Identifier: BSL-1.0
#pragma once
// A rule set as a table from op name to rule. standard_rules() fills one; a user adds rules for ops of their own:
//
//     auto rules = cantle::standard_rules();
//     rules.add("mine::gated_add", cantle::rules::pointwise_rule({.linear = true}));
#include <cantle/base/error.hpp>
#include <cantle/rules/concepts.hpp>
#include <cantle/rules/local_program.hpp>
#include <cantle/rules/own_op.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

/// A rule: given the op with metas local to the outer axes and the size of this axis, append rows.
using axis_rule = std::function<void(op_query const&, std::int64_t axis_size, row_list&)>;

/// A rule of an op whose rows depend on which axis it is (its name), not only on the axis' size.
using named_axis_rule = std::function<void(op_query const&, axis_context const&, row_list&)>;

class rule_registry {
public:
    /// Add or replace the rule of an op. `version` goes into the hash: raise it when the rule's meaning changes.
    /// `local`: what a rank runs under a strategy of the rule; by default the op itself.
    void add(std::string op_name, axis_rule rule, local_rule local = run_as_is, int version = 1) {
        rules_[std::move(op_name)] = {std::move(rule), {}, std::move(local), version};
    }
    void add_for_named_axes(std::string op_name, named_axis_rule rule, local_rule local = run_as_is, int version = 1) {
        rules_[std::move(op_name)] = {{}, std::move(rule), std::move(local), version};
    }
    /// Rows that hold for every shape (rows_rule). Throws bad_rule where rows differ in arity or one mixes kinds of Partial.
    void add(std::string op_name, static_rows rows, local_rule local = run_as_is, int version = 1) {
        detail::check_static_rows(op_name, rows);
        add(std::move(op_name), [list = std::move(rows.list)](op_query const&, std::int64_t, row_list& out) {
            for (auto const& row : list) out.add(row);
        }, std::move(local), version);
    }
    /// Add an op of one's own (own_op.hpp). Throws bad_rule where a row does not fit the op's own example.
    template <class Op>
    void add_op(Op own) {
        require_own_op<Op>();
        if constexpr (OwnOp<Op>) {
            detail::check_on_examples(own);
            std::string const name = own.name();
            local_rule local = run_as_is;
            int version = 1;
            if constexpr (requires(local_view const& v, local_program& p) { own.local(v, p); })
                local = [own](local_view const& v, local_program& p) { own.local(v, p); };
            if constexpr (requires { { own.version() } -> std::convertible_to<int>; }) version = own.version();
            add(name, [own](op_query const& q, std::int64_t n, row_list& rows) { own.rows(q, n, rows); }, std::move(local), version);
            shapes_[name] = [own](op const& o, std::vector<tensor_meta> const& operands) -> std::optional<std::vector<tensor_meta>> {
                return own.output_metas(o, operands);
            };
        }
    }
    /// Output metas of the ops that were added with add_op, for graph_builder::shapes_from. Holds what it needs.
    shape_function shapes() const {
        return [all = shapes_](op const& o, std::vector<tensor_meta> const& operands) -> std::optional<std::vector<tensor_meta>> {
            auto const at = all.find(o.name);
            return at == all.end() ? std::nullopt : at->second(o, operands);
        };
    }
    void add_all(std::vector<std::string> const& op_names, axis_rule const& rule, local_rule const& local = run_as_is, int version = 1) {
        for (auto const& n : op_names) add(n, rule, local, version);
    }
    bool covers(op_query const& q) const { return rules_.count(q.name()) != 0; }
    bool names_axes(op const& o) const {
        auto const at = rules_.find(o.name);
        return at != rules_.end() && at->second.named_rule;
    }
    std::vector<axis_row> rows(op_query const& q, axis_context const& a) const {
        row_list list(q.operands.size(), q.outputs.size());
        rules_.at(q.name()).named_rule(q, a, list);
        return list.take();
    }
    /// The rows that the rule lists, unchecked: expand_axes checks each against the op. Precondition: covers(q), !names_axes(q).
    std::vector<axis_row> rows(op_query const& q, std::int64_t axis_size) const {
        row_list list(q.operands.size(), q.outputs.size());
        rules_.at(q.name()).rule(q, axis_size, list);
        return list.take();
    }
    /// What one rank runs in place of the op. Throws op_without_rule (401) where there is no rule of that name.
    local_program local(local_view const& v) const {
        auto const of = rules_.find(v.operation->name);
        if (of == rules_.end())
            throw error(error_code::op_without_rule, "op " + v.operation->name, "no rule says what a rank runs in its place",
                        "run the plan with the rules it was made with");
        local_program p(v.operands.size());
        of->second.local(v, p);
        return p;
    }
    void feed(stable_hasher& h) const {
        h.add("cantle-rules-1").add(rules_.size());
        for (auto const& [name, entry] : rules_) h.add(name).add(entry.version);
    }
    /// Ops whose rules state mathematics, which the oracle can try; not those whose rows users declare.
    std::vector<std::string> op_names() const {
        std::vector<std::string> names;
        for (auto const& [name, entry] : rules_)
            if (entry.rule) names.push_back(name);
        return names;
    }

private:
    struct entry { axis_rule rule; named_axis_rule named_rule; local_rule local; int version; };
    std::map<std::string, entry> rules_;
    std::map<std::string, shape_function> shapes_;  // of ops of one's own
};

}  // namespace cantle
