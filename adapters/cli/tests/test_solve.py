# SPDX-License-Identifier: BSL-1.0
"""`cantle solve`, from outside: both formats, compressed or not, and every fault."""
import json
import lzma
import os
import shutil
import subprocess
import unittest

import test_cli

# Three variables on a ring, one pair of labels forbidden on each edge.
RING = {"format": "cantle-factor-graph", "version": 1,
        "variables": [{"name": "x", "costs": [1.0, 0.75]}, {"name": "y", "costs": [0.0, 2.0]}, {"name": "z", "costs": [3.0, 1.0]}],
        "tables": [{"rows": 2, "cols": 2, "costs": [5.0, 1.0, 0.25, None]}],
        "edges": [{"u": 0, "v": 1, "table": 0}, {"u": 1, "v": 2, "table": 0}, {"u": 0, "v": 2, "table": 0}]}
INSTANCE = {"format": "ap-instance-1", "specs": ["R", "S0"],
            "nodes": [{"name": "p", "root": 0, "strat": 0, "compute": 0, "args": [], "edges": []},
                      {"name": "f", "root": 1, "strat": 1, "compute": 1, "args": [0], "edges": [{"t": 7, "out": 0}]},
                      {"name": "c", "root": 1, "strat": 1, "compute": 1, "args": [1], "edges": [{"t": 7, "out": 0}]}],
            "strategy_tables": [{"out": [[0], [1]], "in": [[], []]}, {"out": [[0], [1]], "in": [[0], [1]]}],
            "compute_vectors": [[0, 0], [4, 1]], "redist": {"7": {"src": [0, 1], "dst": [0, 1], "cost": [[0, 10], [3, 0]]}},
            "constraints": {"fixed": [[0, [0]]], "paired": [], "nocomm": [], "same_index": [],
                            "memory": {"params": [], "ratios": [], "low": 0, "high": 0}}, "reference": {}}


def ring_optimum():
    best = None
    for x in range(2):
        for y in range(2):
            for z in range(2):
                t = RING["tables"][0]["costs"]
                pairs = [t[2 * a + b] for a, b in ((x, y), (y, z), (x, z))]
                if None in pairs:
                    continue
                e = sum(v["costs"][l] for v, l in zip(RING["variables"], (x, y, z))) + sum(pairs)
                best = min(best, (e, [x, y, z])) if best else (e, [x, y, z])
    return best


class Solve(test_cli.CliTest):
    def write(self, name, content):
        (self.path / name).write_text(content if isinstance(content, str) else json.dumps(content))
        return name

    def test_a_factor_graph_is_solved_to_the_optimum_of_all_labellings(self):
        energy, labels = ring_optimum()
        self.write("ring.json", RING)
        for solver in ("cantle", "elimination"):
            r = json.loads(self.done("solve", "ring.json", "--json", "--solver", solver))
            self.assertEqual(r["status"], "optimal")
            self.assertAlmostEqual(r["objective"], energy, places=12)
            self.assertEqual(r["solution"], labels)
            self.assertLessEqual(r["bound"], r["objective"])
            self.assertEqual(sorted(r["seconds"]), ["build", "read", "solve", "total", "until_best"])
            self.assertGreater(r["peak_bytes"], 0)
        self.assertIn("optimal", self.done("solve", "ring.json"))

    def test_an_instance_gives_the_strategy_of_every_node_compressed_or_not(self):
        self.write("i.json", INSTANCE)
        (self.path / "i.json.xz").write_bytes(lzma.compress(json.dumps(INSTANCE).encode()))
        plain, packed = (json.loads(self.done("solve", f, "--json", "-o", "s.json")) for f in ("i.json", "i.json.xz"))
        self.assertEqual(plain["objective"], 6.0)  # p is whole; moving it once for 3 + 1 lets both copies compute for 1
        self.assertEqual(plain["solution"], [0, 1, 1])
        self.assertEqual(packed["solution"], plain["solution"])
        self.assertEqual(json.loads((self.path / "s.json").read_text())["solution"], [0, 1, 1])
        self.assertEqual(plain["variables"], 2)
        self.assertEqual(json.loads(self.done("solve", "i.json", "--json", "--unclustered"))["variables"], 3)

    def test_without_a_feasible_labelling_a_minimal_set_of_couplings_is_named(self):
        no = {"rows": 2, "cols": 2, "costs": [None, 1.0, 1.0, None]}
        self.write("odd.json", dict(RING, tables=[no]))
        self.refused(501, ["these 3 couplings", "'x' with 'y'", "'y' with 'z'", "'x' with 'z'"], "solve", "odd.json")
        self.write("fixed.json", dict(INSTANCE, constraints=dict(INSTANCE["constraints"], fixed=[[0, []]])))
        self.refused(501, ["'p'", "no strategy"], "solve", "fixed.json")

    def test_faults_are_numbered_lines_and_leave_no_file(self):
        text = json.dumps(INSTANCE)
        self.write("cut.json", text[:200])
        self.refused(103, ["cut.json", "at byte"], "solve", "cut.json", "-o", "s.json")
        (self.path / "cut.json.xz").write_bytes(lzma.compress(text.encode())[:-20])
        self.refused(104, ["cut.json.xz", "xz stream", "at byte"], "solve", "cut.json.xz", "-o", "s.json")
        broken = json.loads(text)
        broken["nodes"][2]["args"] = [5]
        self.write("index.json", broken)
        self.refused(105, ["index.json", "nodes[2] 'c'", "'args' is 5"], "solve", "index.json", "-o", "s.json")
        self.refused(101, ["none.json"], "solve", "none.json")
        self.write("ring.json", RING)
        self.refused(701, ["--solver 'magic'"], "solve", "ring.json", "--solver", "magic")
        self.refused(701, ["--time-limit"], "solve", "ring.json", "--time-limit", "-1")
        self.refused(701, ["--unclustered"], "solve", "ring.json", "--unclustered")
        self.refused(701, ["--output"], "solve", "ring.json", "-o", "ring.json")
        self.assertFalse((self.path / "s.json").exists())


    def test_highs_and_reduced_solvers_find_the_same_optimum(self):
        energy, labels = ring_optimum()
        self.write("ring.json", RING)
        self.write("i.json", INSTANCE)
        without = "built without HiGHS" in self.cantle("solve", "ring.json", "--solver", "highs").stderr
        if without:
            self.refused(702, ["--solver highs", "highsbox"], "solve", "ring.json", "--solver", "highs")
        for solver in ("elimination",) if without else ("elimination", "highs"):
            for reduce in ([], ["--reduce"]):
                r = json.loads(self.done("solve", "ring.json", "--json", "--solver", solver, *reduce))
                self.assertEqual((r["status"], r["solver"], r["solution"]), ("optimal", solver, labels))
                self.assertAlmostEqual(r["objective"], energy, places=9)
                self.assertAlmostEqual(r["bound"], energy, places=6)
                self.assertEqual(json.loads(self.done("solve", "i.json", "--json", "--solver", solver, *reduce))["solution"], [0, 1, 1])
                no = {"rows": 2, "cols": 2, "costs": [None, 1.0, 1.0, None]}
                self.write("odd.json", dict(RING, tables=[no]))
                self.refused(501, ["these 3 couplings"], "solve", "odd.json", "--solver", solver, *reduce)
        if without:
            self.skipTest("this program was built without HiGHS: ./dev build installs the wheel highsbox")
        self.refused(702, ["/nowhere/libhighs.so"], "solve", "ring.json", "--solver", "highs",
                     env=dict(os.environ, CANTLE_HIGHS_LIBRARY="/nowhere/libhighs.so"))

    def test_given_labels_are_evaluated(self):
        self.write("ring.json", RING)
        self.write("i.json", INSTANCE)

        def evaluated(problem, **given):
            self.write("given.json", given)
            r = json.loads(self.done("solve", problem, "--json", "--evaluate", "given.json"))
            return r["status"], r["objective"]

        self.assertEqual(evaluated("ring.json", labels=[0, 1, 0]), ("allowed", 1 + 2 + 3 + 1 + 0.25 + 5))
        self.assertEqual(evaluated("ring.json", labels=[1, 1, 0]), ("forbidden", None))
        self.assertEqual(evaluated("i.json", solution=[0, 1, 1]), ("allowed", 6.0))
        self.assertEqual(evaluated("i.json", solution=[0, 0, 0]), ("allowed", 8.0))
        self.assertEqual(evaluated("i.json", solution=[1, 1, 1]), ("forbidden", None))  # p is fixed
        self.assertEqual(evaluated("i.json", solution=[0, 0, 1]), ("forbidden", None))  # copies decide together
        self.assertIn("forbidden", self.done("solve", "i.json", "--evaluate", "given.json"))
        self.done("solve", "i.json", "-o", "s.json")
        self.assertEqual(json.loads(self.done("solve", "i.json", "--json", "--evaluate", "s.json"))["objective"], 6.0)
        for bad, part in (({"labels": [0, 1]}, "2 entries, not 3"), ({"labels": [0, 1, 7]}, "label 7 for variable 2"), ({}, "labels")):
            self.write("bad.json", bad)
            self.refused(105, ["bad.json", part] if bad else ["bad.json"], "solve", "ring.json", "--evaluate", "bad.json")
        self.refused(101, ["none.json"], "solve", "ring.json", "--evaluate", "none.json")

    def test_a_problem_is_exported_for_toulbar2_and_as_a_factor_graph(self):
        energy, _ = ring_optimum()
        self.write("ring.json", RING)
        self.assertIn("3 variables, 3 edges; costs to 9 decimals", self.done("solve", "ring.json", "--export", "ring.cfn"))
        network = json.loads((self.path / "ring.cfn").read_text())
        self.assertEqual(network["variables"], {"v0": 2, "v1": 2, "v2": 2})
        self.assertEqual(network["functions"]["e1"]["scope"], ["v1", "v2"])
        self.assertIn("3 variables, 3 edges", self.done("solve", "ring.json", "--export", "copy.json"))
        self.assertAlmostEqual(json.loads(self.done("solve", "copy.json", "--json"))["objective"], energy, places=12)
        self.write("i.json", INSTANCE)
        self.done("solve", "i.json", "--export", "i-graph.json")
        self.assertEqual(json.loads(self.done("solve", "i-graph.json", "--json"))["objective"], 6.0)
        for options, part in ((["--export", "x.uai"], "--export"), (["--export", "x.cfn", "--json"], "--export"),
                              (["--export", "ring.json"], "--export"), (["--export", "x.cfn", "--evaluate", "i.json"], "--export")):
            self.refused(701, [part], "solve", "ring.json", *options)
        if not shutil.which("toulbar2"):
            self.skipTest("toulbar2 is not installed (./dev bench bench_solvers does it): the network was not solved")
        self.write("odd.json", dict(RING, tables=[{"rows": 2, "cols": 2, "costs": [None, -9.0, -7.0, None]}]))
        self.done("solve", "odd.json", "--export", "odd.cfn")
        out = subprocess.run(["toulbar2", "odd.cfn"], cwd=self.path, capture_output=True, text=True).stdout
        self.assertIn("No solution", out)
        out = subprocess.run(["toulbar2", "ring.cfn", "-w=ring.sol"], cwd=self.path, capture_output=True, text=True).stdout
        self.assertAlmostEqual(float(out.split("Optimum: ")[1].split()[0]), energy, places=6)
        self.write("labels.json", {"labels": [int(x) for x in (self.path / "ring.sol").read_text().split()]})
        priced = json.loads(self.done("solve", "ring.json", "--evaluate", "labels.json", "--json"))
        self.assertAlmostEqual(priced["objective"], energy, places=9)


if __name__ == "__main__":
    unittest.main()
