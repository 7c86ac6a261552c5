# SPDX-License-Identifier: BSL-1.0
"""Builds a Hugging Face model on meta from its configuration and captures it through cantle_door."""
import contextlib
import os

os.environ["HF_HUB_OFFLINE"] = "1"       # a configuration needs no hub, and nothing may wait for one
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

import torch
import cantle_door


def build(entry, overrides, sequence, precision):
    """(model, integer configuration values): on meta, in training mode, every dropout 0."""
    import transformers

    values = dict(entry.config)
    config_class = getattr(transformers, entry.config_class)
    config = config_class(**values, use_cache=False)
    for key, value in overrides:
        if not isinstance(getattr(config, key, None), int):
            raise KeyError(key)
        values[key] = value
    if entry.positions:
        values[entry.positions] = max(getattr(config, entry.positions), sequence + entry.reserved_positions)
    silent = {key: 0.0 for key in config.to_dict() if "drop" in key and isinstance(getattr(config, key), (int, float))}
    config = config_class(**{**values, **silent}, use_cache=False)
    model_class = getattr(transformers, entry.model_class)
    with torch.device("meta"):
        model = model_class._from_config(config, dtype=torch.bfloat16 if precision == "bf16" else torch.float32,
                                         attn_implementation="sdpa" if model_class._supports_sdpa else "eager")
    model.train()
    return model, sorted((key, int(value)) for key, value in values.items() if isinstance(value, int))


def capture(model, entry, batch, sequence):
    """The graph of forward, mean cross-entropy and backward. Targets are what the logits are compared with: tokens shifted already."""
    modules = [(id(module), path) for path, module in model.named_modules()]
    tokens = lambda: torch.empty((batch, sequence), dtype=torch.long, device="meta")
    names = ["input_ids", "decoder_input_ids"] if entry.decoder else ["input_ids"]

    def run(inputs, targets):
        logits = model(**dict(zip(names, inputs)), return_dict=True).logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, -2), targets[0].flatten())

    with numbers_kept_on_meta(), nothing_packed(), module_paths():
        return cantle_door.capture(parameters=list(model.named_parameters(remove_duplicate=False)),
                                   buffers=list(model.named_buffers(remove_duplicate=False)),
                                   inputs=[(name, tokens()) for name in names], targets=[("target", tokens())],
                                   run=run, modules=modules)


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
