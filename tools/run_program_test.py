#!/usr/bin/env python3
"""Tests run_program with programs written by another language."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import unittest

RUN = os.path.abspath("tools/run_program")



def floats(*shape, **more):
    return dict(dtype="float32", shape=shape, **more)


def operation(op, inputs, output, **attributes):
    return {"op": op, "attributes": attributes, "inputs": inputs, "outputs": [output],
            "at": ["net.cc", 88]}


def program(arguments, *nodes):
    """A program that returns the last node's result."""
    return json.dumps({"version": 3, "name": "my_mlp", "arguments": arguments, "nodes": nodes,
                       "returns": [len(arguments) + len(nodes) - 1]})


MLP = program([floats(1, 2, name="x")],
              {"weight": "w", "inputs": [], "outputs": [floats(3, 2, name="w")]},
              operation("transpose", [1], floats(2, 3), dim0="0", dim1="1"),
              operation("matmul", [0, 2], floats(1, 3, name="h")),
              operation("relu", [3], floats(1, 3)))
WEIGHTS = {"w": ([3, 2], [1, 2, 3, 4, -5, -6])}


def safetensors(tensors, text=None):
    """A file of pairs of a shape and floats, by name; `text` is a program."""
    header, data = {"__metadata__": {"d2l.program": text}} if text else {}, b""
    for name, (shape, values) in tensors.items():
        added = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(added)]}
        data += added
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


class RunProgram(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.write("my_mlp.safetensors", safetensors(WEIGHTS, MLP))

    def write(self, name, data):
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def run_program(self, *arguments, code=0):
        """Returns its output; runs it in another folder, as bazel run does."""
        done = subprocess.run([RUN] + list(arguments), cwd="/", text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=60,
                              env=dict(os.environ, BUILD_WORKING_DIRECTORY=self.folder))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(bool(done.stderr), code != 0, done.stderr)
        return done.stdout + done.stderr

    def test_runs_and_saves(self):
        self.write("x.safetensors", safetensors({"x": ([1, 2], [10, 1])}))
        said = self.run_program("my_mlp", "--input=x.safetensors", "--output=y.safetensors")
        self.assertEqual(said, "output_0 = tensor([[12., 34.,  0.]], device='cpu:0')\n")
        with open(os.path.join(self.folder, "y.safetensors"), "rb") as file:
            data = file.read()
        self.assertEqual(struct.unpack("<3f", data[-12:]), (12, 34, 0))
        header = json.loads(data[8:-12])
        self.assertEqual(header["output_0"]["shape"], [1, 3])

    def test_random_arguments_follow_the_seed(self):
        said = [self.run_program("my_mlp", "--seed=%d" % seed) for seed in (1, 1, 2)]
        self.assertEqual(said[0], said[1])
        self.assertNotEqual(said[0], said[2])

    def test_prints_the_program(self):
        said = self.run_program("my_mlp", "--print_program")
        self.assertIn('  %w = weight "w" : float32[3, 2]\n', said)
        self.assertIn('  %h = matmul(%x, %0) : float32[1, 3] @"net.cc":88\n', said)

    def test_does_not_replace_what_it_reads(self):
        self.write("x.safetensors", safetensors({"x": ([1, 2], [10, 1])}))
        os.symlink("my_mlp.safetensors", os.path.join(self.folder, "link"))
        for output in ("my_mlp.safetensors", "x.safetensors", "link"):
            said = self.run_program("my_mlp", "--input=x.safetensors", "--output=" + output, code=1)
            self.assertIn("--output=%s names a file that is read, " % output, said)
        self.assertIn("output_0 = ", self.run_program("my_mlp", "--input=x.safetensors"))

    def test_says_what_is_wrong(self):
        self.assertIn("name one program, without .safetensors", self.run_program(code=1))
        said = self.run_program("my_mpl", code=1)
        self.assertIn("cannot read %s/my_mpl.safetensors: No such file" % self.folder, said)
        said = self.run_program("my_mlp", "--input=my_mlp.safetensors", code=1)
        self.assertIn('my_mlp.safetensors has no tensor "x"; it has "w". The program takes '
                      "x: float32[1, 2].", said)
        self.write("x.safetensors", safetensors({"x": ([2], [10, 1])}))
        said = self.run_program("my_mlp", "--input=x.safetensors", code=1)
        self.assertIn('"x" is float32[2]. The program takes x: float32[1, 2].', said)
        said = self.run_program("my_mlp", "--input=none", code=1)
        self.assertIn("cannot read %s/none: No such file" % self.folder, said)
        many = {"\x1b[2J" + str(i): ([0], []) for i in range(20000)}
        self.write("x.safetensors", safetensors(many))
        said = self.run_program("my_mlp", "--input=x.safetensors", code=1)
        self.assertIn('it has "\\x1b[2J0", "\\x1b[2J1", ', said)
        self.assertIn(" and 19990 more. The program", said)
        self.assertNotIn("\x1b", said)
        self.assertEqual(said.count("\n"), 1)
        said = self.run_program("my_mlp", "--output=/dev/full", code=1)
        self.assertIn("cannot write /dev/full: No space left on device", said)
        self.write("my_mlp.safetensors", safetensors(WEIGHTS, MLP.replace(
            '"weight": "w"', '"weight": "\\u001b[2J\\n"')))
        said = self.run_program("my_mlp", code=1)
        self.assertIn("\\x1b[2J\\n", said)
        self.assertNotIn("\x1b", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
