#!/usr/bin/env python3
"""Trains beside PyTorch, and exchanges state dicts with it, if it is installed."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import torch
    import training_parity as parity
    from safetensors.torch import load_file, save_file
    MISSING = None
except ImportError as error:
    MISSING = "%s; pip install torch safetensors" % error

BINARY = os.path.abspath("tests/peers/training_steps")


@unittest.skipIf(MISSING, MISSING)
class TrainingParityTest(unittest.TestCase):

    def check(self, name, dtype, steps, batch):
        ours, theirs, our_state, their_state = parity.compare(
            BINARY, name, dtype, steps, batch)
        self.assertEqual(len(ours), steps)
        # The comparison is useful only if something was learnt.
        self.assertLess(min(theirs[-5:]), 0.9 * theirs[0])
        tolerance = parity.TOLERANCE[name, dtype]
        self.assertLessEqual(parity.difference_of(ours, theirs), tolerance)
        self.assertEqual(sorted(our_state), sorted(their_state))
        for key, value in their_state.items():
            self.assertEqual(our_state[key].dtype, value.dtype, key)
            if tolerance > 1e-5:
                continue  # nothing follows for a single parameter
            scale = value.abs().max().item()
            difference = (our_state[key] - value).abs().max().item()
            self.assertLessEqual(difference, 20 * tolerance * scale, key)

    def test_lenet_in_float64(self):
        self.check("lenet", torch.float64, steps=50, batch=16)

    def test_lenet_in_float32(self):
        self.check("lenet", torch.float32, steps=50, batch=16)

    def test_resnet18_in_float64(self):
        self.check("resnet18", torch.float64, steps=50, batch=4)

    def test_resnet18_in_float32(self):
        self.check("resnet18", torch.float32, steps=12, batch=16)

    def test_state_dicts(self):
        for name in parity.NETS:
            for dtype in (torch.float32, torch.float64):
                net = parity.make(name, dtype)
                with tempfile.TemporaryDirectory() as folder:
                    theirs = os.path.join(folder, "theirs")
                    ours = os.path.join(folder, "ours")
                    save_file(net.state_dict(), theirs)
                    parity.run(BINARY, name, theirs, save=ours)
                    other = parity.NETS[name]().to(dtype)
                    other.load_state_dict(load_file(ours), strict=True)
                for key, value in net.state_dict().items():
                    self.assertTrue(torch.equal(other.state_dict()[key], value), key)

    def test_sixteen_bit_floats(self):
        for dtype in (torch.bfloat16, torch.float16):
            # Any bits: subnormal, infinite, NaN.
            state = {key: torch.randint(-2**15, 2**15, value.shape).short().view(dtype)
                     for key, value in parity.make("lenet", torch.float32).state_dict().items()}
            with tempfile.TemporaryDirectory() as folder:
                theirs, ours = (os.path.join(folder, name) for name in ("theirs", "ours"))
                save_file(state, theirs)
                parity.run(BINARY, "lenet", theirs, save=ours)
                read = load_file(ours)
            for key, value in state.items():
                torch.testing.assert_close(read[key], value.float(), rtol=0, atol=0,
                                           equal_nan=True)
                self.assertTrue(torch.equal(read[key].signbit(), value.signbit()), key)

    def test_the_line_that_converts_what_torch_saves(self):
        state = parity.make("lenet", torch.float32).state_dict()
        with tempfile.TemporaryDirectory() as folder:
            for name, zipped in (("new.pt", True), ("old.pt", False)):
                saved, ours = (os.path.join(folder, file) for file in (name, "ours"))
                torch.save(state, saved, _use_new_zipfile_serialization=zipped)
                with self.assertRaises(RuntimeError) as refusal:
                    parity.run(BINARY, "lenet", saved)
                command = str(refusal.exception).split("convert it:\n")[1]
                path = os.path.dirname(sys.executable) + ":" + os.environ["PATH"]
                subprocess.run(command, shell=True, check=True, timeout=300,
                               env={**os.environ, "PATH": path})
                parity.run(BINARY, "lenet", saved + ".safetensors", save=ours)
                for key, value in load_file(ours).items():
                    self.assertTrue(torch.equal(state[key], value), key)


if __name__ == "__main__":
    unittest.main()
