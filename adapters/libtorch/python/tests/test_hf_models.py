# SPDX-License-Identifier: BSL-1.0
"""Hugging Face models through the door, small: the captured graph, run on one rank, is the model's own loss and gradients."""
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(os.environ["CANTLE_BIN_DIR"]) / "cantle_python"))
import torch
import hf_capture
from hf_models import MODELS

# Few layers and narrow, odd where the model is odd. A key of no model's configuration would be refused.
SMALL = {
    "bloom-560m": [("hidden_size", 48), ("n_layer", 2), ("n_head", 3), ("vocab_size", 101)],
    "stablelm-2-1.6b": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("num_key_value_heads", 4),
                        ("intermediate_size", 96), ("vocab_size", 101)],
    "phi-1": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("intermediate_size", 96), ("vocab_size", 101)],
    "gpt-neo-2.7b": [("hidden_size", 48), ("num_heads", 3), ("window_size", 4), ("vocab_size", 101)],
    "falcon-7b": [("hidden_size", 80), ("num_hidden_layers", 2), ("num_attention_heads", 5), ("vocab_size", 101)],
    "pythia-160m": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("intermediate_size", 96),
                    ("vocab_size", 101)],
    "distilbert": [("dim", 48), ("n_layers", 2), ("n_heads", 3), ("hidden_dim", 80), ("vocab_size", 101)],
    "bert-base": [("hidden_size", 48), ("num_hidden_layers", 2), ("num_attention_heads", 3), ("intermediate_size", 80),
                  ("vocab_size", 101)],
    "roberta-base": [("hidden_size", 48), ("num_hidden_layers", 2), ("num_attention_heads", 3), ("intermediate_size", 80),
                     ("vocab_size", 101)],
    "gpt2": [("n_embd", 48), ("n_layer", 2), ("n_head", 3), ("vocab_size", 101)],
    "t5-small": [("d_model", 48), ("d_kv", 16), ("d_ff", 80), ("num_layers", 2), ("num_decoder_layers", 2), ("num_heads", 3),
                 ("vocab_size", 101)],
    "gpt-j-6b": [("n_embd", 64), ("n_layer", 2), ("n_head", 2), ("rotary_dim", 16), ("vocab_size", 101)],
    "opt-1.3b": [("hidden_size", 48), ("num_hidden_layers", 2), ("num_attention_heads", 3), ("ffn_dim", 80),
                 ("word_embed_proj_dim", 48), ("vocab_size", 101)],
    "qwen2-1.5b": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("num_key_value_heads", 2),
                   ("intermediate_size", 96), ("vocab_size", 101)],
    "mistral-7b": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("num_key_value_heads", 2),
                   ("intermediate_size", 96), ("vocab_size", 101), ("sliding_window", 5)],
    "mixtral": [("hidden_size", 64), ("num_hidden_layers", 2), ("num_attention_heads", 4), ("num_key_value_heads", 2),
                ("intermediate_size", 96), ("vocab_size", 101), ("num_local_experts", 4)],
}
# Parameters of the models at full size, ties once, as they are known for the published weights (RoBERTa: with its default of two token
# types; published weights have one).
PARAMETERS = {
    "bloom-560m": 559_214_592, "bloom-7b1": 7_069_016_064, "stablelm-2-1.6b": 1_644_515_328, "phi-1": 1_418_270_720,
    "phi-2": 2_779_683_840, "gpt-neo-2.7b": 2_651_307_520, "falcon-7b": 6_921_720_704, "pythia-6.9b": 6_857_302_016,
    "pythia-160m": 162_322_944, "distilbert": 66_985_530, "bert-base": 109_514_298, "roberta-base": 124_698_201,
    "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-xl": 1_557_611_200, "t5-small": 60_506_624, "t5-base": 222_903_552,
    "gpt-j-6b": 6_050_882_784, "opt-1.3b": 1_315_758_080, "qwen2-1.5b": 1_543_714_304, "mistral-7b": 7_241_732_096,
}
BATCH, SEQUENCE = 2, 12
torch.set_num_threads(1)  # tiny tensors: more threads only wait for each other


def small(name, dtype=torch.float32):
    entry = MODELS[name]
    config, _ = hf_capture.configure(entry, SMALL[name], SEQUENCE)
    return entry, config, hf_capture.capture(hf_capture.build(entry, config, dtype), entry, BATCH, SEQUENCE)


def nodes_of(graph):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        graph.write(str(path))
        text = path.read_text()
    return text, json.loads(text)["nodes"]


def on_cpu_histogram():
    """Mixture-of-experts code counts integers, for which CPUs have no kernel; on CPU transformers itself counts floats instead."""
    histc = torch.histc
    return hf_capture.replaced(torch, "histc", lambda x, **options: histc(x.float(), **options))


class HfModelsTest(unittest.TestCase):
    def check_replay(self, name):
        with on_cpu_histogram():
            entry, config, graph = small(name)
        torch.manual_seed(20240517)
        model = hf_capture.build(entry, config, torch.float32, "cpu")
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * 0.2)
        ids = [torch.randint(0, 101, (BATCH, SEQUENCE)) for _ in hf_capture.input_names(entry)]
        target = torch.randint(0, 101, (BATCH, SEQUENCE))
        loss = hf_capture.loss_of(model, entry, ids, target)
        loss.backward()
        sources = dict(model.named_parameters()) | dict(model.named_buffers()) | {"target": target}
        sources |= dict(zip(hf_capture.input_names(entry), ids))
        for form in ("captured", "canonical"):
            if form == "canonical":
                graph.canonicalize()
            graph.validate()
            sinks = graph.replay({key: value.detach() for key, value in sources.items()})
            expected = {"loss": loss} | {f"{key}.grad": p.grad for key, p in model.named_parameters() if p.grad is not None}
            self.assertEqual(sorted(sinks), sorted(expected))
            for key, value in expected.items():
                value = value.detach()
                scale = value.abs().max().item()
                worst = (sinks[key] - value).abs().max().item()
                self.assertLessEqual(worst, 2e-5 * scale + 1e-9, f"{name} {form} {key}: {worst} of {scale}")

    def test_a_capture_has_the_same_bytes_every_time(self):
        self.assertEqual(nodes_of(small("gpt2")[2])[0], nodes_of(small("gpt2")[2])[0])

    def test_tied_weights_are_one_parameter_with_all_its_names(self):
        names = {"gpt2": ["transformer.wte.weight", "lm_head.weight"],
                 "t5-small": ["shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"]}
        for name, tied in names.items():
            nodes = nodes_of(small(name)[2])[1]
            owners = [n for n in nodes if n.get("role") == "parameter" and set(tied) & {n["name"], *n.get("also_named", [])}]
            self.assertEqual(len(owners), 1, name)
            self.assertEqual([owners[0]["name"], *owners[0]["also_named"]], tied)
            gradients = [n["name"] for n in nodes if n.get("role") == "gradient" and n["of"] == owners[0]["id"]]
            self.assertEqual(gradients, [tied[0] + ".grad"])

    def test_ops_forward_and_backward_know_their_module(self):
        nodes = nodes_of(small("t5-small")[2])[1]
        for phase in ("forward", "backward"):
            paths = {n.get("module") for n in nodes if n.get("phase", "forward") == phase and n.get("role") is None}
            for wanted in ("encoder.block.0.layer.0.SelfAttention", "decoder.block.1.layer.1.EncDecAttention.q",
                           "decoder.block.1.layer.2.DenseReluDense.wi", "decoder.final_layer_norm"):
                self.assertIn(wanted, paths, phase)

    def test_flattened_linears_of_gpt2_keep_batch_and_sequence_apart(self):
        # Conv1D writes view [B*S, K], addmm, view back; canonical form has linear over [B, S, K] (case E1).
        graph = small("gpt2")[2]
        graph.canonicalize()
        nodes = nodes_of(graph)[1]
        linears = [n for n in nodes if n["op"].startswith(("aten::linear", "cantle::linear_grad_input"))]
        self.assertEqual(len(linears), 2 * (2 * 4 + 1))
        for n in linears:
            self.assertTrue(n["out"][0].startswith(f"float32[{BATCH},{SEQUENCE},"), n)
        self.assertFalse([n for n in nodes if n["op"].startswith(("aten::addmm", "aten::mm"))])

    def test_multi_query_attention_stays_whole_with_one_key_head(self):
        nodes = nodes_of(small("falcon-7b")[2])[1]
        attention = [n for n in nodes if n["op"] == "cantle::sdpa"]
        self.assertEqual(len(attention), 2)
        for n in attention:
            key = nodes[n["in"][1]]["out"][0]
            self.assertTrue(key.startswith(f"float32[{BATCH},1,{SEQUENCE},16]"), key)

    def test_a_list_as_index_keeps_its_numbers(self):
        nodes = nodes_of(small("falcon-7b")[2])[1]
        self.assertIn([-2.0], [n.get("data") for n in nodes if n.get("role") == "constant"])

    def test_no_dropout_is_left(self):
        for name in ("gpt2", "bert-base", "t5-small"):
            self.assertFalse([n["op"] for n in nodes_of(small(name)[2])[1] if "dropout" in n["op"] or "bernoulli" in n["op"]])

    def test_logits_with_a_tangent(self):
        entry = MODELS["gpt2"]
        config, _ = hf_capture.configure(entry, SMALL["gpt2"], SEQUENCE)
        graph = hf_capture.capture(hf_capture.build(entry, config, torch.float32), entry, BATCH, SEQUENCE, "table3")
        roles = {n.get("role") for n in nodes_of(graph)[1]}
        self.assertTrue({"output", "tangent"} <= roles and not roles & {"loss", "target"}, roles)

    def test_full_sizes_have_the_known_number_of_parameters(self):
        self.assertEqual(set(PARAMETERS), set(MODELS) - {"mixtral"})
        for name, count in PARAMETERS.items():
            entry = MODELS[name]
            model = hf_capture.build(entry, hf_capture.configure(entry, [], entry.sequence)[0], torch.bfloat16)
            self.assertEqual(sum(p.numel() for p in model.parameters()), count, name)

    def test_learned_positions_grow_with_the_sequence(self):
        for name, rows in (("gpt2", 2000), ("roberta-base", 2002)):
            config, _ = hf_capture.configure(MODELS[name], [], 2000)
            self.assertEqual(getattr(config, MODELS[name].positions), rows)

    def test_ops_are_those_of_our_own_gpt2(self):
        # The same GPT-2 twice: transformers' (weights [in, out], gelu whole as in ours) and examples/models/gpt2.cpp.
        entry = dataclasses.replace(MODELS["gpt2"], config={"activation_function": "gelu_pytorch_tanh"})
        config, _ = hf_capture.configure(entry, SMALL["gpt2"], SEQUENCE)
        ours = hf_capture.capture(hf_capture.build(entry, config, torch.float32), entry, BATCH, SEQUENCE)
        ours.canonicalize()
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/graph.json"
            subprocess.run([os.environ["CANTLE"], "capture", "gpt2", "--batch", str(BATCH), "--seq", str(SEQUENCE), "--precision", "fp32",
                            "--set", "dim=48", "--set", "layers=2", "--set", "heads=3", "--set", "vocab=101", "-o", path],
                           check=True, stderr=subprocess.DEVNULL)
            theirs = json.loads(pathlib.Path(path).read_text())["nodes"]
        count = [collections.Counter(n["op"].split("/")[0] for n in nodes) for nodes in (nodes_of(ours)[1], theirs)]
        differ = {op: (count[0][op], count[1][op]) for op in {*count[0], *count[1]} if count[0][op] != count[1][op]}
        positions = {"aten::arange": (1, 0), "aten::add.Scalar": (1, 0), "aten::unsqueeze": (1, 0), "cantle::buffer": (0, 1)}
        self.assertEqual(differ.pop("aten::t"), (8, 0))  # a transpose in front of each linear with a weight [in, out]
        self.assertEqual({op: n for op, n in differ.items() if op != "aten::slice.Tensor"}, positions)

    def test_every_kind_of_model_is_tried(self):
        kinds = {entry.model_class for entry in MODELS.values()}
        self.assertEqual(kinds, {MODELS[name].model_class for name in SMALL})


for model_name in SMALL:
    def test(self, name=model_name):
        self.check_replay(name)
    test.__doc__ = f"replay of hf:{model_name} gives the model's own loss and gradients"
    setattr(HfModelsTest, "test_replay_" + model_name.replace("-", "_").replace(".", "_"), test)


if __name__ == "__main__":
    unittest.main()
