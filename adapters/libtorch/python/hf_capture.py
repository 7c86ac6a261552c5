# SPDX-License-Identifier: BSL-1.0
"""Builds a Hugging Face model on meta from its configuration and captures it through cantle_door."""
import contextlib
import os

os.environ["HF_HUB_OFFLINE"] = "1"       # a configuration needs no hub, and nothing may wait for one

import torch
import cantle_door


class UnknownSize(Exception):
    """--set names what the configuration does not have as a whole number."""

    def __init__(self, key, known):
        super().__init__(key)
        self.key, self.known = key, known


def configure(entry, overrides, sequence):
    """(configuration with every dropout 0 and no cache, names of its sizes): that of the entry, with the given sizes in place."""
    import transformers

    transformers.logging.set_verbosity_error()  # errors come as exceptions; remarks about token ids are not for a capture
    values = dict(entry.config)
    config_class = getattr(transformers, entry.config_class)
    config = config_class(**values, use_cache=False)
    no_sizes = {"chunk_size_feed_forward", "pretraining_tp"}
    sizes = [key for key, value in config.to_dict().items()
             if type(value) is int and not key.endswith("token_id") and key not in no_sizes]
    for key, value in overrides:
        if key not in sizes:
            raise UnknownSize(key, sizes)
        values[key] = value
    if entry.positions:
        values[entry.positions] = max(values.get(entry.positions, getattr(config, entry.positions)), sequence + entry.reserved_positions)
    silent = {key: 0.0 for key, value in config.to_dict().items() if "drop" in key and type(value) in (int, float)}
    return config_class(**{**values, **silent}, use_cache=False), sizes


def build(entry, config, dtype, device="meta"):
    """The model in training mode, with the attention that transformers would take by itself: scaled_dot_product_attention where the class
    supports it, else the class's own."""
    import transformers

    model_class = getattr(transformers, entry.model_class)
    with torch.device(device):
        model = model_class._from_config(config, dtype=dtype, attn_implementation="sdpa" if model_class._supports_sdpa else "eager")
    return model.train()


def input_names(entry):
    return ["input_ids", "decoder_input_ids"] if entry.decoder else ["input_ids"]


def logits_of(model, entry, inputs):
    return model(**dict(zip(input_names(entry), inputs)), return_dict=True).logits


def loss_of(model, entry, inputs, target):
    """Mean cross-entropy, as cantle's own models have it: the target is what the logits are compared with, shifted already."""
    return torch.nn.functional.cross_entropy(logits_of(model, entry, inputs).float().flatten(0, -2), target.flatten())


def capture(model, entry, batch, sequence, recipe="train"):
    """The graph of forward, loss and backward. Recipe table3 ends at the logits, with a tangent for them."""
    train = recipe == "train"

    def tokens():
        return torch.empty((batch, sequence), dtype=torch.long, device="meta")

    def run(inputs, targets):
        return loss_of(model, entry, inputs, targets[0]) if train else logits_of(model, entry, inputs)

    return capture_module(model, [(name, tokens()) for name in input_names(entry)], [("target", tokens())] if train else [], run, not train)


def capture_module(model, inputs, targets, run, tangent=False):
    """The graph of run(inputs, targets), which calls the torch.nn.Module `model`."""
    with numbers_kept_on_meta(), nothing_packed(), module_paths():
        return cantle_door.capture(parameters=list(model.named_parameters(remove_duplicate=False)),
                                   buffers=list(model.named_buffers(remove_duplicate=False)), inputs=inputs, targets=targets, run=run,
                                   modules=[(id(module), path) for path, module in model.named_modules()], tangent=tangent)


@contextlib.contextmanager
def module_paths():
    """Tells the recorder which module's forward runs, through PyTorch's hooks for all modules."""
    hooks = torch.nn.modules.module
    enter = hooks.register_module_forward_pre_hook(lambda module, _: cantle_door.enter_module(id(module)))
    leave = hooks.register_module_forward_hook(lambda *_: cantle_door.leave_module(), always_call=True)
    try:
        yield
    finally:
        enter.remove()
        leave.remove()


@contextlib.contextmanager
def replaced(owner, name, value):
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


@contextlib.contextmanager
def numbers_kept_on_meta():
    """PyTorch drops the numbers of torch.tensor([...], device="meta") and of x[..., [0, 1]] for a meta x. Both go over the CPU here, so
    that the recorder sees them as constants."""
    make, index = torch.tensor, torch.Tensor.__getitem__

    def tensor(data, *, device=None, **options):
        made = make(data, **options)
        return made if device is None else made.to(device)

    def on_cpu(key):
        return make(key) if isinstance(key, list) and key and all(type(i) is int for i in key) else key

    def getitem(self, key):
        return index(self, tuple(map(on_cpu, key)) if isinstance(key, tuple) else on_cpu(key))

    with replaced(torch, "tensor", tensor), replaced(torch.Tensor, "__getitem__", getitem):
        yield


def nothing_packed():
    """transformers reads position ids to find packed sequences. The samples of a captured batch are whole sequences: none are packed."""
    from transformers import masking_utils
    return replaced(masking_utils, "find_packed_sequence_indices", lambda position_ids: None)
