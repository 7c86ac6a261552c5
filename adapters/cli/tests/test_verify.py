# SPDX-License-Identifier: BSL-1.0
"""`cantle verify` from outside: its report, its exit status and the line of every refusal."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["CANTLE"]
BIN = pathlib.Path(os.environ["CANTLE_BIN_DIR"])
LLAMA = ["llama3-8b", "--set", "layers=2", "--batch", "16", "--seq", "2048"]
GPT2 = ["hf:gpt2", "--set", "n_layer=2", "--batch", "16", "--seq", "1024"]


@unittest.skipUnless((BIN / "cantle-libtorch").exists(), "this build has no LibTorch")
class VerifyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def cantle(self, *arguments, **environment):
        return subprocess.run([PROGRAM, *arguments], cwd=self.path, text=True, capture_output=True, timeout=300,
                              env={**os.environ, **environment})

    def planned(self, model, *mesh):
        for step in (["capture", *model, "-o", "g.json"], ["plan", "g.json", "--mesh", *mesh, "-o", "p.json"]):
            result = self.cantle(*step)
            self.assertEqual(result.returncode, 0, result.stderr)

    def verified(self, *arguments, status=0):
        result = self.cantle("verify", "p.json", "g.json", *arguments)
        self.assertEqual((result.returncode, result.stderr), (status, ""), result.stderr)
        return result.stdout

    def refused(self, number, parts, *arguments, **environment):
        result = self.cantle("verify", *arguments, **environment)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, rf"^cantle error {number}: .*\n$")
        for part in parts:
            self.assertIn(part, result.stderr)

    def test_a_plan_runs_and_every_gradient_is_compared(self):
        self.planned(LLAMA, "4x8", "--names", "dp,tp")
        text = self.verified("--ranks", "4")
        self.assertIn("verify llama3-8b: plan of mesh 4x8 (dp, tp), run on 4 thread ranks as 2x2 (dp, tp)", text)
        self.assertIn("layers.*.attention.wq.weight.grad", text)
        self.assertIn("equal: 21 gradients, tolerance 1.00e-09 relative", text)
        report = json.loads(self.verified("--ranks", "2", "--json"))
        self.assertEqual((report["format"], report["version"], report["passed"], report["ranks"]), ("cantle-verify", 1, True, 2))
        self.assertEqual(report["mesh"], {"planned": "4x8 (dp, tp)", "run": "1x2 (dp, tp)"})
        self.assertEqual(report["instance"]["sizes"]["layers"], 2)
        self.assertEqual([s["role"] for s in report["sinks"]], ["loss"] + 21 * ["gradient"])
        self.assertTrue(all(c["planned"] == c["ran"] > 0 for c in report["collectives"]))
        # What rounding alone differs by is no match for a tolerance of nothing: status 1, and the report all the same.
        self.assertIn("NOT EQUAL", self.verified("--tolerance", "0", status=1))
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["g.json", "p.json"])

        self.refused(201, ["3", "1, 2, 4, 8, 16, 32"], "p.json", "g.json", "--ranks", "3")
        self.refused(701, ["--dtype half"], "p.json", "g.json", "--dtype", "half")
        self.refused(701, ["--ranks"], "p.json", "g.json", "--ranks", "many")
        for option, value in [("--ranks", ""), ("--ranks", "99999999999999999999"), ("--seed", "-1"), ("--seed", str(2**64)),
                              ("--tolerance", "inf"), ("--tolerance", "1e400"), ("--tolerance", "")]:
            self.refused(701, [f"{option} '{value}'"], "p.json", "g.json", option, value)
        self.refused(701, ["GRAPH", "see `cantle verify --help`"], "p.json")
        self.refused(101, ["nowhere.json"], "nowhere.json", "g.json")
        self.refused(104, ["g.json"], "g.json", "g.json")
        self.refused(702, ["nowhere", "./dev build"], "p.json", "g.json", CANTLE_LIBTORCH_PROGRAM="nowhere")
        other = self.cantle("capture", "llama3-8b", "--set", "layers=1", "--batch", "16", "--seq", "2048", "-o", "other.json")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.refused(802, ["its graph has the structural hash", "this one"], "p.json", "other.json")

    def test_a_report_that_cannot_be_written_is_an_error_and_a_graph_may_come_from_stdin(self):
        self.planned(["mlp", "--set", "layers=1", "--batch", "16", "--seq", "1"], "2")
        for arguments in [[], ["--json"]]:
            with open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, "verify", "p.json", "g.json", *arguments], cwd=self.path, text=True, stdout=full,
                                        stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, "^cantle error 102: stdout")
        with open(self.path / "g.json") as graph:
            result = subprocess.run([PROGRAM, "verify", "p.json", "-"], cwd=self.path, text=True, stdin=graph, capture_output=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_plan_that_was_edited_is_refused(self):
        self.planned(["mlp", "--set", "layers=2", "--batch", "16", "--seq", "1"], "2x2")
        plan = json.loads((self.path / "p.json").read_text())

        def edited(change):
            copy = json.loads(json.dumps(plan))
            change(copy)
            (self.path / "p.json").write_text(json.dumps(copy))

        edited(lambda p: p["made_from"].update(rules=32 * "0"))
        self.refused(802, ["its rules have the hash 0000"], "p.json", "g.json")
        edited(lambda p: p["nodes"][3].update(name="another"))
        self.refused(802, ['it calls vertex 3 "another"'], "p.json", "g.json")
        edited(lambda p: next(x for x in p["paths"] if x["steps"])["steps"][0].update(before=1))
        self.refused(803, ["priced are 1 to"], "p.json", "g.json")

    @unittest.skipUnless((BIN / "cantle_python").exists(), "this build has no door for Python models")
    def test_a_model_of_hugging_face_is_captured_again_through_the_door(self):
        self.planned(GPT2, "8")
        report = json.loads(self.verified("--ranks", "2", "--json"))
        self.assertTrue(report["passed"])
        self.assertEqual(report["instance"]["sizes"]["n_layer"], 2)
        self.assertEqual(report["instance"]["sizes"]["vocab_size"] % 2, 1)  # as odd as 50257
        self.refused(702, ["no-python"], "p.json", "g.json", CANTLE_PYTHON="/no-python")


if __name__ == "__main__":
    unittest.main()
