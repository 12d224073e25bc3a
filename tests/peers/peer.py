"""Times the cells of one peer in a process of its own, for compare.py.

Usage: peer.py MODULE THREADS

MODULE is pytorch_cells or numpy_cells; THREADS a number, 0 for all. Writes a
line {"name", "version", "cells"}, or {"missing"} if the library is not there;
then answers each cell's name on stdin with a line {"ns"}, per unit.
"""
import gc
import importlib
import json
import os
import sys
import time

MIN_SECONDS = 0.1


def measure(setup, units):
    run = setup()
    run()  # caches fill, threads start
    gc.disable()  # as timeit does
    calls = 0
    start = time.perf_counter_ns()
    while True:
        run()
        calls += 1
        elapsed = time.perf_counter_ns() - start
        if elapsed >= MIN_SECONDS * 1e9:
            break
    gc.enable()
    return elapsed / (calls * units)


def reply(message):
    print(json.dumps(message), flush=True)


def main():
    try:
        module = importlib.import_module(sys.argv[1])
    except ModuleNotFoundError as error:
        reply({"missing": error.name})
        return
    module.set_threads(int(sys.argv[2]) or len(os.sched_getaffinity(0)))
    reply({"name": module.NAME, "version": module.VERSION, "cells": list(module.CELLS)})
    for line in sys.stdin:
        reply({"ns": measure(*module.CELLS[line.strip()])})


if __name__ == "__main__":
    main()
