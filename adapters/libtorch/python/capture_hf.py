# SPDX-License-Identifier: BSL-1.0
"""What `cantle capture hf:NAME` and `cantle models` start. Exit status 0, or 2 with one numbered line on stderr.

torch and transformers are imported only when the command line is known to be good: they take two seconds."""
import argparse
import difflib
import os
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from hf_models import MODELS, TRANSFORMERS_VERSION


class Refused(Exception):
    """One line as every error of cantle: number, subject, problem, remedy (include/cantle/base/error.hpp)."""

    def __init__(self, number, subject, problem, remedy):
        super().__init__(f"cantle error {number}: {subject}: {problem}" + (f". Remedy: {remedy}" if remedy else ""))


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(701, "command line", message, "see cantle capture hf:gpt2 --help")


def at_least_one(text):
    if not re.fullmatch(r"[0-9]+", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 1")
    return int(text)


def size(text):
    match = re.fullmatch(r"(\w+)=([0-9]+)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form n_layer=2")
    return match[1], int(match[2])


def parse(arguments):
    parser = Parser(prog="cantle capture", allow_abbrev=False,
                    description="Captures the training graph of a Hugging Face model built from its configuration.")
    parser.add_argument("model", help="hf:NAME (see: cantle models)")
    parser.add_argument("--batch", type=at_least_one, required=True, help="samples in the global batch")
    parser.add_argument("--seq", type=at_least_one, help="tokens in a sequence (default: the model's)")
    parser.add_argument("--recipe", choices=["train", "table3"], default="train",
                        help="train: loss and gradients; table3: ends at the logits, with a tangent")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16",
                        help="bf16: fp32 parameters, bf16 compute, fp32 gradients; fp32")
    parser.add_argument("--set", type=size, action="append", default=[], dest="sizes", metavar="KEY=N",
                        help="another whole number of the configuration, as n_layer=2 (may be repeated)")
    parser.add_argument("--raw", action="store_true", help="leave out the canonical form")
    parser.add_argument("-o", "--output", required=True, help="file to write")
    return parser.parse_args(arguments)


def entry_of(model):
    name = model.removeprefix("hf:")
    if name in MODELS:
        return MODELS[name]
    near = difflib.get_close_matches(name, MODELS, n=4, cutoff=0.5)
    known = ", ".join("hf:" + n for n in near or MODELS)
    raise Refused(603, f"model '{model}'", "there is no model of that name", f"use {'one of ' if not near else ''}{known}"
                  + (" (cantle models lists all)" if near else ""))


def import_door():
    """hf_capture, or what is missing for it."""
    remedy = f"{sys.executable} -m pip install"
    try:
        import torch  # noqa: F401
    except ImportError as e:
        raise Refused(702, "package torch", f"{sys.executable} cannot import it ({one_line(e)})", "./dev build installs it")
    try:
        import transformers  # noqa: F401
    except ImportError as e:
        raise Refused(702, "package transformers", f"{sys.executable} cannot import it ({one_line(e)})",
                      f"{remedy} transformers=={TRANSFORMERS_VERSION}, or ./dev build")
    try:
        import hf_capture
    except ImportError as e:
        raise Refused(702, "module cantle_door", f"{sys.executable} cannot import it ({one_line(e)})", "./dev build")
    return hf_capture


def one_line(problem):
    return " ".join(str(problem).split())


def run_capture(arguments):
    options = parse(arguments)
    entry = entry_of(options.model)
    sequence = options.seq or entry.sequence
    door = import_door()
    start = time.perf_counter()
    dtype = door.torch.bfloat16 if options.precision == "bf16" else door.torch.float32
    try:
        config, sizes = door.configure(entry, options.sizes, sequence)
        model = door.build(entry, config, dtype)
    except door.UnknownSize as e:
        raise Refused(701, f"--set {e.key}", f"{entry.config_class} has no whole number of that name", f"it has {', '.join(e.known)}")
    except Exception as e:
        raise Refused(701, f"model {options.model}", f"{entry.config_class} does not build ({one_line(e)})",
                      "let the sizes of --set fit each other")
    built = time.perf_counter()
    graph = door.capture(model, entry, options.batch, sequence, options.recipe)
    captured, nodes = time.perf_counter(), len(graph)
    graph.set_origin(options.model, options.recipe, options.precision, options.batch, sequence,
                     [(key, getattr(config, key)) for key in sizes])
    if options.precision == "bf16":
        graph.mixed_precision()
    if not options.raw:
        graph.canonicalize()
    graph.validate()
    canonical = time.perf_counter()
    graph.write(options.output)
    written = time.perf_counter()
    print(f"captured {options.model}: built in {built - start:.3f} s, {nodes} nodes in {captured - built:.3f} s, canonical form "
          f"{len(graph)} nodes in {canonical - captured:.3f} s, written to {options.output} in {written - canonical:.3f} s",
          file=sys.stderr)


def print_models():
    for name, entry in MODELS.items():
        print(f"{'hf:' + name:<19} {entry.what}; sequence {entry.sequence}")
        values = " ".join(f"{key}={value}" for key, value in entry.config.items() if isinstance(value, int) and type(value) is not bool)
        print(f"{'':<19}  {entry.config_class}{': ' + values if values else ' as it is'}")


def main(arguments):
    try:
        if arguments == ["models"]:
            print_models()
        else:
            run_capture(arguments[1:] if arguments[:1] == ["capture"] else arguments)
    except Refused as e:
        print(e, file=sys.stderr)
        return 2
    except Exception as e:  # an error of cantle that came through PyTorch or the door has its whole line as text
        text = one_line(e)
        known = re.search(r"cantle error \d+: .*", text)
        print(known[0] if known else f"cantle error 604: the model: {type(e).__name__}: {text}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # taking torch and transformers down again would cost a third of a second
