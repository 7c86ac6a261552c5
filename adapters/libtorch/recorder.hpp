// SPDX-License-Identifier: BSL-1.0
#pragma once
// Writes down op calls as graph nodes. Internal to capture.
#include <adapters/libtorch/dispatch_hook.hpp>
#include <cantle/graph/training_graph.hpp>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cantle::libtorch {

class recorder final : public dispatch_hook {
public:
    /// `modules`: address -> path.
    explicit recorder(std::vector<std::pair<void const*, std::string>> const& modules);

    /// Adds a source. A tensor that is known already (a tie) gives its vertex, with the name added to also_named.
    vertex add_source(node_role role, std::string name, at::Tensor const& tensor);
    /// Adds a sink of the value that this tensor is.
    vertex add_sink(node_role role, std::string name, at::Tensor const& tensor, std::optional<vertex> of);
    /// The sink that a tangent belongs to.
    void set_of(vertex v, vertex of) { graph_[v].of = of; }
    /// What is recorded from here on is backward.
    void begin_backward() { phase_ = phase::backward; }
    /// Ends the recording: links, dead code removed, names. The recorder is empty afterwards.
    training_graph finish();

    void call(c10::OperatorHandle const& handle, c10::DispatchKeySet below, torch::jit::Stack& stack) override;

private:
    /// One known way to look at a storage.
    struct known_tensor {
        at::ScalarType type;
        std::int64_t offset;
        std::vector<std::int64_t> sizes, strides;
        value_ref value;
    };

    /// What the rest of the recorder has to know of an op; found out once per op.
    struct op_facts {
        std::string name, base_name;
        bool writes = false, reads_values = false, random = false;
        std::optional<std::string> scalar_form;  // "aten::mul.Scalar" of aten::mul.Tensor
    };
    /// An op called while one autograd node was the newest: the one it was made for, or one that needed none or that functionalization
    /// called on the side.
    struct forward_candidate {
        vertex node;
        std::string const* base_name;
        bool recorded;  // false: it gave back a known tensor
    };
    std::optional<vertex> forward_of_current() const;
    op_facts const& facts_of(c10::OperatorHandle const& handle);

    std::optional<value_ref> find(at::Tensor const& tensor) const;
    void remember(at::Tensor const& tensor, value_ref value);
    value_ref operand(at::Tensor const& tensor, op_facts const& facts);
    vertex add_constant(at::Tensor const& tensor, op_facts const& facts);
    void record(c10::OperatorHandle const& handle, op_facts const& facts, std::vector<c10::IValue> const& arguments,
                std::vector<at::Tensor> const& results);
    bool record_as_slices(op_facts const& facts, graph_node const& node, std::vector<at::Tensor> const& results);
    vertex push(graph_node node);
    void fold_kept_dims(graph_node& node, std::vector<at::Tensor> const& results) const;
    std::string module_of(graph_node const& node) const;
    std::string where(op_facts const& facts) const;

    void link_orphans();
    void remove_dead();
    void give_names();

    training_graph graph_;
    std::vector<bool> keeps_;                       // by vertex: never dead code (sources by role, random ops)
    std::vector<std::string> base_names_;           // by vertex: "mul" of aten::mul.Tensor
    std::unordered_map<c10::StorageImpl const*, std::vector<known_tensor>> known_;
    std::vector<c10::Storage> alive_;               // an address means something only while its storage lives
    std::unordered_map<std::uint64_t, std::vector<forward_candidate>> forward_of_sequence_;
    std::unordered_map<c10::OperatorName, op_facts> facts_;
    std::map<void const*, std::string> modules_;
    std::uint64_t first_sequence_;  // what autograd would number next when the recording began
    phase phase_ = phase::forward;
    std::size_t constants_ = 0;
};

}  // namespace cantle::libtorch
