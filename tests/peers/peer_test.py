#!/usr/bin/env python3
"""Tests of a peer's process and of how compare.py talks to it, with a fake library."""
import contextlib
import io
import os
import tempfile
import unittest

import compare
import openmpi_cells
import peer

# A peer's module: a cell that works, and cells that fail.
MODULE = """
import os


def set_up(threads, device):
    if device != "cpu":
        raise RuntimeError("no driver for %s\\nand more lines" % device)
    return "library of %d" % threads, None


def raises():
    raise MemoryError("too large")


CELLS = {"works": (lambda: lambda: sum(range(1000)), 1), "raises": (lambda: raises, 1),
         "dies": (lambda: os._exit(1), 1)}
"""


class PeerTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with open(os.path.join(folder.name, "module_cells.py"), "w") as file:
            file.write(MODULE)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = folder.name
        self.addCleanup(self.restore, before)

    def restore(self, before):
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before

    def start(self, module, device):
        process = compare.Peer(device, "peer", module, 3)
        self.addCleanup(process.process.stdout.close)
        self.addCleanup(process.close)
        return process

    def test_measures_cells_until_one_fails_and_then_the_others(self):
        process = self.start("module_cells", "cpu")
        self.assertEqual(process.library, "library of 3")
        self.assertIsNone(process.measure("no such cell"))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertIsNone(process.measure("raises"))
            self.assertIsNone(process.measure("raises"))
        self.assertEqual(said.getvalue(), "peer fails in raises: too large\n")
        self.assertGreater(process.measure("works"), 0)

    def test_a_peer_that_dies_has_no_more_figures_and_does_not_end_the_comparison(self):
        process = self.start("module_cells", "cpu")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertIsNone(process.measure("dies"))
            self.assertIsNone(process.measure("works"))

    def test_what_is_not_installed_is_missing(self):
        process = self.start("no_such_cells", "cpu")
        self.assertEqual(process.missing, "no_such_cells")
        self.assertIsNone(process.measure("works"))

    def test_what_does_not_run_on_the_device_says_why(self):
        process = self.start("module_cells", "cuda:0")
        self.assertIsNone(process.missing)
        self.assertEqual(process.unusable, "no driver for cuda:0")
        self.assertIsNone(process.measure("works"))

    def test_a_cell_without_units_measures_itself(self):
        self.assertEqual(peer.measure(lambda: lambda: 12.5, None, None), 12.5)

    def test_each_repetition_is_waited_for(self):
        done = []
        peer.measure(lambda: lambda: done.append("run"), 1, lambda: done.append("wait"))
        self.assertEqual(done, ["run", "wait"] * (len(done) // 2))


class OpenMpiTest(unittest.TestCase):

    def test_reads_what_the_benchmark_prints(self):
        printed = """\
2 processes; a call that moves nothing takes 47.1 us
                                  measured   simulated  ratio
   1.0 KiB  MPI_Allreduce          48.9 us
  64.0 MiB  MPI_Allreduce          79.1 ms
  64.0 MiB  split                  16.0 ms     15.0 ms  1.07
"""
        self.assertAlmostEqual(openmpi_cells.allreduce_ns(printed), 79.1e6)
        with self.assertRaisesRegex(RuntimeError, "no row of MPI_Allreduce for 64.0"):
            openmpi_cells.allreduce_ns("2 processes\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
