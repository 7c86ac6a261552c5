// SPDX-License-Identifier: BSL-1.0
// expect: a cost model needs: double collective(cantle::collective_call const&) const;
#include <cantle/planner.hpp>
#include <cantle/rules/standard_rules.hpp>

struct forgot_const {
    double compute(cantle::op_query const&) const { return 1; }
    double collective(cantle::collective_call const&) { return 1; }
    void feed(cantle::stable_hasher&) const {}
};

int main() { cantle::plan(cantle::training_graph{}, cantle::device_mesh::parse("2"), cantle::standard_rules(), forgot_const{}); }
