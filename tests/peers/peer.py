"""Times the cells of one peer in a process of its own, for compare.py.

Usage: peer.py MODULE THREADS DEVICE

MODULE is pytorch_cells or numpy_cells; THREADS a number, 0 for all; DEVICE cpu
or such as cuda:0. Writes a line {"library", "cells"}, or {"missing"} if the
library is not there, or {"unusable"} if it cannot run on the device, and why;
then answers each cell's name on stdin with a line {"ns"}, per unit, or
{"error"}.
"""
import gc
import importlib
import json
import os
import sys
import time

MIN_SECONDS = 0.1


def one_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def repeat(run, seconds):
    """Runs it until the time is over, at least once. Returns (ns, runs)."""
    runs = 0
    start = time.perf_counter_ns()
    while True:
        run()
        runs += 1
        elapsed = time.perf_counter_ns() - start
        if elapsed >= seconds * 1e9:
            return elapsed, runs


def waited_for(run, synchronize):

    def run_and_wait():
        run()
        synchronize()

    return run_and_wait


def measure(setup, units, synchronize):
    """ns per unit. synchronize waits for the device; None if calls wait. Without
    units, the function from the set-up measures itself and returns ns."""
    run = setup()
    if units is None:
        return run()
    if synchronize:
        run = waited_for(run, synchronize)
        repeat(run, MIN_SECONDS)  # kernels are loaded, the GPU's clock rises
    else:
        run()  # caches fill, threads start
    gc.disable()  # as timeit does
    try:
        elapsed, runs = repeat(run, MIN_SECONDS)
    finally:
        gc.enable()
    return elapsed / (runs * units)


def reply(message):
    print(json.dumps(message), flush=True)


def main():
    name, threads, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    try:
        module = importlib.import_module(name)
        library, synchronize = module.set_up(threads or len(os.sched_getaffinity(0)), device)
    except ModuleNotFoundError as error:
        reply({"missing": error.name})
        return
    # The exceptions of a library that does not load, or does not know the
    # device, differ between versions.
    except Exception as error:
        reply({"unusable": one_line(error)})
        return
    reply({"library": library, "cells": list(module.CELLS)})
    for line in sys.stdin:
        try:
            ns = measure(*module.CELLS[line.strip()], synchronize)
        except Exception as error:  # out of memory: the next cell may do with less
            reply({"error": one_line(error)})
        else:
            reply({"ns": ns})


if __name__ == "__main__":
    main()
