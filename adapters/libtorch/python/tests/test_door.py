# SPDX-License-Identifier: BSL-1.0
"""What the door does with a model that cannot be captured, and that nothing of a capture is left behind in the process."""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["CANTLE_BIN_DIR"]) / "cantle_python"))
import torch
import cantle_door
import hf_capture


class Inner(torch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.act = act

    def forward(self, x):
        return self.act(self.linear(x))


class Outer(torch.nn.Module):
    def __init__(self, act):
        super().__init__()
        self.inner = Inner(act)

    def forward(self, x):
        return self.inner(x).sum()


def capture(act, x=None):
    with torch.device("meta"):
        model = Outer(act)
        x = torch.empty(3, 4) if x is None else x
    return hf_capture.capture_module(model, [("x", x)], [], lambda inputs, targets: model(inputs[0]))


class DoorTest(unittest.TestCase):
    def refused(self, number, parts, act):
        with self.assertRaises((cantle_door.Error, RuntimeError)) as caught:
            capture(act)
        text = str(caught.exception)
        for part in (f"cantle error {number}", *parts):
            self.assertIn(part, text)

    def test_a_model_that_reads_a_value_is_refused_with_op_and_module(self):
        for act in (lambda y: y * y.sum().item(), lambda y: y if y.sum() > 0 else -y, lambda y: y * float(y.max()),
                    lambda y: y * y.sum().tolist(), lambda y: y * y.sum().cpu().numpy()):
            self.refused(601, ["in inner", "reads a value"], act)

    def test_a_shape_that_depends_on_values_is_refused(self):
        self.refused(601, ["aten::nonzero", "in inner"], lambda y: y[y.nonzero()[:, 0]])
        self.refused(601, ["aten::index.Tensor", "in inner"], lambda y: y[y > 0])

    def test_a_tensor_from_outside_is_refused_by_name_of_op_and_module(self):
        outside = torch.empty(4, device="meta")
        self.refused(604, ["aten::add.Tensor", "in inner", "neither parameter, buffer nor input"], lambda y: y + outside)

    def test_a_python_error_of_the_model_arrives_as_it_is(self):
        def act(y):
            raise KeyError("no such thing")
        with self.assertRaises(KeyError):
            capture(act)

    def test_nothing_is_left_behind(self):
        make, index = torch.tensor, torch.Tensor.__getitem__
        for act in (torch.tanh, lambda y: y.sum().item()):
            try:
                capture(act)
            except RuntimeError:
                pass
            self.assertIs(torch.tensor, make)
            self.assertIs(torch.Tensor.__getitem__, index)
            self.assertFalse(torch.nn.modules.module._global_forward_pre_hooks)
            self.assertEqual((torch.ones(2, 2) @ torch.ones(2, 2)).sum().item(), 8)
        self.assertEqual(len(capture(torch.tanh)), len(capture(torch.tanh)))

    def test_numbers_of_a_tensor_made_on_meta_are_kept(self):
        graph = capture(lambda y: y * torch.tensor([1.0, 2.0, 3.0, 4.0], device=y.device))
        model = Outer(None)
        values = {"inner.linear.weight": model.inner.linear.weight.detach(), "inner.linear.bias": model.inner.linear.bias.detach(),
                  "x": torch.randn(3, 4)}
        expected = (torch.nn.functional.linear(values["x"], values["inner.linear.weight"], values["inner.linear.bias"])
                    * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum()
        self.assertTrue(torch.equal(graph.replay(values)["loss"], expected))

    def test_a_model_that_is_not_on_meta_is_refused(self):
        model = Outer(torch.tanh)
        with self.assertRaisesRegex(cantle_door.Error, "cantle error 604: parameter 'inner.linear.weight': it is on cpu"):
            hf_capture.capture_module(model, [("x", torch.empty(3, 4, device="meta"))], [], lambda inputs, _: model(inputs[0]))


if __name__ == "__main__":
    unittest.main()
