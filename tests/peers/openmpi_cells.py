"""The cells in Open MPI: see peer.py. They are MPI_Allreduce's in our mpi_benchmark,
whose path is in D2L_MPI_BENCHMARK."""
import functools
import os
import re
import shutil
import subprocess

UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

TIME_LIMIT = 120  # seconds


def set_up(threads, device):
    if device != "cpu":
        raise RuntimeError("this compares memory of a CPU")
    if shutil.which("mpirun") is None:
        raise RuntimeError("mpirun is not on PATH")
    said = subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE, text=True, check=True)
    return said.stdout.splitlines()[0].replace("mpirun (Open MPI)", "Open MPI"), None


def allreduce_ns(printed):
    """The time of MPI_Allreduce for 64 MiB."""
    found = re.search(r"^ *64\.0 MiB +MPI_Allreduce +([\d.]+) (\w+)", printed, re.MULTILINE)
    if not found:
        raise RuntimeError("mpi_benchmark printed no row of MPI_Allreduce for 64.0 MiB")
    return float(found[1]) * UNITS[found[2]]


def allreduce(processes):
    # mpirun needs to be told if root starts it, or more processes than cores.
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    command = ["mpirun", "--oversubscribe", "-np", str(processes), os.environ["D2L_MPI_BENCHMARK"]]
    return allreduce_ns(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                                       env=environment, timeout=TIME_LIMIT).stdout)


def measures_itself(processes):
    return lambda: functools.partial(allreduce, processes)


CELLS = {
    "allreduce_64MB_2": (measures_itself(2), None),
    "allreduce_64MB_4": (measures_itself(4), None),
}
