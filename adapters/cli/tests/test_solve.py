# SPDX-License-Identifier: BSL-1.0
"""`cantle solve`, from outside: both formats, compressed or not, and every fault."""
import json
import lzma
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


if __name__ == "__main__":
    unittest.main()
