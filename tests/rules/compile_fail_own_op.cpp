// SPDX-License-Identifier: BSL-1.0
// expect: an op of one's own needs: std::vector<cantle::tensor_meta> output_metas(cantle::op const&
// expect: an op of one's own needs: cantle::own_example example() const;
#include <cantle/rules/registry.hpp>

struct half_an_op {
    std::string name() const { return "mine::half"; }
    void rows(cantle::op_query const&, std::int64_t, cantle::row_list&) const {}
};

int main() {
    cantle::rule_registry rules;
    rules.add_op(half_an_op{});
}
