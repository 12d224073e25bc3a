"""Runs the course's Python cells of one lesson; an interpreter with PyTorch runs this.

argv[1] is a file with {"cells": [{"id", "python"}], "limit": seconds}, in a folder where
the cells may write. The answers replace it, a line of JSON each: {"version"}, then for
each cell {"id", "printed", "error", "note", "stopped"}. It needs PyTorch alone: not
NumPy, and not the book's package d2l.

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
import threading
import time
import traceback
import types
import warnings

import torch
from torch import nn

HAS_GPU = torch.cuda.is_available()

# Definitions that the notebook or the text has before a cell that is only a part.
BEFORE = {
    "001/c2": """
def fancy_func_str():
    return '''
def fancy_func(a, b, c, d):
    return add(add(a, b), add(c, d))
'''
def evoke_str():
    return add_str() + fancy_func_str() + 'print(fancy_func(1, 2, 3, 4))'
""",
    "004/In2": "import numpy",
    "004/queue-memory": "data_iter = [torch.randn(256, 512) for _ in range(50)]",
    "d2l/blockers": "x = torch.ones(1, device=device)",
    "d2l/t1-t2-t3": "x = torch.ones((1, 2), device=device)",
    "002/two-device-graph": """
x, y = torch.rand(64, 32, device=device), torch.rand(64, 8, device=device)
w1, w2 = torch.rand(32, 16, device=device), torch.rand(16, 8, device=device)
""",
    "d2l/size-sweep": "sizes, k = [16, 64, 256], 59",  # the lesson's size is 256
    "003/c2": "x = torch.rand((3, 3))",
    "003/c16": "x = torch.rand((10000, 10000))",
    "003/c21": """
a = [torch.rand((10, 10), device=device) for _ in range(100)]
b = [[torch.rand((10, 10), device=device) for _ in range(100)] for _ in range(200)]
""",
}


def try_gpu(i=0):
    return torch.device(f"cuda:{i}" if torch.cuda.device_count() > i else "cpu")


def try_all_gpus():
    return [torch.device(f"cuda:{i}") for i in range(torch.cuda.device_count())] or [
        torch.device("cpu")] * (1 if HAS_GPU else 2)


class Benchmark:
    """The book's class. A notebook's own would also print a time if its body failed."""

    def __init__(self, description="Done"):
        self.description = description

    def __enter__(self):
        self.begin = time.time()
        return self

    def __exit__(self, error, *args):
        if error is None:
            print(f"{self.description or 'Done'}: {time.time() - self.begin:.4f} sec")


def get_net():
    return nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                         nn.Linear(128, 2)).to(try_gpu())


class D2l:
    """The part of the book's package that needs no data set."""
    Benchmark = Benchmark
    try_gpu, try_all_gpus = staticmethod(try_gpu), staticmethod(try_all_gpus)

    def __getattr__(self, name):
        raise AttributeError(f"d2l.{name} is of the package d2l, which is not used here")


def wait(*_, **__):
    if HAS_GPU:
        torch.cuda.synchronize()


def setting():
    """The names that the cells expect in their notebooks."""
    device = try_gpu()
    activity = torch.profiler.ProfilerActivity
    torch.Tensor.wait_to_read = wait
    return {"torch": torch, "nn": nn, "time": time, "d2l": D2l(),
            "get_net": get_net, "net": get_net(),
            "x": torch.randn(1, 512, device=device), "s": torch.ones(3).sum(),
            "device": device, "devices": try_all_gpus(), "__name__": "__main__",
            "CPU": activity.CPU, "CUDA": activity.CUDA,
            # Names of MXNet, in some cells of the book.
            "np": types.SimpleNamespace(dot=torch.mm),
            "npx": types.SimpleNamespace(waitall=wait)}


def without_gpu(python):
    """The cell with "cpu" instead of "cuda"."""
    return re.sub(r"(['\"])cuda(:\d+)?\1", "'cpu'",
                  re.sub(r"\bdevice=\d+", "device='cpu'", python))


def pretend():
    """Without a GPU, functions that wait for one return at once."""
    def no_stream(*_, **__):
        raise RuntimeError("a stream needs a GPU, and there is none")

    torch.cuda.Stream = no_stream
    torch.cuda.synchronize = wait
    torch.Tensor.cuda = lambda self, *args, **kwargs: self
    nn.Module.cuda = lambda self, *args, **kwargs: self


def on_alarm(signum, frame):
    raise TimeoutError("it took too long")


def why(error, python):
    """The exception, on one line."""
    text = str(error)
    if not text:  # as for an assertion: shows its line
        places = [place.lineno for place in traceback.extract_tb(error.__traceback__)
                  if place.filename == "cell"]
        text = python.splitlines()[places[-1] - 1] if places else ""
    return " ".join(f"{type(error).__name__}: {text}".split())[:400]


def run(before, python, names, limit):
    """(its output, its error or "", whether it was stopped)."""
    out, error, stopped = io.StringIO(), "", False
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        exec(before, names)
        tree = ast.parse(python)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"),
                         names) if last else None
            if value is not None:
                print(repr(value))
    except TimeoutError:
        stopped = True
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # any exception of the cell is its result
        error = why(e, python)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return out.getvalue()[:20000], error, stopped


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        order = json.load(file)
    answers = open(sys.argv[1], "w", encoding="utf-8", buffering=1)

    def answer(**fields):
        answers.write(json.dumps(fields) + "\n")

    warnings.simplefilter("ignore")
    where = torch.cuda.get_device_name() if HAS_GPU else (
        f"CPU, {torch.get_num_threads()} threads")
    answer(version=f"PyTorch {torch.__version__}, {where}")
    if not HAS_GPU:
        pretend()
    signal.signal(signal.SIGALRM, on_alarm)
    names = setting()
    os.chdir(os.path.dirname(sys.argv[1]))
    for cell in order["cells"]:
        python, notes = cell["python"], []
        if re.match(r"\s*[!$]", python):
            answer(id=cell["id"], printed="", error="", note="shell", stopped=0)
            continue
        # Shell commands of a notebook.
        python = re.sub(r"(?m)^\s*[!$].*$", "", python)
        if re.search(r"\bnpx?\.|\bHybrid", python):
            notes.append("mxnet")
        if not HAS_GPU:
            if "cuda" in python or "gpu" in python:
                notes.append("cpu")
            python = without_gpu(python)
        names["Benchmark"] = Benchmark
        print(f"      {cell['id']} ...", end=" ", flush=True)
        started = time.monotonic()

        def hangs():  # no alarm arrives while a library's call does not return
            answer(id=cell["id"], printed="", error="", note=" ".join(notes),
                   stopped=order["limit"])
            os.write(1, b"stopped\n")  # sys.stdout is the cell's
            os._exit(0)

        watchdog = threading.Timer(order["limit"] + 60, hangs)
        watchdog.start()
        printed, error, stopped = run(BEFORE.get(cell["id"], ""), python, names,
                                      order["limit"])
        watchdog.cancel()
        print(f"{time.monotonic() - started:.1f} s",
              "- stopped" if stopped else error and f"- {error}", flush=True)
        answer(id=cell["id"], printed=printed, error=error, note=" ".join(notes),
               stopped=order["limit"] if stopped else 0)


if __name__ == "__main__":
    main()
