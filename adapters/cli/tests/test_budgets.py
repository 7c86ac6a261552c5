# SPDX-License-Identifier: BSL-1.0
"""`cantle plan --budget`, from outside."""
import json
import unittest

import test_cli


class Budgets(test_cli.CliTest):
    def plan(self, *arguments):
        return json.loads(self.done("plan", "graph.json", "--mesh", "2x4", "--parameters", "free", "--json", *arguments))

    def test_a_plan_keeps_its_budgets_and_shows_what_they_cost(self):
        free = self.plan()
        self.assertNotIn("budgets", free)
        most = free["memory"]["parameters_global"]
        report = self.plan("--budget", f"parameters={most // 8}", "--budget", "optimizer=1GiB", "--optimizer-factor", "4",
                           "-o", "plan.json")
        self.assertEqual(report["memory"]["parameters_local"], most // 8)
        parameters, optimizer = report["budgets"]
        self.assertEqual((parameters["name"], parameters["unit"], parameters["limit"]), ("parameters", "bytes", most // 8))
        self.assertEqual(parameters["use"], most // 8)
        self.assertEqual((optimizer["limit"], optimizer["use"], optimizer["multiplier"]), (2**30, most // 2, 0))
        self.assertGreaterEqual(report["objective"], free["objective"])
        self.assertLessEqual(report["bound"], report["objective"])
        self.assertIn("budget: optimizer at most 1073741824 bytes (1.07 GB) per GPU, 4 per byte of parameter", report["constraints"])
        self.assertNotEqual(report["hashes"]["options"], free["hashes"]["options"])
        shown = json.loads(self.done("show", "plan.json", "--graph", "graph.json", "--json"))
        self.assertEqual(shown["budgets"], report["budgets"])
        self.assertIn("optimizer", self.done("show", "plan.json").split("budgets (per GPU")[1])

    def test_sizes_are_read_in_decimal_and_binary_units(self):
        for text, limit in [("40GB", 40e9), ("512MiB", 512 * 2**20), ("7e9", 7e9), ("8TB", 8e12)]:
            self.assertEqual(self.plan("--budget", "saved_activations=" + text)["budgets"][0]["limit"], limit)
        self.refused_plan(501, ["budget 'parameters' of 1500 bytes", "the least that one can reach is"], "graph.json", "--mesh", "2x4",
                          "--parameters", "free", "--budget", "parameters=1.5kB")
        self.assertAlmostEqual(self.plan("--budget", "parameter_ratio=0.5")["budgets"][0]["limit"], 0.5)

    def test_what_is_no_budget_is_refused(self):
        for text, words in [("parameters", "--budget 'parameters'"), ("parametrs=1GB", "budget 'parametrs'"),
                            ("parameters=1gb", "'1gb' is no size"), ("parameters=-1", "'-1' is no size"), ("parameters=", "NAME=SIZE"),
                            ("parameter_ratio=1GB", "'1GB' is no number")]:
            self.refused_plan(701, [words], "graph.json", "--mesh", "2x4", "--budget", text)
        self.refused_plan(701, ["budget 'parameters'", "given twice"], "graph.json", "--mesh", "2x4", "--budget", "parameters=1GB",
                          "--budget", "parameters=2GB")
        self.refused_plan(701, ["--optimizer-factor"], "graph.json", "--mesh", "2x4", "--budget", "optimizer=1GB",
                          "--optimizer-factor", "0")


if __name__ == "__main__":
    unittest.main()
