# SPDX-License-Identifier: BSL-1.0
"""The Hugging Face models that `cantle capture hf:NAME` knows: class, sizes and the sequence they are usually trained with.

A model is its configuration: no weights and no hub. What is not named has the default of the configuration class.
To add a model: one entry of MODELS."""
from dataclasses import dataclass, field

TRANSFORMERS_VERSION = "5.24.0"        # what ./dev installs


@dataclass(frozen=True)
class Model:
    what: str
    config_class: str                  # names in the package transformers
    model_class: str
    sequence: int                      # tokens that published figures use
    config: dict = field(default_factory=dict)
    positions: str = ""                # attribute that bounds the sequence: learned positions or tables of sines
    reserved_positions: int = 0        # rows of that table that no token takes
    decoder: bool = False              # an encoder-decoder: gets decoder_input_ids as well


def rope(share=1.0, theta=10000.0):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": share}}


def gpt2(what, width, layers, heads):
    return Model(what, "GPT2Config", "GPT2LMHeadModel", 1024, {"n_embd": width, "n_layer": layers, "n_head": heads}, "n_positions")


def bloom(what, width, layers, heads):
    return Model(what, "BloomConfig", "BloomForCausalLM", 4096,
                 {"vocab_size": 250880, "hidden_size": width, "n_layer": layers, "n_head": heads})


def phi(what, width, layers, ffn, share):
    return Model(what, "PhiConfig", "PhiForCausalLM", 4096,
                 {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 32, "intermediate_size": ffn,
                  "vocab_size": 51200, **rope(share)})


def pythia(what, width, layers, heads, ffn, vocab):
    return Model(what, "GPTNeoXConfig", "GPTNeoXForCausalLM", 4096,
                 {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": ffn,
                  "vocab_size": vocab, **rope(0.25)})


def t5(what, width, ffn, layers, heads):
    return Model(what, "T5Config", "T5ForConditionalGeneration", 4096,
                 {"d_model": width, "d_kv": 64, "d_ff": ffn, "num_layers": layers, "num_decoder_layers": layers, "num_heads": heads},
                 decoder=True)


MODELS = {
    "bloom-560m": bloom("BLOOM 560M (alibi)", 1024, 24, 16),
    "bloom-7b1": bloom("BLOOM 7B1 (alibi)", 4096, 30, 32),
    "stablelm-2-1.6b": Model("StableLM 2 1.6B", "StableLmConfig", "StableLmForCausalLM", 4096,
                             {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 32,
                              "intermediate_size": 5632, "vocab_size": 100352, "use_qkv_bias": True, **rope(0.25)}),
    "phi-1": phi("Phi-1", 2048, 24, 8192, 0.5),
    "phi-2": phi("Phi-2", 2560, 32, 10240, 0.4),
    "gpt-neo-2.7b": Model("GPT-Neo 2.7B (global and local attention)", "GPTNeoConfig", "GPTNeoForCausalLM", 2048,
                          {"hidden_size": 2560, "num_layers": 32, "num_heads": 20, "window_size": 256, "vocab_size": 50257,
                           "attention_types": [[["global", "local"], 16]]}, "max_position_embeddings"),
    "falcon-7b": Model("Falcon 7B (71 heads, multi-query)", "FalconConfig", "FalconForCausalLM", 4096,
                       {"hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71, "vocab_size": 65024,
                        "multi_query": True, "parallel_attn": True, "bias": False, "alibi": False, "new_decoder_architecture": False}),
    "pythia-6.9b": pythia("Pythia 6.9B (GPT-NeoX)", 4096, 32, 32, 16384, 50432),
    "pythia-160m": pythia("Pythia 160M (GPT-NeoX)", 768, 12, 12, 3072, 50304),
    "distilbert": Model("DistilBERT base, masked language model", "DistilBertConfig", "DistilBertForMaskedLM", 512, {},
                        "max_position_embeddings"),
    "bert-base": Model("BERT base, masked language model", "BertConfig", "BertForMaskedLM", 512, {}, "max_position_embeddings"),
    "roberta-base": Model("RoBERTa base, masked language model", "RobertaConfig", "RobertaForMaskedLM", 512,
                          {"vocab_size": 50265, "max_position_embeddings": 514}, "max_position_embeddings", 2),
    "gpt2": gpt2("GPT-2", 768, 12, 12),
    "gpt2-medium": gpt2("GPT-2 medium", 1024, 24, 16),
    "gpt2-xl": gpt2("GPT-2 XL (25 heads)", 1600, 48, 25),
    "t5-small": t5("T5 small (encoder-decoder)", 512, 2048, 6, 8),
    "t5-base": t5("T5 base (encoder-decoder)", 768, 3072, 12, 12),
    "gpt-j-6b": Model("GPT-J 6B", "GPTJConfig", "GPTJForCausalLM", 2048, {}, "n_positions"),
    "opt-1.3b": Model("OPT 1.3B", "OPTConfig", "OPTForCausalLM", 2048,
                      {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192,
                       "word_embed_proj_dim": 2048}, "max_position_embeddings"),
    "qwen2-1.5b": Model("Qwen2 1.5B (tied)", "Qwen2Config", "Qwen2ForCausalLM", 4096,
                        {"hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
                         "intermediate_size": 8960, "vocab_size": 151936, "tie_word_embeddings": True, **rope(1.0, 1000000.0)}),
    "mistral-7b": Model("Mistral 7B", "MistralConfig", "MistralForCausalLM", 4096),
    "mixtral": Model("Mixtral, reduced to 4 layers", "MixtralConfig", "MixtralForCausalLM", 4096,
                     {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4,
                      "intermediate_size": 3584, "num_local_experts": 8, "num_experts_per_tok": 2}),
}
