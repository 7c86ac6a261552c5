# SPDX-License-Identifier: BSL-1.0
"""Every check passes on a small clean tree and fails, with the right finding, on each violation planted in it."""
import sys
import tempfile
import unittest
from pathlib import Path

import check_compile_fail
import check_errors
import check_house
import check_layers
import check_snippets

HPP = "// SPDX-License-Identifier: BSL-1.0\n#pragma once\n"
CPP = "// SPDX-License-Identifier: BSL-1.0\n"
CLEAN = {
    "CMakeLists.txt": "# SPDX-License-Identifier: BSL-1.0\n",
    "dev": "#!/usr/bin/env bash\n# SPDX-License-Identifier: BSL-1.0\n",
    "include/cantle/base/error.hpp": HPP + "enum class error_code : int {\n"
                                           "    bad_mesh = 201,  ///< a mesh does not parse\n"
                                           "    bad_axis = 202,  ///< no such axis\n};\n",
    "include/cantle/mesh/layout.hpp": HPP + "#include <cantle/base/error.hpp>\n#include <vector>\n",
    "include/cantle/mrf/trws.hpp": HPP + "#include <boost/graph/adjacency_list.hpp>\n",
    "include/cantle/problem/build_problem.hpp": HPP + "#include <cantle/mrf/trws.hpp>\n#include <cantle/mesh/layout.hpp>\n",
    "include/cantle/planner.hpp": HPP + "#include <cantle/problem/build_problem.hpp>\n",
    "include/cantle/report/table.hpp": HPP + "#include <cantle/planner.hpp>\n",
    "include/cantle/cantle.hpp": HPP + "#include <cantle/report/table.hpp>\n",
    "adapters/cli/main.cpp": CPP + "#include <cantle/cantle.hpp>\n",
    "examples/models/mlp.cpp": CPP + "#include <torch/torch.h>\n",
    "examples/own_graph.cpp": CPP + "int main() {\n    // [answer]\n    int answer = 42;\n    return answer;\n    // [/answer]\n}\n",
    "docs/errors.md": "| code | name | meaning | typical message | remedy |\n|---|---|---|---|---|\n"
                      "| 201 | `bad_mesh` | a mesh does not parse | mesh '4x' | write 4x8 |\n"
                      "| 202 | `bad_axis` | no such axis | axis 'pp' | name one of dp, tp |\n",
    "README.md": "# cantle\n```cpp file=examples/own_graph.cpp region=answer\nint answer = 42;\nreturn answer;\n```\n"
                 "<!-- output of: printf 'one\\ntwo 3.5 ms\\n' -->\n```\none\ntwo 4 ms\n```\n",
}


class tree_case(unittest.TestCase):
    def findings(self, check, changes=None, **options):
        """The findings of check on the clean tree with some files replaced (None: removed)."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {**CLEAN, **(changes or {})}.items():
                if text is not None:
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text)
            found = check(root, **options)
            self.left = {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*") if p.is_file()}
            return found

    def fails(self, check, sentence, changes, **options):
        """Exactly one finding, and it says `sentence`."""
        found = self.findings(check, changes, **options)
        self.assertEqual(len(found), 1, found)
        self.assertIn(sentence, found[0])


class clean_tree(tree_case):
    def test_passes_every_check(self):
        for check in (check_layers.check, check_house.check, check_errors.check, check_snippets.check):
            self.assertEqual(self.findings(check), [])


class layers(tree_case):
    def layer_fails(self, sentence, name, text):
        self.fails(check_layers.check, sentence, {name: text})

    def test_upward_include(self):
        self.layer_fails("mesh may not include mrf", "include/cantle/mesh/path.hpp", HPP + "#include <cantle/mrf/trws.hpp>\n")

    def test_sideways_include(self):
        self.layer_fails("mrf may not include mesh", "include/cantle/mrf/bad.hpp", HPP + "#  include <cantle/mesh/layout.hpp>\n")

    def test_base_includes_nothing_but_itself(self):
        self.layer_fails("base may not include mesh", "include/cantle/base/ids.hpp", HPP + "#include <cantle/mesh/layout.hpp>\n")

    def test_planner_does_not_include_report(self):
        self.fails(check_layers.check, "planner.hpp may not include report",
                   {"include/cantle/planner.hpp": HPP + "#include <cantle/report/table.hpp>\n",
                    "include/cantle/report/table.hpp": HPP})

    def test_nobody_includes_the_umbrella(self):
        self.fails(check_layers.check, "report may not include cantle.hpp",
                   {"include/cantle/report/dot.hpp": HPP + "#include <cantle/cantle.hpp>\n"})

    def test_folder_without_a_row(self):
        self.layer_fails("'extras' has no row", "include/cantle/extras/x.hpp", HPP)

    def test_header_that_does_not_exist(self):
        self.layer_fails("does not exist", "include/cantle/mesh/path.hpp", HPP + "#include <cantle/base/none.hpp>\n")

    def test_quoted_include(self):
        self.layer_fails("write <cantle/", "include/cantle/mesh/path.hpp", HPP + '#include "layout.hpp"\n')

    def test_framework_in_the_library(self):
        self.layer_fails("includes a framework", "include/cantle/mesh/path.hpp", HPP + "#include <ATen/ATen.h>\n")

    def test_framework_in_the_program(self):
        self.layer_fails("does not link LibTorch", "adapters/cli/capture.cpp", CPP + "#include <c10/core/Device.h>\n")

    def test_cycle(self):
        self.fails(check_layers.check, "cycle of includes: cantle/mesh/a.hpp -> cantle/mesh/b.hpp -> cantle/mesh/a.hpp",
                   {"include/cantle/mesh/a.hpp": HPP + "#include <cantle/mesh/b.hpp>\n",
                    "include/cantle/mesh/b.hpp": HPP + "#include <cantle/mesh/a.hpp>\n"})


class house(tree_case):
    def house_fails(self, sentence, name, text):
        self.fails(check_house.check, sentence, {name: text})

    def test_stranger_at_the_top(self):
        self.house_fails("top level", "notes.txt", "x")

    def test_licence_line(self):
        self.house_fails("SPDX", "include/cantle/mesh/a.hpp", "#pragma once\n#pragma once\n")

    def test_licence_line_of_a_script(self):
        self.house_fails("SPDX", "dev", "#!/usr/bin/env bash\nset -e\n")

    def test_pragma_once(self):
        self.house_fails("#pragma once", "include/cantle/mesh/a.hpp", CPP)

    def test_long_file(self):
        self.house_fails("501 lines", "include/cantle/mesh/a.hpp", HPP + "\n" * 499)

    def test_long_line(self):
        self.house_fails("141 columns", "include/cantle/mesh/a.hpp", HPP + "//" + "x" * 139 + "\n")

    def test_vague_name(self):
        self.house_fails("says nothing", "include/cantle/mesh/utils.hpp", HPP)

    def test_camel_case_file(self):
        self.house_fails("snake_case", "include/cantle/mesh/DeviceMesh.hpp", HPP)

    def test_whole_range_library(self):
        self.house_fails("range/v3/all.hpp", "include/cantle/mesh/a.hpp", HPP + "#include <range/v3/all.hpp>\n")

    def test_second_adjacency_list(self):
        self.house_fails("more than one header", "include/cantle/mesh/a.hpp", HPP + "#include <boost/graph/adjacency_list.hpp>\n")

    def test_torch_outside_models(self):
        self.house_fails("only models need it", "adapters/libtorch/tracer.cpp", CPP + "#include <torch/torch.h>\n")

    def test_std_views(self):
        self.house_fails("std::views", "include/cantle/mesh/a.hpp", HPP + "auto x = std::views::iota(0);\n")


class errors(tree_case):
    def page_fails(self, sentence, old, new):
        self.fails(check_errors.check, sentence, {"docs/errors.md": CLEAN["docs/errors.md"].replace(old, new)})

    def test_code_without_a_row(self):
        self.page_fails("no row for 202", "| 202 | `bad_axis` | no such axis | axis 'pp' | name one of dp, tp |\n", "")

    def test_row_without_a_code(self):
        self.page_fails("203 is not in", "| 201 |", "| 203 | `x` | a | b | c |\n| 201 |")

    def test_row_twice(self):
        row = "| 201 | `bad_mesh` | a mesh does not parse | mesh '4x' | write 4x8 |\n"
        self.page_fails("twice", row, row + row)

    def test_another_name(self):
        self.page_fails("is called bad_mesh", "bad_mesh", "worse_mesh")

    def test_another_meaning(self):
        self.page_fails("meaning differs", "no such axis", "whatever")

    def test_empty_cell(self):
        self.page_fails("five filled cells", "write 4x8", "")

    def test_number_used_twice(self):
        text = CLEAN["include/cantle/base/error.hpp"].replace("202", "201")
        found = self.findings(check_errors.check, {"include/cantle/base/error.hpp": text})
        self.assertTrue(any("not unique" in f for f in found), found)


class snippets(tree_case):
    def test_changed_code(self):
        self.fails(check_snippets.check, "differs from", {"README.md": CLEAN["README.md"].replace("= 42", "= 43")})

    def test_block_without_a_file(self):
        self.fails(check_snippets.check, "names the compiled file", {"README.md": "```cpp\nint x;\n```\n"})

    def test_unknown_region(self):
        self.fails(check_snippets.check, "no region 'x'", {"README.md": "```cpp file=examples/own_graph.cpp region=x\n```\n"})

    def test_open_block(self):
        self.fails(check_snippets.check, "never closed", {"docs/a.md": "```\nint x;\n"})

    def test_output_is_compared_only_on_request(self):
        changed = {"README.md": CLEAN["README.md"].replace("one\ntwo 4", "other\ntwo 4")}
        self.assertEqual(self.findings(check_snippets.check, changed), [])
        self.fails(check_snippets.check, "is another one", changed, run=True)
        self.assertEqual(self.findings(check_snippets.check, run=True), [])  # the clean tree: only a time differs

    def test_dots_stand_for_lines(self):
        shown = CLEAN["README.md"].replace("one\ntwo 4 ms\n", "...\ntwo 4 ms\n")
        self.assertEqual(self.findings(check_snippets.check, {"README.md": shown}, run=True), [])

    def test_command_that_fails(self):
        self.fails(check_snippets.check, "ended with status 1", {"docs/a.md": "<!-- output of: false -->\n```\n```\n"}, run=True)

    def test_update_writes_what_is_true(self):
        changed = {"README.md": CLEAN["README.md"].replace("= 42", "= 43").replace("one\n", "other\n")}
        self.assertEqual(self.findings(check_snippets.check, changed, update=True), [])
        self.assertEqual(self.left["README.md"], CLEAN["README.md"].replace("two 4 ms", "two 3.5 ms"))


class compile_fail(unittest.TestCase):
    def finding(self, source, *command):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
            file.write(source)
            file.flush()
            return check_compile_fail.check(file.name, command)

    def test_the_sentence_must_be_said(self):
        says = ("sh", "-c", "echo 'error: a cost model has charge() const' >&2; exit 1")
        self.assertIsNone(self.finding("// expect: charge() const\n", *says))
        self.assertIn("lacks", self.finding("// expect: something else\n", *says))

    def test_the_file_must_not_compile(self):
        self.assertIn("must not", self.finding("// expect: x\n", "true"))

    def test_a_sentence_must_be_promised(self):
        self.assertIn("no line", self.finding("int x;\n", "false"))


if __name__ == "__main__":
    sys.exit(unittest.main())
