// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/property/sample_case.hpp>

#include <adapters/libtorch/op_values.hpp>
#include <adapters/libtorch/oracle.hpp>
#include <adapters/libtorch/replay.hpp>
#include <adapters/libtorch/samples/samples.hpp>

#include <cantle/graph/builder.hpp>
#include <cantle/graph/op_traits.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

namespace cantle::libtorch {
namespace {

/// A sample with the metas of its outputs.
struct known_sample {
    op operation;
    tensor_list operands;
    std::vector<tensor_meta> outputs;
};
std::vector<known_sample> const& known_samples() {
    static auto const all = [] {
        std::vector<known_sample> list;
        for (auto const& s : rule_samples()) {
            if (!s.values_matter || !is_pure(s.operation)) continue;
            // Their literal strides speak of the operand's memory, which ops in front of them change.
            auto const& name = s.operation.name;
            if (name.find("_reshape_alias") != std::string::npos || name.find("as_strided") != std::string::npos) continue;
            try {
                rule_oracle const o(s);
                auto const q = o.query();
                if (!standard_registry().covers(q)) continue;
                list.push_back({s.operation, s.operands, {q.outputs.begin(), q.outputs.end()}});
            } catch (std::exception const&) {
                continue;
            }
        }
        return list;
    }();
    return all;
}

class around {
public:
    explicit around(dice& d) : d_(d) {}

    std::optional<sample_graph> run(known_sample const& s) {
        std::vector<value_ref> operands;
        for (auto const& t : s.operands) operands.push_back(operand(t));
        std::vector<call_argument> arguments;
        for (auto const& a : s.operation.arguments) arguments.push_back({a.name, written(a.value, operands)});
        auto const made = b_.call(s.operation.name, arguments, s.outputs);
        for (std::uint32_t o = 0; o < s.outputs.size(); ++o)
            if (s.outputs[o].defined) sink({made.node, o}, s.outputs[o], "out" + std::to_string(o));
        return sample_graph{b_.build(), std::move(data_)};
    }

private:
    dice& d_;
    graph_builder b_;
    tensor_map data_;

    value_ref input(at::Tensor const& t) {
        auto const name = "x" + std::to_string(data_.size());
        data_[name] = t.detach().contiguous().clone();
        return b_.input(name, t.sizes().vec(), to_meta(t).type);
    }
    /// A value that is `t`.
    value_ref operand(at::Tensor const& t) {
        auto const sizes = t.sizes().vec();
        bool const real = t.is_floating_point();
        shape list = sizes;
        list.insert(list.begin(), 2);
        auto const reduced = [&](at::Tensor const& both, char const* name) {
            auto const x = input(both);
            std::vector<call_argument> a{{"self", x}, {"dim", shape{0}}, {"keepdim", false}};
            if (std::string(name) == "aten::sum.dim_IntList") a.push_back({"dtype", cantle::none});
            return b_.call(name, a, {contiguous_meta(sizes, to_meta(t).type)});
        };
        switch (d_.below(7)) {
            case 0: if (real) return reduced(at::stack({t - 1, at::ones_like(t)}), "aten::sum.dim_IntList"); break;
            case 1: if (real) return reduced(at::stack({t, t - 1}), "aten::amax"); break;
            case 2: if (real) return reduced(at::stack({t + 2, t}), "aten::amin"); break;
            case 3: if (t.dim() > 1) return b_.view(input(t.reshape({-1})), sizes); break;
            case 4:
                if (t.dim() > 1)
                    return b_.call("aten::transpose.int", {{"self", input(t.transpose(0, 1))}, {"dim0", 0}, {"dim1", 1}},
                                   {contiguous_meta(sizes, to_meta(t).type)});
                break;
            default: break;
        }
        return input(t);
    }
    void sink(value_ref v, tensor_meta const& m, std::string const& name) {
        if (m.rank() > 1 && d_.chance(30)) v = b_.view(v, {element_count(m.sizes)});
        else if (m.rank() > 0 && is_floating_point(m.type) && d_.chance(30)) v = b_.sum(v, {0});
        b_.output(v, name);
        if (d_.chance(30)) b_.output(v, name + " again");
    }
    static call_value written(argument_value const& a, std::vector<value_ref> const& operands) {
        if (auto const* s = std::get_if<operand_slot>(&a)) return operands.at(s->index);
        if (auto const* list = std::get_if<operand_slots>(&a)) {
            std::vector<std::optional<value_ref>> refs;
            for (auto i : list->indices) refs.push_back(i < 0 ? std::nullopt : std::optional(operands.at(static_cast<std::size_t>(i))));
            return refs;
        }
        call_value v(cantle::none);
        v.value = a;
        return v;
    }
};

}  // namespace

std::optional<sample_graph> draw_sample_graph(dice& d) {
    auto const& all = known_samples();
    auto const& s = all[d.below(all.size())];
    try {
        auto made = around(d).run(s);
        for (auto const& [name, t] : replay(made->graph, made->data))
            if (t.is_complex()) return std::nullopt;
        return made;
    } catch (std::exception const&) {
        return std::nullopt;
    }
}

}  // namespace cantle::libtorch
