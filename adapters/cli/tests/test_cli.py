# SPDX-License-Identifier: BSL-1.0
"""The program `cantle` from outside: what it prints, its exit status, the files it leaves. The program is $CANTLE (or $CANTLE_PROGRAM)."""
import json
import os
import pathlib
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("CANTLE_PROGRAM") or os.environ.get("CANTLE")


def small_graph():
    """x [32, 64, 512] -> layers.0, layers.1: linear w -> relu -> sum -> loss, with both gradients."""
    ops = [{"key": f"cantle::{role}"} for role in ("parameter", "input", "constant", "output")]
    ops += [
        {"key": "aten::linear", "args": [["input", {"tensor": 0}], ["weight", {"tensor": 1}], ["bias", None]]},
        {"key": "aten::relu", "args": [["self", {"tensor": 0}]]},
        {"key": "aten::sum", "args": [["self", {"tensor": 0}], ["dtype", None]]},
        {"key": "aten::expand", "args": [["self", {"tensor": 0}], ["size", [32, 64, 512]], ["implicit", False]]},
        {"key": "aten::threshold_backward", "args": [["grad_output", {"tensor": 0}], ["self", {"tensor": 1}], ["threshold", 0]]},
        {"key": "cantle::linear_grad_input", "args": [["grad", {"tensor": 0}], ["weight", {"tensor": 1}]]},
        {"key": "cantle::linear_grad_weight", "args": [["grad", {"tensor": 0}], ["input", {"tensor": 1}]]}]
    big, weight, scalar = ["bfloat16[32,64,512]"], ["bfloat16[512,512]"], ["bfloat16[]"]
    nodes = []

    def add(name, op, operands, out, **more):
        nodes.append({"id": len(nodes), "name": name, "op": op, **({"in": operands} if operands else {}), "out": out, **more})
        return len(nodes) - 1

    h = add("x", "cantle::input", [], big, role="input")
    weights, inputs, activations = [], [], []
    for i in range(2):
        module = f"layers.{i}"
        weights.append(add(f"{module}.w", "cantle::parameter", [], weight, role="parameter", module=module))
        inputs.append(h)
        y = add(f"{module}/linear", "aten::linear", [h, weights[i]], big, module=module)
        h = add(f"{module}/relu", "aten::relu", [y], big, module=module)
        activations.append(h)
    total = add("sum", "aten::sum", [h], scalar)
    add("loss", "cantle::output", [total], scalar, role="loss")
    one = add("ones", "cantle::constant", [], scalar, role="constant", data=[1.0])
    g = add("expand", "aten::expand", [one], ["bfloat16[32,64,512]{0,0,0}"], phase="backward")
    for i in (1, 0):
        more = {"module": f"layers.{i}", "phase": "backward"}
        g = add(f"layers.{i}/relu_backward", "aten::threshold_backward", [g, activations[i]], big, **more)
        dw = add(f"layers.{i}/grad_weight", "cantle::linear_grad_weight", [g, inputs[i]], weight, **more)
        add(f"layers.{i}.w.grad", "cantle::output", [dw], weight, role="gradient", phase="backward", of=weights[i])
        if i:
            g = add(f"layers.{i}/grad_input", "cantle::linear_grad_input", [g, weights[i]], big, **more)
    origin = {"model": "small", "recipe": "train", "precision": "bf16", "batch": 32, "sequence": 64, "config": []}
    return {"format": "cantle-graph", "version": 1, "origin": origin, "ops": ops, "nodes": nodes}


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.graph = self.path / "graph.json"
        self.graph.write_text(json.dumps(small_graph()))

    def cantle(self, *arguments, **more):
        more.setdefault("timeout", 120)
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.path, text=True, capture_output=True, **more)

    def done(self, *arguments, **more):
        result = self.cantle(*arguments, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")  # progress is for terminals
        return result.stdout

    def refused(self, number, parts, *arguments, **more):
        """Exit status 2; one line that has the number, the things named and a remedy; no file that was not there before."""
        before = sorted(self.path.rglob("*"))
        result = self.cantle(*arguments, **more)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith(f"cantle error {number}: "), result.stderr)
        self.assertIn(". Remedy: ", result.stderr)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(sorted(self.path.rglob("*")), before)

    def refused_plan(self, number, parts, *arguments):
        self.refused(number, parts, "plan", *arguments, "-o", "plan.json", "--svg", "plan.svg")

    def refused_graph(self, number, parts, graph, *arguments):
        bad = self.path / "bad.json"
        bad.write_text(graph if isinstance(graph, str) else json.dumps(graph))
        self.refused_plan(number, parts, "bad.json", "--mesh", "4x8", *arguments)


class BadInput(CliTest):
    def test_a_missing_file_is_named(self):
        self.refused_plan(101, ["none.json", "does not exist"], "none.json", "--mesh", "4x8")
        self.refused(101, ["none.json"], "show", "none.json")
        self.refused(101, ["none.json"], "graph", "none.json")

    def test_broken_json_says_where(self):
        text = json.dumps(small_graph())
        self.refused_graph(103, ["bad.json", "at byte"], text[: len(text) // 2])
        self.refused_graph(103, ["bad.json"], "")

    def test_another_format_is_refused(self):
        self.refused_graph(104, ["bad.json", "not a cantle graph"], "{}")
        self.refused(104, ["graph.json", "not a cantle plan"], "show", self.graph)

    def test_a_missing_field_is_named_with_its_node(self):
        graph = small_graph()
        del graph["nodes"][3]["out"]
        self.refused_graph(105, ["layers.0/relu", "out"], graph)

    def test_a_cycle_is_named(self):
        graph = small_graph()
        graph["nodes"][2]["in"] = [3, 1]  # linear reads the relu that reads it
        self.refused_graph(301, ["layers.0/"], graph)

    def test_a_dangling_tensor_is_named(self):
        graph = small_graph()
        graph["nodes"][3]["in"] = [99]
        self.refused_graph(302, ["layers.0/relu", "99"], graph)

    def test_a_mesh_that_does_not_parse(self):
        for mesh in ("4x", "x", "4*8", "-1", "4x0"):
            with self.subTest(mesh=mesh):
                self.refused_plan(201, [], self.graph, f"--mesh={mesh}")
        self.refused_plan(202, ["1 names for 2 axes"], self.graph, "--mesh", "4x8", "--names", "dp")

    def test_a_mesh_that_does_not_divide_names_tensor_and_mesh(self):
        self.refused_plan(205, ["'x'", "3x8"], self.graph, "--mesh", "3x8")

    def test_an_op_without_a_rule_is_named(self):
        graph = small_graph()
        graph["ops"].append({"key": "other::frobnicate", "args": [["self", {"tensor": 0}]]})
        graph["nodes"][3]["op"] = "other::frobnicate"
        self.refused_graph(401, ["other::frobnicate"], graph)

    def test_an_unknown_cluster_lists_those_known(self):
        self.refused_plan(204, ["h1000", "h100, h200"], self.graph, "--mesh", "4x8", "--cluster", "h1000")

    def test_a_constraint_that_nothing_satisfies(self):
        self.refused_plan(501, ["layers.1/relu", "S0,P"], self.graph, "--mesh", "4x8", "--pin", "layers.1/relu=S0,P")
        # A parameter and its gradient lie alike; these two pins contradict each other.
        self.refused_plan(501, ["layers.1.w"], self.graph, "--mesh", "4x8", "--pin", "layers.1.w=S0,S1", "--pin", "layers.1.w.grad=R,R")

    def test_constraints_that_name_nothing_there(self):
        self.refused_plan(502, ["layers.9.w"], self.graph, "--mesh", "4x8", "--pin", "layers.9.w=R,R")
        self.refused_plan(206, ["S0"], self.graph, "--mesh", "4x8", "--inputs", "S0")
        self.refused_plan(203, ["pp", "dp, tp"], self.graph, "--mesh", "4x8", "--names", "dp,tp", "--replica-axes", "pp")

    def test_options_that_are_wrong(self):
        for arguments in (["--bogus"], ["--gap", "many"], ["--gap", "2"], ["--max-sweeps", "-3"], ["--tie-break", "-1"],
                          ["--parameters", "half"], ["--pin", "w"], ["--cost-set", "speed=1"], ["--cost-set", "compute_efficiency=no"]):
            with self.subTest(arguments=arguments):
                self.refused_plan(701, [], self.graph, "--mesh", "4x8", *arguments)
        self.refused(701, ["--mesh"], "plan", self.graph)
        self.refused(701, ["bogus"], "bogus")
        self.refused(701, [], )
        self.refused(701, ["--svg", "--graph"], "show", "plan.json", "--svg", "plan.svg")

    def test_a_file_that_cannot_be_written_is_refused_before_planning(self):
        plan = ["plan", self.graph, "--mesh", "4x8"]
        self.refused(102, ["none/plan.json"], *plan, "-o", "none/plan.json", "--svg", "plan.svg")
        self.refused(102, ["none/plan.svg"], *plan, "-o", "plan.json", "--svg", "none/plan.svg")
        self.refused(102, ["folder"], *plan, "-o", self.path)
        self.refused(701, ["same.json"], *plan, "-o", "same.json", "--svg", "same.json")

    def test_a_failed_run_leaves_old_files_alone(self):
        (self.path / "plan.json").write_text("old")
        result = self.cantle("plan", self.graph, "--mesh", "3x8", "-o", "plan.json")
        self.assertEqual(result.returncode, 2)
        self.assertEqual((self.path / "plan.json").read_text(), "old")

    def test_an_output_that_cannot_take_its_text_leaves_no_other(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        (self.path / "old.json").write_text("old")
        plan = ["plan", self.graph, "--mesh", "4x8"]
        self.refused(102, ["/dev/full"], *plan, "-o", "plan.json", "--svg", "/dev/full")
        self.refused(102, ["/dev/full"], *plan, "-o", "/dev/full", "--svg", "plan.svg")
        before = sorted(self.path.rglob("*"))
        for arguments in (["-o", "plan.json", "--svg", "plan.svg"], ["-o", "old.json"], ["--json", "-o", "plan.json"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                result = subprocess.run([PROGRAM, *map(str, plan), *arguments], cwd=self.path, stdout=full, stderr=subprocess.PIPE,
                                        text=True, timeout=120)
                self.assertEqual(result.returncode, 2)
                self.assertTrue(result.stderr.startswith("cantle error 102: stdout: "), result.stderr)
                self.assertEqual(sorted(self.path.rglob("*")), before)
                self.assertEqual((self.path / "old.json").read_text(), "old")

    def test_what_a_command_reads_is_not_written_over(self):
        text = self.graph.read_bytes()
        (self.path / "link").symlink_to("graph.json")
        os.link(self.graph, self.path / "second")
        for name in ("graph.json", "./graph.json", "link", "second"):
            self.refused(701, ["--output", "reads it"], "plan", self.graph, "--mesh", "4x8", "-o", name)
            self.refused(701, ["--svg", "reads it"], "plan", "link", "--mesh", "4x8", "--svg", name)
        self.done("plan", self.graph, "--mesh", "4x8", "-o", "plan.json")
        self.refused(701, ["--svg", "reads it"], "show", "plan.json", "--graph", "graph.json", "--svg", "plan.json")
        self.refused(701, ["--svg", "reads it"], "show", "plan.json", "--graph", "graph.json", "--svg", "link")
        self.assertEqual(self.graph.read_bytes(), text)

    def test_names_of_outputs_that_are_none(self):
        plan = ["plan", self.graph, "--mesh", "4x8"]
        for option in ("-o", "--svg"):
            self.refused(701, ["''", "empty"], *plan, option, "")
            self.refused(701, ["'-'", "/dev/stdout"], *plan, option, "-")
        self.refused(102, ["'/proc/foo'"], *plan, "-o", "/proc/foo")

    def test_a_link_to_a_file_that_is_not_there_yet_stays_a_link(self):
        (self.path / "link").symlink_to("behind.json")
        self.refused(701, ["two outputs"], "plan", self.graph, "--mesh", "4x8", "-o", "link", "--svg", "behind.json")
        self.done("plan", self.graph, "--mesh", "4x8", "-o", "link")
        self.assertTrue((self.path / "link").is_symlink())
        self.assertEqual(json.loads((self.path / "behind.json").read_text())["format"], "cantle-plan")
        (self.path / "a").symlink_to("b")
        (self.path / "b").symlink_to("a")
        self.refused(102, ["circle"], "plan", self.graph, "--mesh", "4x8", "-o", "a")

    def test_a_number_beyond_64_bits_is_not_clamped(self):
        self.refused_plan(701, ["--max-sweeps", "99999999999999999999"], self.graph, "--mesh", "4x8",
                          "--max-sweeps", "99999999999999999999")

    def test_too_little_memory_is_an_error_with_a_number(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))

        graph = small_graph()
        for node in graph["nodes"]:
            node["out"] = [out.replace("512", "4096").replace("32,", "4096,").replace("64,", "4096,") for out in node["out"]]
        for op in graph["ops"]:
            op["args"] = [[name, [4096, 4096, 4096] if name == "size" else value] for name, value in op.get("args", [])]
        self.graph.write_text(json.dumps(graph))
        self.refused(503, ["memory"], "plan", self.graph, "--mesh", "2x2x2x2x2x2x2", "-o", "plan.json", preexec_fn=limit)

    def test_a_plan_that_contradicts_itself_is_refused(self):
        self.done("plan", self.graph, "--mesh", "4x8", "-o", "plan.json")
        plan = json.loads((self.path / "plan.json").read_text())
        for field, value in (("bound", 2 * plan["objective"]), ("objective", 3 * plan["objective"])):
            bad = {**plan, field: value}
            bad["gap"] = (bad["objective"] - bad["bound"]) / bad["objective"]
            (self.path / "bad.json").write_text(json.dumps(bad))
            self.refused(105, [f"'{field}'"], "show", "bad.json")
        (self.path / "bad.json").write_text(json.dumps({**plan, "moves": []}))
        self.refused(105, ["'cost."], "show", "bad.json")

    def test_names_in_errors_and_reports_cannot_steer_the_terminal(self):
        graph = small_graph()
        graph["origin"]["model"] = "evil\x1b[2J"
        self.graph.write_text(json.dumps(graph))
        for command in (["graph", self.graph], ["plan", self.graph, "--mesh", "8"]):
            text = self.done(*command)
            self.assertNotIn("\x1b", text)
            self.assertIn("evil\\x1b[2J", text)
        result = self.cantle("show", "no\x1b[2Jfile")
        self.assertEqual(result.returncode, 2)
        self.assertNotIn("\x1b", result.stderr)

    def test_a_foreign_graph_is_refused(self):
        self.done("plan", self.graph, "--mesh", "4x8", "-o", "plan.json")
        graph = small_graph()
        for node in graph["nodes"]:
            node["out"] = [out.replace("32,", "64,") for out in node["out"]]
        for op in graph["ops"]:
            op["args"] = [[name, [64, 64, 512] if name == "size" else value] for name, value in op.get("args", [])]
        (self.path / "other.json").write_text(json.dumps(graph))
        self.refused(802, ["structural hash"], "show", "plan.json", "--graph", "other.json")

    def test_capture_needs_its_program(self):
        environment = {**os.environ, "CANTLE_LIBTORCH_PROGRAM": str(self.path / "nowhere")}
        self.refused(702, ["nowhere", "./dev build"], "capture", "mlp", "--batch", "4", "--seq", "1", "-o", "g.json", env=environment)


class Results(CliTest):
    def test_two_runs_write_the_same_bytes(self):
        for name in ("a", "b"):
            self.done("plan", self.graph, "--mesh", "4x8", "--names", "dp,tp", "-o", f"{name}.json", "--svg", f"{name}.svg")
        for suffix in ("json", "svg"):
            self.assertEqual((self.path / f"a.{suffix}").read_bytes(), (self.path / f"b.{suffix}").read_bytes())
        self.assertEqual([p.name for p in self.path.iterdir() if p.name.startswith(".")], [])

    def test_the_report_shows_objective_bound_defaults_and_projections(self):
        text = self.done("plan", self.graph, "--mesh", "4x8", "--names", "dp,tp")
        for part in ("mesh 4x8 (dp, tp): 32 GPUs of cluster h100", "objective", "bound", "gap", "seconds:",
                     "inputs and targets: S0,R (default)", "parameters: fully_sharded (default)", "clustering: on (default)", "layers.*.w",
                     "collectives", "on each GPU (1/32.00)"):
            self.assertIn(part, text)

    def test_the_report_for_machines_has_the_documented_keys(self):
        report = json.loads(self.done("plan", self.graph, "--mesh", "8", "--json", "-o", "plan.json"))
        page = pathlib.Path(os.environ.get("CANTLE_SOURCE_DIR", self.path)) / "docs/cli.md"
        documented = page.read_text() if page.exists() else None
        for key in ("format", "version", "objective", "bound", "gap", "status", "bounded_problem", "seconds", "peak_bytes", "counts",
                    "cost", "mesh", "cluster", "origin", "constraints", "options", "projections", "collectives", "memory", "hashes"):
            self.assertIn(key, report)
        for key in report:
            self.assertTrue(documented is None or f"| `{key}` |" in documented, key)
        self.assertEqual(report["status"], "optimal")
        self.assertLessEqual(report["gap"], 1e-4)
        self.assertGreater(report["peak_bytes"], 1 << 20)
        self.assertIn("solve", report["seconds"])
        self.assertEqual(report["memory"]["parameters_global"], 2 * 512 * 512 * 2)
        self.assertEqual(report["memory"]["parameters_local"], 2 * 512 * 512 * 2 // 8)
        plan = json.loads((self.path / "plan.json").read_text())
        self.assertEqual(plan["objective"], report["objective"])
        self.assertNotIn("seconds", json.dumps(plan))

    def test_a_written_plan_is_shown_again(self):
        self.done("plan", self.graph, "--mesh", "4x8", "-o", "plan.json", "--svg", "plan.svg")
        self.assertNotIn("projections", self.done("show", "plan.json"))
        text = self.done("show", "plan.json", "--graph", self.graph, "--svg", "again.svg")
        self.assertIn("projections", text)
        self.assertEqual((self.path / "again.svg").read_bytes(), (self.path / "plan.svg").read_bytes())
        shown = json.loads(self.done("show", "plan.json", "--json"))
        self.assertEqual(shown["gap"], json.loads((self.path / "plan.json").read_text())["gap"])

    def test_a_graph_may_come_through_a_pipe(self):
        self.assertEqual(self.done("graph", "-", input=self.graph.read_text()), self.done("graph", self.graph))

    def test_a_polished_plan_says_that_its_bound_is_of_the_unclustered_problem(self):
        clustered, free, polished = (
            json.loads(self.done("plan", self.graph, "--mesh", "4x8", "--json", "-o", "plan.json", *more))
            for more in ([], ["--no-clustering"], ["--polish"]))
        self.assertTrue(clustered["bounded_problem"].startswith("clustered: "))
        self.assertTrue(polished["bounded_problem"].startswith("unclustered: "))
        self.assertNotIn("polish", clustered)
        self.assertEqual(polished["polish"]["clustered_objective"], clustered["objective"])
        self.assertAlmostEqual(polished["objective"], free["objective"], places=6)
        self.assertGreaterEqual(polished["gap"], 0)
        self.assertIn("polish", polished["seconds"])
        self.assertIn("unclustered: every vertex decides for itself, polished", self.done("show", "plan.json"))
        text = self.done("plan", self.graph, "--mesh", "4x8", "--polish")
        for part in ("polish: on", "clustered it was ", "polished: "):
            self.assertIn(part, text)
        self.refused_plan(701, ["--polish", "--no-clustering"], self.graph, "--mesh", "4x8", "--polish", "--no-clustering")

    def test_a_pinned_copy_lies_as_told_and_the_others_do_not(self):
        report = json.loads(self.done("plan", self.graph, "--mesh", "8", "--json", "--pin", "layers.1.w=R"))
        stored = sorted((p["forward"]["weight_stored"], p["copies"]) for p in report["projections"])
        self.assertEqual([s for s in stored if s[0] == "R"], [("R", 1)])
        self.assertEqual(sum(n for _, n in stored), 2)

    def test_options_reach_the_plan(self):
        def planned(*more):
            return json.loads(self.done("plan", self.graph, "--mesh", "4x8", "--json", *more))

        base = planned()["hashes"]
        for arguments in (["--parameters", "replicated"], ["--parameters", "free"], ["--replica-axes", "a0"], ["--inputs", "S1,R"],
                          ["--no-clustering"], ["--tie-break", "0"], ["--cost-set", "compute_efficiency=0.5"], ["--cluster", "a100"]):
            with self.subTest(arguments=arguments):
                other = planned(*arguments)["hashes"]
                self.assertNotEqual((other["options"], other["cost"]), (base["options"], base["cost"]))
        replicated = planned("--parameters", "replicated")
        self.assertEqual(replicated["memory"]["parameters_local"], replicated["memory"]["parameters_global"])

    def test_graphs_of_recipe_table3_get_the_published_outputs(self):
        graph = small_graph()
        graph["origin"]["recipe"] = "table3"
        logits = {"id": 3, "name": "logits", "op": "cantle::output", "in": [2], "out": ["bfloat16[32,64,512]"], "role": "output"}
        graph["nodes"] = graph["nodes"][:3] + [logits]
        self.graph.write_text(json.dumps(graph))
        self.assertIn("outputs: S0,S2", self.done("plan", self.graph, "--mesh", "4x8"))
        self.assertIn("outputs: S0, as recipe table3 has it (default)", self.done("plan", self.graph, "--mesh", "8"))
        self.assertIn("outputs: R,R", self.done("plan", self.graph, "--mesh", "4x8", "--outputs", "R,R"))

    def test_help_version_and_clusters(self):
        self.assertRegex(self.done("--version"), r"^cantle \d+\.\d+\.\d+\n$")
        text = self.done("plan", "--help")
        for option in ("--mesh", "--names", "--cluster", "--svg", "--json", "--inputs", "--outputs", "--parameters", "--replica-axes",
                       "--pin", "--no-clustering", "--gap", "--max-sweeps", "--tie-break", "--cost-set", "default"):
            self.assertIn(option, text)
        clusters = self.done("clusters")
        for name in ("h100", "h200", "a100", "b200", "GB/s"):
            self.assertIn(name, clusters)

    def test_capture_passes_its_arguments_on(self):
        program = self.path / "stand-in"
        program.write_text("#!/bin/sh\necho \"$@\"\nexit 3\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        environment = {**os.environ, "CANTLE_LIBTORCH_PROGRAM": str(program)}
        result = self.cantle("capture", "mlp", "--set", "dim=8 9", "-o", "g.json", env=environment)
        self.assertEqual((result.returncode, result.stdout), (3, "capture mlp --set dim=8 9 -o g.json\n"))

    def test_a_reader_that_leaves_early_is_no_fault(self):
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run([PROGRAM, "plan", str(self.graph), "--mesh", "4x8", "-o", "plan.json"], cwd=self.path, stdout=write,
                                stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(write)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(p.name for p in self.path.iterdir()), ["graph.json", "plan.json"])

    def test_check_rules_proves_one_op(self):
        result = self.cantle("check-rules", "--op", "aten::mm", "--json")
        if result.returncode == 2 and "libtorch" in result.stderr.lower():
            self.skipTest("built without LibTorch")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("aten::mm", json.dumps(json.loads(result.stdout)))

    def test_check_rules_refuses_an_unknown_op(self):
        result = self.cantle("check-rules", "--op", "aten::mmm")
        if "libtorch" in result.stderr.lower():
            self.skipTest("built without LibTorch")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("cantle error 701: "), result.stderr)
        self.assertIn("aten::mm", result.stderr)

    def test_a_full_disk_leaves_nothing(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w") as full:
            result = subprocess.run([PROGRAM, "clusters"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("cantle error 102: "), result.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        PROGRAM = os.path.abspath(sys.argv.pop(1))
    if not PROGRAM:
        sys.exit("set CANTLE to the program, or give its path")
    unittest.main()
