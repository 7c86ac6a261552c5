# SPDX-License-Identifier: BSL-1.0
"""`cantle capture hf:NAME` from outside: the file, its origin, the plan of it, and the line of every refusal."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["CANTLE"]
DOOR = pathlib.Path(os.environ["CANTLE_BIN_DIR"]) / "cantle_python"
TINY = ["--set", "n_layer=2", "--set", "n_embd=64", "--set", "n_head=4", "--set", "vocab_size=256", "--batch", "8", "--seq", "16"]


@unittest.skipUnless(DOOR.exists(), "this build has no door for Python models (no LibTorch)")
class CaptureHfTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def cantle(self, *arguments, **environment):
        return subprocess.run([PROGRAM, *arguments], cwd=self.path, text=True, capture_output=True, timeout=300,
                              env={**os.environ, **environment})

    def captured(self, *arguments):
        result = self.cantle("capture", "hf:gpt2", *TINY, "-o", "g.json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"^captured hf:gpt2: built in [\d.]+ s, \d+ nodes in .* canonical form \d+ nodes .*g\.json")
        return json.loads((self.path / "g.json").read_text())

    def refused(self, number, parts, *arguments, **environment):
        result = self.cantle("capture", *arguments, **environment)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, rf"^cantle error {number}: .*\n$")
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(list(self.path.iterdir()), [])

    def test_a_graph_says_where_it_is_from_and_can_be_planned(self):
        graph = self.captured()
        origin = graph["origin"]
        self.assertEqual({key: origin[key] for key in ("model", "recipe", "precision", "batch", "sequence")},
                         {"model": "hf:gpt2", "recipe": "train", "precision": "bf16", "batch": 8, "sequence": 16})
        self.assertEqual(dict(origin["config"]), {"vocab_size": 256, "n_positions": 1024, "n_embd": 64, "n_layer": 2, "n_head": 4})
        inputs = {n["name"]: n["out"] for n in graph["nodes"] if n.get("role") in ("input", "target")}
        self.assertEqual(inputs, {"input_ids": ["int64[8,16]"], "target": ["int64[8,16]"]})
        plan = self.cantle("plan", "g.json", "--mesh", "2x4")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.assertIn("plan of hf:gpt2 (batch 8, sequence 16, bf16, recipe train)", plan.stdout)

    def test_parameters_are_stored_in_fp32_and_cast_or_all_is_fp32(self):
        def types(graph):
            found = [(n.get("role", "op"), n["out"][0].split("[")[0]) for n in graph["nodes"]]
            return {t for role, t in found if role == "parameter"}, {t for role, t in found if role == "op"}
        bf16, fp32 = self.captured(), self.captured("--precision", "fp32", "--recipe", "table3")
        self.assertEqual(types(bf16)[0], {"float32"})
        self.assertIn("bfloat16", types(bf16)[1])
        self.assertEqual(types(fp32)[0], {"float32"})
        self.assertNotIn("bfloat16", types(fp32)[1])

    def test_models_lists_both_kinds(self):
        result = self.cantle("models")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("llama3-8b", "hf:gpt2", "hf:gpt2-medium", "hf:gpt2-xl", "hf:bloom-560m", "hf:bloom-7b1", "hf:stablelm-2-1.6b",
                     "hf:phi-1", "hf:phi-2", "hf:gpt-neo-2.7b", "hf:falcon-7b", "hf:pythia-6.9b", "hf:pythia-160m", "hf:distilbert",
                     "hf:bert-base", "hf:roberta-base", "hf:t5-small", "hf:t5-base", "hf:gpt-j-6b", "hf:opt-1.3b", "hf:qwen2-1.5b",
                     "hf:mistral-7b", "hf:mixtral"):
            self.assertRegex(result.stdout, rf"(?m)^{name} ")

    def test_an_unknown_name_gets_names_that_are_near(self):
        self.refused(603, ["'hf:gtp2'", "hf:gpt2", "cantle models"], "hf:gtp2", "--batch", "8", "-o", "g.json")

    def test_bad_options_are_refused_before_anything_is_built(self):
        here = ["-o", "g.json"]
        self.refused(701, ["--batch", "'0'"], "hf:gpt2", "--batch", "0", *here)
        self.refused(701, ["--batch"], "hf:gpt2", *here)
        self.refused(701, ["--seq", "'many'"], "hf:gpt2", "--batch", "8", "--seq", "many", *here)
        self.refused(701, ["--recipe", "'fast'"], "hf:gpt2", "--batch", "8", "--recipe", "fast", *here)
        self.refused(701, ["--set", "'n_layer'"], "hf:gpt2", "--batch", "8", "--set", "n_layer", *here)
        self.refused(701, ["--layers"], "hf:gpt2", "--batch", "8", "--layers", "2", *here)

    def test_sizes_that_do_not_exist_or_fit_are_refused(self):
        self.refused(701, ["--set layers", "n_layer", "n_embd"], "hf:gpt2", "--batch", "8", "--set", "layers=2", "-o", "g.json")
        self.refused(701, ["hf:gpt2", "divisible"], "hf:gpt2", "--batch", "8", "--set", "n_head=7", "-o", "g.json")

    def test_what_is_missing_is_named_with_its_remedy(self):
        arguments = ["hf:gpt2", "--batch", "8", "-o", "g.json"]
        self.refused(702, ["/nowhere/python", "./dev build"], *arguments, CANTLE_PYTHON="/nowhere/python")
        with tempfile.TemporaryDirectory() as bare:  # an interpreter without torch
            subprocess.run(["python3", "-m", "venv", "--without-pip", bare], check=True)
            self.refused(702, ["package torch", "./dev build"], *arguments, CANTLE_PYTHON=bare + "/bin/python")

    def test_a_folder_that_does_not_exist_is_refused(self):
        self.refused(102, ["nowhere/g.json"], "hf:gpt2", *TINY, "-o", "nowhere/g.json")


if __name__ == "__main__":
    unittest.main()
