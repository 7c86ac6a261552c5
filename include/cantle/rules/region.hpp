// SPDX-License-Identifier: BSL-1.0
#pragma once
// Regions in planning: a region has exactly one strategy, the declared one (texts: region_text.hpp; the op: graph/region_op.hpp).
//
// The backward derives its placements axis by axis (case D1), unless they are declared:
//   gradient of an input       S(d) -> S(d), P -> R; R -> P where another tensor of the region is cut or Partial there (each rank then has
//                              its share of the contributions only), else R
//   gradient of an output      S(d) -> S(d), R -> R, P -> R
// It gets gradients and inputs only, so it runs the forward again: its collectives are those of the forward, then those in reverse order on
// the gradients (all_gather and reduce_scatter change places; a message of bytes has no gradient).
#include <cantle/graph/region_op.hpp>
#include <cantle/rules/region_text.hpp>
#include <cantle/rules/registry.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

/// A region's declaration, read from its op. Throws bad_region.
class region_declaration {
public:
    region_declaration(op const& o, std::size_t input_count, std::optional<std::size_t> output_count)
        : reader_(o.get<std::string>("name", "")) {
        inputs = placements(o, "in_placements", "input", input_count, false);
        auto const outs = split_text(o.get<std::string>("out_placements", ""), ';').size();
        outputs = placements(o, "out_placements", "output", output_count.value_or(outs), false);
        input_gradients = placements(o, "grad_in_placements", "gradient of input", input_count, true);
        output_gradients = placements(o, "grad_out_placements", "gradient of output", outputs.size(), true);
        collectives = reader_.collectives(o.get<std::string>("collectives", ""));
        backward_collectives = reader_.collectives(o.get<std::string>("backward_collectives", ""));
        for (auto const* list : {&collectives, &backward_collectives})
            for (auto const& c : *list)
                if (c.bytes == 0 && (c.index >= (c.output ? outputs.size() : inputs.size()) || (c.gradient && list == &collectives)))
                    throw reader_.fail("a collective names a tensor that it does not have", "use in<i> and out<i> counted from 0");
    }
    std::vector<region_placements> inputs, outputs, input_gradients, output_gradients;
    std::vector<region_collective> collectives, backward_collectives;

    region_reader const& reader() const { return reader_; }

    /// Throws unknown_axis for a named axis that the mesh does not have.
    void require_axes(device_mesh const& mesh) const {
        auto const require = [&](axis_pattern const& a, std::string const& where) {
            if (a.optional) return;
            for (auto const& m : mesh.axes())
                if (m.name == a.name) return;
            throw error(error_code::unknown_axis, reader_.subject() + ", axis '" + a.name + "'",
                        "mesh " + mesh.text() + " has no axis of that name; " + where + " names it",
                        "name the mesh's axes so, or write '" + a.name + "?' for an axis that a mesh may lack");
        };
        for (auto const* list : {&inputs, &outputs, &input_gradients, &output_gradients})
            for (auto const& t : *list)
                for (auto const& [a, p] : t.axes) require(a, t.which);
        for (auto const* list : {&collectives, &backward_collectives})
            for (auto const& c : *list) require(c.axis, "a collective");
    }
    /// Throws bad_region where the tensor lacks the dim of a shard, mesh_does_not_divide where the axis does not divide it.
    void require_fit(placement p, tensor_meta const& local, std::string const& which, axis_context const& a) const {
        if (!p.is_shard()) return;
        if (p.dim >= local.rank())
            throw reader_.fail(which + " " + shape_text(local.sizes) + " has no dim " + std::to_string(p.dim) + " to cut on axis '" +
                                   a.name() + "'",
                               "declare a dim that it has");
        if (local.sizes[p.dim] % a.size() != 0 || local.sizes[p.dim] == 0)
            throw error(error_code::mesh_does_not_divide, reader_.subject() + ", " + which,
                        "axis '" + a.name() + "' of mesh " + a.mesh->text() + " does not divide dim " + std::to_string(p.dim) +
                            ", of which the axes outside it leave " + shape_text(local.sizes),
                        "choose a batch or mesh whose axes divide it, or declare another placement");
    }
    placement input_on(std::size_t i, std::string const& axis) const { return inputs[i].on(axis).value_or(placement::replicate()); }
    placement output_on(std::size_t i, std::string const& axis) const { return outputs[i].on(axis).value_or(placement::replicate()); }

    placement gradient_of_output(std::size_t o, std::string const& axis) const {
        if (auto const declared = declared_on(output_gradients, o, axis)) return *declared;
        auto const p = output_on(o, axis);
        return transposed(p, outputs[o].which, axis).value_or(placement::replicate());
    }
    placement gradient_of_input(std::size_t i, std::string const& axis) const {
        if (auto const declared = declared_on(input_gradients, i, axis)) return *declared;
        auto const p = input_on(i, axis);
        if (auto const q = transposed(p, inputs[i].which, axis)) return *q;
        bool shared = false;  // does every rank see all contributions?
        for (std::size_t j = 0; j < inputs.size(); ++j) shared = shared || (j != i && !input_on(j, axis).is_replicate());
        for (std::size_t o = 0; o < outputs.size(); ++o) shared = shared || !output_on(o, axis).is_replicate();
        return shared ? placement::partial() : placement::replicate();
    }

private:
    region_reader reader_;

    std::vector<region_placements> placements(op const& o, char const* argument, std::string const& what, std::size_t count,
                                              bool may_lack) const {
        auto const texts = o.get<std::string>(argument, "");
        std::vector<region_placements> list;
        if (texts.empty() && (may_lack || count == 0)) return list;
        auto const parts = split_text(texts, ';');
        if (parts.size() != count)
            throw reader_.fail("it declares placements of " + std::to_string(parts.size()) + " tensors as " + argument + ", and has " +
                                   std::to_string(count),
                               "give one text per tensor");
        for (std::size_t i = 0; i < parts.size(); ++i) list.emplace_back(reader_, what + " " + std::to_string(i), parts[i]);
        return list;
    }
    static std::optional<placement> declared_on(std::vector<region_placements> const& list, std::size_t i, std::string const& axis) {
        return i < list.size() ? list[i].on(axis) : std::nullopt;
    }
    /// A gradient's placement where that of the tensor alone says it; nothing for Replicate.
    std::optional<placement> transposed(placement p, std::string const& which, std::string const& axis) const {
        if (p.is_shard()) return p;
        if (p.is_replicate()) return std::nullopt;
        if (p.reduce != reduction::sum)
            throw reader_.fail("the gradient of " + which + ", " + to_string(p) + " on axis '" + axis + "', cannot be derived",
                               "declare its placement");
        return placement::replicate();
    }
};

/// Adds the priced collectives of one axis. `find`: (output?, index) of the tensor among the op's ports, or nothing.
template <class Find>
void add_inner(region_collective const& c, axis_context const& a, axis_row& row, Find find) {
    if (c.axis.name != a.name()) return;
    using found = std::optional<std::pair<bool, std::size_t>>;
    found const port = c.bytes > 0 ? found(std::pair(true, std::size_t{0})) : find(c);
    if (!port) return;
    std::int64_t const times = c.ring ? a.size() - 1 : c.times;
    for (std::int64_t i = 0; i < times; ++i)
        row.inner.push_back({c.kind, reduction::sum, port->first, static_cast<std::uint32_t>(port->second), c.scale, c.bytes});
}

}  // namespace detail

namespace rules {

inline void region_rule(op_query const& q, axis_context const& a, row_list& rows) {
    cantle::detail::region_declaration const d(*q.operation, q.operands.size(), q.outputs.size());
    d.require_axes(*a.mesh);
    axis_row row;
    for (std::size_t i = 0; i < q.operands.size(); ++i) {
        row.operands.push_back(d.input_on(i, a.name()));
        d.require_fit(row.operands.back(), q.operands[i], d.inputs[i].which, a);
    }
    for (std::size_t i = 0; i < q.outputs.size(); ++i) {
        row.outputs.push_back(d.output_on(i, a.name()));
        d.require_fit(row.outputs.back(), q.outputs[i], d.outputs[i].which, a);
    }
    for (auto const& c : d.collectives)
        cantle::detail::add_inner(c, a, row, [](auto const& what) { return std::optional(std::pair(what.output, what.index)); });
    rows.only(std::move(row));
}

inline void region_backward_rule(op_query const& q, axis_context const& a, row_list& rows) {
    auto const grad_of = q.operation->get<std::vector<std::int64_t>>("grad_of", {});
    auto const gradient_of = q.operation->get<std::vector<std::int64_t>>("gradient_of", {});
    cantle::detail::region_declaration const d(*q.operation, q.operands.size() - std::min(q.operands.size(), grad_of.size()), std::nullopt);
    d.require_axes(*a.mesh);
    auto const check = [&](std::vector<std::int64_t> const& which, std::size_t count) {
        for (auto i : which)
            if (i < 0 || static_cast<std::size_t>(i) >= count)
                throw d.reader().fail("its backward names tensor " + std::to_string(i) + ", which it does not have", "count from 0");
    };
    check(grad_of, d.outputs.size());
    check(gradient_of, d.inputs.size());
    if (gradient_of.size() != q.outputs.size()) throw d.reader().fail("its backward has another number of gradients than it names", "");
    axis_row row;
    for (std::size_t i = 0; i < grad_of.size(); ++i) {
        row.operands.push_back(d.gradient_of_output(static_cast<std::size_t>(grad_of[i]), a.name()));
        d.require_fit(row.operands.back(), q.operands[i], "gradient of output " + std::to_string(grad_of[i]), a);
    }
    for (std::size_t i = 0; i < d.inputs.size(); ++i) {
        row.operands.push_back(d.input_on(i, a.name()));
        d.require_fit(row.operands.back(), q.operands[grad_of.size() + i], d.inputs[i].which, a);
    }
    for (std::size_t i = 0; i < gradient_of.size(); ++i) {
        row.outputs.push_back(d.gradient_of_input(static_cast<std::size_t>(gradient_of[i]), a.name()));
        d.require_fit(row.outputs.back(), q.outputs[i], "gradient of input " + std::to_string(gradient_of[i]), a);
    }
    auto const position = [](std::vector<std::int64_t> const& list, std::size_t i) -> std::optional<std::size_t> {
        auto const at = std::find(list.begin(), list.end(), static_cast<std::int64_t>(i));
        return at == list.end() ? std::nullopt : std::optional(static_cast<std::size_t>(at - list.begin()));
    };
    using port = std::optional<std::pair<bool, std::size_t>>;
    auto const gradient_port = [&](cantle::detail::region_collective const& c) -> port {
        auto const at = c.output ? position(grad_of, c.index) : position(gradient_of, c.index);
        return at ? port(std::pair(!c.output, *at)) : std::nullopt;
    };
    // An output has the size of its gradient, which is the one that is here.
    auto const own_port = [&](cantle::detail::region_collective const& c) -> port {
        if (c.gradient || c.output) return gradient_port(c);
        return port(std::pair(false, grad_of.size() + c.index));
    };
    if (d.backward_collectives.empty()) {
        for (auto const& c : d.collectives) cantle::detail::add_inner(c, a, row, own_port);
        for (auto c = d.collectives.rbegin(); c != d.collectives.rend(); ++c) {
            if (c->bytes > 0) continue;
            auto turned = *c;
            if (c->kind == collective_kind::all_gather) turned.kind = collective_kind::reduce_scatter;
            if (c->kind == collective_kind::reduce_scatter) turned.kind = collective_kind::all_gather;
            cantle::detail::add_inner(turned, a, row, gradient_port);
        }
    } else {
        for (auto const& c : d.backward_collectives) cantle::detail::add_inner(c, a, row, own_port);
    }
    rows.only(std::move(row));
}

inline void add_region_rules(rule_registry& r) {
    r.add_for_named_axes(std::string(region_op_name), region_rule);
    r.add_for_named_axes(std::string(region_backward_op_name), region_backward_rule);
}

}  // namespace rules

}  // namespace cantle
