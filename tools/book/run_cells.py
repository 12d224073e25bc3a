"""Runs the course's Python cells of one lesson; an interpreter with PyTorch runs this.

Reads {"cells": [{"id", "python"}], "limit": seconds} from stdin. For each cell it
writes a line of JSON to the file descriptor in argv[1]:
{"id", "printed", "error", "note"}; before them one with {"version"}.

As in a notebook, the cells share their names, and the value of a last expression is
printed. Without a GPU "cuda" is the CPU, and a note says so.
"""
import ast
import contextlib
import io
import json
import os
import re
import signal
import sys
import tempfile
import time
import types
import warnings

import numpy
import torch
from torch import nn

HAS_GPU = torch.cuda.is_available()


def try_gpu(i=0):
    return torch.device(f"cuda:{i}" if torch.cuda.device_count() > i else "cpu")


def try_all_gpus():
    return [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())] or [
        torch.device("cpu")] * (1 if HAS_GPU else 2)


class Timer:
    def __init__(self):
        self.start()

    def start(self):
        self.begin = time.time()

    def stop(self):
        return time.time() - self.begin


class Benchmark:
    """The book's. A notebook's own would also print a time if its body failed."""

    def __init__(self, description="Done"):
        self.description = description

    def __enter__(self):
        self.timer = Timer()
        return self

    def __exit__(self, error, *args):
        if error is None:
            print(f"{self.description or 'Done'}: {self.timer.stop():.4f} sec")


def get_net():
    return nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 2)).to(try_gpu())


def setting():
    """The names that the cells find in their notebooks."""
    d2l = types.SimpleNamespace(try_gpu=try_gpu, try_all_gpus=try_all_gpus, Timer=Timer,
                                Benchmark=Benchmark, torch=torch)
    device = try_gpu()
    x = torch.randn(1, 512, device=device)
    activity = torch.profiler.ProfilerActivity
    return {"torch": torch, "nn": nn, "numpy": numpy, "time": time, "d2l": d2l,
            "Benchmark": Benchmark, "get_net": get_net, "net": get_net(), "x": x,
            "device": device, "devices": try_all_gpus(), "s": torch.ones(3).sum(),
            "CPU": activity.CPU, "CUDA": activity.CUDA, "__name__": "__main__",
            "sizes": [16, 64, 256], "k": 100}


def without_gpu(python):
    """The cell with "cpu" where it says "cuda"."""
    return re.sub(r"(['\"])cuda(:\d+)?\1", "'cpu'",
                  re.sub(r"\bdevice=\d+", "device='cpu'", python))


def pretend():
    """Without a GPU: what waits for one has nothing to wait for."""
    torch.cuda.synchronize = lambda device=None: None
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    nn.Module.cuda = lambda self, *args, **kwargs: self


def on_alarm(signum, frame):
    raise TimeoutError("it took too long")


def run(python, names, limit):
    """(what it printed, its error or "")."""
    out, error = io.StringIO(), ""
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        tree = ast.parse(python)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"),
                         names) if last else None
            if value is not None:
                print(repr(value))
    except TimeoutError:
        error = f"Stopped after {limit:g} s."
    except BaseException as e:  # whatever the cell throws is its result
        error = f"{type(e).__name__}: {e}".strip()[:2000]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return out.getvalue()[:20000], error


def main():
    order = json.load(sys.stdin)
    answers = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    warnings.simplefilter("ignore")
    where = torch.cuda.get_device_name() if HAS_GPU else (
        f"CPU, {torch.get_num_threads()} threads")
    answer(version=f"PyTorch {torch.__version__}, {where}")
    if not HAS_GPU:
        pretend()
    signal.signal(signal.SIGALRM, on_alarm)
    names = setting()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)  # some cells write files
        for cell in order["cells"]:
            python, note = cell["python"], ""
            if re.match(r"\s*[!$]", python):
                answer(id=cell["id"], printed="", error="", note="shell")
                continue
            # A notebook's shell lines.
            python = re.sub(r"(?m)^\s*[!$].*$", "", python)
            if not HAS_GPU:
                if "cuda" in python or "gpu" in python:
                    note = "cpu"
                python = without_gpu(python)
            names["Benchmark"] = Benchmark
            printed, error = run(python, names, order["limit"])
            answer(id=cell["id"], printed=printed, error=error, note=note)
        os.chdir("/")


if __name__ == "__main__":
    main()
