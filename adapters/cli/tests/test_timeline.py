# SPDX-License-Identifier: BSL-1.0
"""`cantle timeline` and `cantle show --program` from outside, and docs/lowering.md, whose output blocks and picture must be real."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

SOURCES = pathlib.Path(os.environ.get("CANTLE_SOURCE_DIR") or pathlib.Path(__file__).parents[3])
sys.path.insert(0, str(SOURCES / "tests" / "checks"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_snippets  # noqa: E402
from test_cli import PROGRAM, CliTest, small_graph  # noqa: E402


class TimelineTest(CliTest):
    def setUp(self):
        super().setUp()
        self.done("plan", "graph.json", "--mesh", "4x8", "-o", "plan.json")

    def test_one_after_the_other_the_steps_add_up_to_the_objective(self):
        plan = json.loads((self.path / "plan.json").read_text())
        serial = json.loads(self.done("timeline", "plan.json", "graph.json", "--serial", "--json"))
        self.assertTrue(serial["prices_of_plan"])
        self.assertAlmostEqual(serial["step"] + plan["cost"]["tie_break"], plan["objective"], places=6)
        self.assertAlmostEqual(serial["exposed"], serial["collectives"], places=6)
        beside = json.loads(self.done("timeline", "plan.json", "graph.json", "--json"))
        self.assertLessEqual(beside["step"], serial["step"])
        self.assertAlmostEqual(beside["step"], beside["ops"] + beside["exposed"], places=6)
        self.assertAlmostEqual(sum(c["exposed"] for c in beside["by_collective"]), beside["exposed"], places=6)
        self.assertEqual(sum(beside["memory"]["at_peak"].values()), beside["memory"]["peak"])

    def test_the_trace_appears_whole_and_the_same_on_every_run(self):
        text = self.done("timeline", "plan.json", "graph.json", "--rank", "31", "--trace", "trace.json")
        self.assertIn("trace written to trace.json", text)
        first = (self.path / "trace.json").read_bytes()
        events = json.loads(first)["traceEvents"]
        self.assertTrue(all(e["pid"] == 31 for e in events))
        self.assertEqual({e["ph"] for e in events}, {"M", "C", "X"})
        self.done("timeline", "plan.json", "graph.json", "--rank", "31", "--trace", "trace.json")
        self.assertEqual(first, (self.path / "trace.json").read_bytes())

    def test_another_cluster_has_other_prices_and_says_so(self):
        text = self.done("timeline", "plan.json", "graph.json", "--cluster", "a100")
        self.assertIn("the plan was made with others", text)
        self.done("plan", "graph.json", "--mesh", "4x8", "--cluster", "a100", "-o", "plan.json")
        self.assertIn("cluster a100", self.done("timeline", "plan.json", "graph.json"))

    def test_bad_input_is_refused_before_any_file(self):
        other = small_graph()
        other["nodes"].pop()
        (self.path / "other.json").write_text(json.dumps(other))
        trace = ("--trace", "trace.json")
        self.refused(802, ["another graph"], "timeline", "plan.json", "other.json", *trace)
        self.refused(701, ["--rank 32", "0 to 31"], "timeline", "plan.json", "graph.json", "--rank", "32", *trace)
        self.refused(701, ["--rank -1"], "timeline", "plan.json", "graph.json", "--rank=-1", *trace)
        self.refused(204, ["h1000"], "timeline", "plan.json", "graph.json", "--cluster", "h1000", *trace)
        self.refused(701, ["--streams"], "timeline", "plan.json", "graph.json", "--streams", "two", *trace)
        self.refused(701, ["reads it"], "timeline", "plan.json", "graph.json", "--trace", "plan.json")
        self.refused(101, ["none.json"], "timeline", "none.json", "graph.json", *trace)
        self.refused(701, ["--program"], "show", "plan.json", "--program", "0")
        self.refused(701, ["--program 99"], "show", "plan.json", "--graph", "graph.json", "--program", "99")


class LoweringPage(CliTest):
    def test_its_blocks_and_its_picture_are_what_the_program_prints(self):
        lines = (SOURCES / "docs" / "lowering.md").read_text().splitlines()
        compared = 0
        for start, end, _, _, command in check_snippets.blocks(lines):
            if not command:
                continue
            command = command.replace("./dev cantle", PROGRAM).replace("out/", f"{self.path}/").replace("-p out ", "-p . ")
            real = subprocess.run(command, shell=True, cwd=SOURCES, text=True, capture_output=True)
            self.assertEqual(real.returncode, 0, real.stderr)
            self.assertTrue(check_snippets.matches(lines[start + 1:end], real.stdout.splitlines()),
                            f"docs/lowering.md:{start + 1} is stale: python3 tests/checks/check_snippets.py . --update\n{real.stdout}")
            compared += 1
        self.assertEqual(compared, 2)
        self.done("show", "mlp.plan.json", "--graph", SOURCES / "docs/lowering/mlp.graph.json", "--svg", "mlp.svg")
        self.assertEqual((self.path / "mlp.svg").read_text(), (SOURCES / "docs/lowering/mlp.svg").read_text())


del CliTest  # its own tests are test_cli's
if __name__ == "__main__":
    unittest.main()
