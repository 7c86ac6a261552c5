# SPDX-License-Identifier: BSL-1.0
"""`cantle plan --uneven` and `--fallback`, from outside."""
import copy
import json
import unittest

import test_cli


class UnevenAndFallback(test_cli.CliTest):
    def unknown_op(self):
        graph = copy.deepcopy(test_cli.small_graph())
        for op in graph["ops"]:
            if op["key"] == "aten::relu":
                op["key"] = "mine::act"
        for node in graph["nodes"]:
            if node["op"] == "aten::relu":
                node["op"] = "mine::act"
        return graph

    def test_a_batch_that_the_mesh_does_not_divide_is_planned_only_with_uneven_shards(self):
        self.refused_plan(205, ["[32, 64, 512]", "S0"], "graph.json", "--mesh", "3")
        report = json.loads(self.done("plan", "graph.json", "--mesh", "3", "--uneven", "--json", "-o", "plan.json"))
        self.assertIn("shards: uneven ones allowed", report["constraints"])
        self.assertEqual(report["options"]["uneven shards"], {"value": "allowed", "default": False})
        self.done("show", "plan.json", "--graph", "graph.json")

    def test_ops_without_a_rule_are_an_error_with_a_stub_unless_the_fallback_is_asked_for(self):
        (self.path / "unknown.json").write_text(json.dumps(self.unknown_op()))
        self.refused_plan(401, ["mine::act: 2 times", "[32, 64, 512]", "layers.*", 'rules.add("mine::act"'], "unknown.json", "--mesh", "4")
        report = json.loads(self.done("plan", "unknown.json", "--mesh", "4", "--fallback", "replicate", "--json", "-o", "plan.json"))
        self.assertEqual(report["fallback"], [{"op": "mine::act", "count": 2}])
        self.assertTrue(any(c.startswith("fallback replicate: mine::act, 2 times") for c in report["constraints"]))
        self.assertEqual(json.loads((self.path / "plan.json").read_text())["fallback"], [["mine::act", 2]])
        self.assertIn("mine::act, 2 times", self.done("show", "plan.json", "--graph", "unknown.json"))

    def test_without_them_reports_say_so(self):
        report = json.loads(self.done("plan", "graph.json", "--mesh", "4", "--json"))
        self.assertEqual(report["fallback"], [])
        self.assertTrue(report["options"]["uneven shards"]["default"])
        self.assertTrue(report["options"]["ops without a rule"]["default"])

    def test_a_fallback_that_does_not_exist_is_refused(self):
        self.refused_plan(701, ["--fallback 'gather'", "none or replicate"], "graph.json", "--mesh", "4", "--fallback", "gather")


if __name__ == "__main__":
    unittest.main()
