#!/usr/bin/env python3
"""Compares the results of run_program and onnxruntime for the same program."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from safetensors import numpy as safetensors
    import program_to_onnx
    MISSING = None
except ImportError as error:
    MISSING = "%s; pip install onnx onnxruntime safetensors numpy" % error

RUN = os.path.abspath("tools/run_program")
SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "program_to_onnx.py")

# Arguments of main, and its lines. %x and %y have any sign, %p is positive.
HEAD = ("%x: float32[3, 4], %y: float32[3, 4], %p: float32[3, 4], %i: int64[3, 4], "
        "%u: uint8[3, 4]")
CASES = {
    "mlp": """
  %w0 = weight "0.weight" : float32[5, 4]
  %0 = transpose(%w0) {dim0=0, dim1=1} : float32[4, 5] @"a b.cc":1
  %1 = matmul(%x, %0) : float32[3, 5] @"net.cc":2 by "main.cc":3
  %b0 = weight "0.bias" : float32[5]
  %a = add(%1, %b0) : float32[3, 5] @"net.cc":4
  %2 = relu(%a) : float32[3, 5]
  %w1 = weight "1.weight" : float32[2, 5]
  %3 = transpose(%w1) {dim0=-1, dim1=0} : float32[5, 2]
  %4 = matmul(%2, %3) : float32[3, 2]
  %5 = softmax(%4) {dim=1} : float32[3, 2]
  %6 = log_softmax(%4) {dim=-1} : float32[3, 2]
  return %5, %6""",
    "elementwise": """
  %0 = exp(%x) : float32[3, 4]
  %1 = log(%p) : float32[3, 4]
  %2 = sqrt(%p) : float32[3, 4]
  %3 = tanh(%0) : float32[3, 4]
  %4 = sigmoid(%x) : float32[3, 4]
  %5 = abs(%y) : float32[3, 4]
  %6 = neg(%5) : float32[3, 4]
  %7 = square(%6) : float32[3, 4]
  %8 = add(%0, %1) : float32[3, 4]
  %9 = sub(%8, %2) : float32[3, 4]
  %10 = mul(%9, %3) : float32[3, 4]
  %11 = div(%10, %p) : float32[3, 4]
  %12 = maximum(%11, %4) : float32[3, 4]
  %13 = minimum(%12, %7) : float32[3, 4]
  %14 = pow(%p) {second=1.5} : float32[3, 4]
  %15 = sub(%14) {first=2} : float32[3, 4]
  %16 = div(%15) {second=-0.1} : float32[3, 4]
  return %13, %16""",
    "integers": """
  %0 = div(%i) {second=7} : float32[3, 4]
  %1 = mul(%i) {second=3} : int64[3, 4]
  %2 = lt(%x, %y) : uint8[3, 4]
  %3 = ne(%i) {second=2} : uint8[3, 4]
  %4 = where(%2, %x, %y) : float32[3, 4]
  %5 = where(%3, %x) {other=-1.5} : float32[3, 4]
  %6 = sum(%u) {dim="1", keepdim=false} : int64[3]
  %7 = to(%u) {shape="(3, 4)", dtype=float32, device=cpu:0} : float32[3, 4]
  %8 = ge(%u) {second=1} : uint8[3, 4]
  %9 = where(%8, %i) {input=5} : int64[3, 4]
  %10 = eq(%i) {second=2} : uint8[3, 4]
  %11 = le(%x) {first=0.5} : uint8[3, 4]
  return %0, %1, %2, %3, %4, %5, %6, %7, %9, %10, %11""",
    "reductions": """
  %0 = sum(%x) {dim=all, keepdim=false} : float32[]
  %1 = sum(%x) {dim="0, 1", keepdim=true} : float32[1, 1]
  %2 = mean(%x) {dim="-1", keepdim=false} : float32[3]
  %3 = amax(%x) {dim="0", keepdim=false} : float32[4]
  %4 = amin(%x) {dim="0", keepdim=true} : float32[1, 4]
  %5 = argmax(%x) {dim=all, keepdim=false} : int64[]
  %6 = argmax(%x) {dim="-1", keepdim=true} : int64[3, 1]
  return %0, %1, %2, %3, %4, %5, %6""",
    "quotients": """
  %0 = gelu(%x) : float32[3, 4]
  %1 = floor_divide(%x, %y) : float32[3, 4]
  %2 = floor_divide(%i) {second=4} : int64[3, 4]
  %3 = floor_divide(%i) {second=-4} : int64[3, 4]
  %4 = floor_divide(%u) {second=2} : uint8[3, 4]
  %5 = floor_divide(%x) {second=0.1} : float32[3, 4]
  %6 = ones() {shape="(3, 4)", dtype=float32, device=cpu:0, fill_value=1} : float32[3, 4]
  %7 = floor_divide(%6) {second=0.1} : float32[3, 4]
  %8 = floor_divide(%x) {second=0} : float32[3, 4]
  %9 = ndtr(%x) : float32[3, 4]
  return %0, %1, %2, %3, %4, %5, %7, %8, %9""",
    "places": """
  %0 = arange() {shape="(3)", dtype=int64, device=cpu:0, start=2, step=-1} : int64[3]
  %1 = index_select(%x, %0) {dim=1} : float32[3, 3]
  %2 = gt(%u) {second=1} : uint8[3, 4]
  %3 = to(%2) {shape="(3, 4)", dtype=int64, device=cpu:0} : int64[3, 4]
  %4 = gather(%x, %3) {dim=0} : float32[3, 4]
  %5 = eye() {shape="(4, 3)", dtype=float32, device=cpu:0} : float32[4, 3]
  %6 = matmul(%4, %5) : float32[3, 3]
  %7 = arange() {shape="(4)", dtype=float32, device=cpu:0, start=0.5, step=0.1} : float32[4]
  %8 = zeros() {shape="(2)", dtype=uint8, device=cpu:0, fill_value=0} : uint8[2]
  return %1, %4, %6, %7, %8""",
    "images": """
  %0 = view(%x) {shape="(1, 2, 2, 3)"} : float32[1, 2, 2, 3]
  %1 = view(%y) {shape="(3, 2, 2, 1)"} : float32[3, 2, 2, 1]
  %2 = conv2d(%0, %1) {stride="(2, 1)", padding="(1, 0)"} : float32[1, 3, 2, 3]
  %3 = avg_pool2d(%2) {kernel_size="(2, 3)", stride="(1, 2)", padding="(1, 1)"} : float32[1, 3, 3, 2]
  %4 = max_pool2d(%3) {kernel_size="(2, 2)", stride="(2, 1)", padding="(1, 0)"} : float32[1, 3, 2, 1]
  %5 = slice(%p) {dim=0, start=0, end=2, step=1} : float32[2, 4]
  %6 = slice(%5) {dim=1, start=0, end=3, step=1} : float32[2, 3]
  %7 = contiguous(%6) {shape="(2, 3)", dtype=float32, device=cpu:0} : float32[2, 3]
  %w = constant [1, -2, 0.5] : float32[3]
  %8 = batch_norm(%4, %7, %w, %w) {eps=0.25, training=false} : float32[1, 3, 2, 1]
  return %2, %3, %4, %8""",
    "shapes": """
  %c = constant [1, -0, inf, 1e+30] : float32[4]
  %n = constant [2.5] : float32[]
  %0 = view(%x) {shape="(2, 6)"} : float32[2, 6]
  %1 = unsqueeze(%0) {dim=1} : float32[2, 1, 6]
  %2 = squeeze(%1) : float32[2, 6]
  %3 = slice(%2) {dim=1, start=1, end=6, step=2} : float32[2, 3]
  %4 = select(%3) {dim=0, index=1} : float32[3]
  %5 = expand(%4) {shape="(2, 3)"} : float32[2, 3]
  %e = contiguous(%5) {shape="(2, 3)", dtype=float32, device=cpu:0} : float32[2, 3]
  %g = clone(%3) {shape="(2, 3)", dtype=float32, device=cpu:0} : float32[2, 3]
  %6 = cat(%e, %g) {dim=0} : float32[4, 3]
  %7 = transpose(%6) {dim0=0, dim1=1} : float32[3, 4]
  %8 = contiguous(%7) {shape="(3, 4)", dtype=float32, device=cpu:0} : float32[3, 4]
  %9 = mul(%8, %c) : float32[3, 4]
  %10 = full() {shape="(3, 4)", dtype=float32, device=cpu:0, fill_value=0.1} : float32[3, 4]
  %11 = add(%10, %n) : float32[3, 4]
  %12 = add(%11, %11) : float32[3, 4]
  return %9, %12, %x""",
}
# Primitives that programs cannot export, by the reason.
NOT_EXPORTED = {
    "random numbers": ["rand", "randn", "randint"],
    "numbers that nobody has written": ["empty"],
    "writing in place": ["copy", "fill", "axpby"],
    "losses, gradients and training": [
        "cross_entropy", "cross_entropy_backward", "relu_backward", "tanh_backward",
        "sigmoid_backward", "avg_pool2d_backward", "max_pool2d_backward", "conv2d_input_gradient",
        "conv2d_weight_gradient", "batch_norm_stats", "batch_norm_backward_reduce",
        "batch_norm_backward_elemt", "scatter_add", "index_add"],
}

TYPE = r"(\w+)\[([\d, ]*)\]"
VALUES = r"%\w+(?:, %\w+)*"


def typed(text):
    dtype, sizes = re.match(TYPE, text).groups()
    return {"dtype": dtype, "shape": [int(size) for size in sizes.split(",") if size.strip()]}


class Lines:
    """The JSON of a saved program with these lines. Weights and constants are tensors."""

    def __init__(self, lines, tensors):
        self.lines, self.tensors = lines, tensors

    def program(self, arguments):
        names = {value: i for i, (value, _) in enumerate(arguments)}
        made = {"name": "f", "nodes": [], "arguments": [
            self.named(value, its) for value, its in arguments]}
        for line in self.lines:
            line = re.sub(r' @".*', "", line.strip())
            if line.startswith("return"):
                made["returns"] = [names[value] for value in re.findall(r"%\w+", line)]
                return made
            if line:
                self.node(line, names, made["nodes"])

    @staticmethod
    def named(value, its):
        if not value[1:].isdigit():
            its["name"] = value[1:]
        return its

    def node(self, line, names, nodes):
        write, outputs, what, types = re.fullmatch(
            r"(write )?(?:(%s) = )?(.*?)(?: : (%s(?:, %s)*))?" % (VALUES, TYPE, TYPE), line).group(
                1, 2, 3, 4)
        outputs_of = [typed(t[0]) for t in re.findall("(%s)" % TYPE, types or "")]
        node = {"inputs": [], "outputs": outputs_of}
        named = re.fullmatch(r'weight "(.*)"|constant \[(.*)\]', what)
        if named and named[1]:
            node["weight"] = named[1]
        elif named:
            node["constant"] = "c%d" % len(self.tensors)
            its = node["outputs"][0]
            numbers = [float(number) for number in named[2].split(", ")]
            self.tensors[node["constant"]] = np.array(numbers, its["dtype"]).reshape(its["shape"])
        else:
            name, inputs, attributes = re.fullmatch(
                r"(\w+)\((%s)?\)(?: \{(.*)\}?)?" % VALUES, what).groups()
            node["inputs"] = [names[value] for value in (inputs or "").split(", ") if value]
            node["op"] = name
            node["attributes"] = {key: value.strip('"') for key, value in re.findall(
                r'(\w+)=("[^"]*"|[^,}]+)', attributes or "")}
        if write:
            node.update(target=names[outputs], outputs=[])
        else:
            for value, its in zip(outputs.split(", "), node["outputs"]):
                names[value] = max(names.values(), default=-1) + 1
                self.named(value, its)
        nodes.append(node)


def operations():
    """All names of operations: the rows of op_tables.h, and the names of other primitives."""
    def read(path):
        with open(f"common/{path}") as file:
            return file.read()
    names = re.findall(r'Row<[^>]*>\(\s*"(\w+)"', read("kernels/op_tables.h"))
    for header in ("ops/primitive/primitives.h", "ops/nn/primitives.h"):
        for returned in re.findall(r'name\(\) const override \{(.*?)\}', read(header), re.DOTALL):
            names += re.findall(r'"(\w+)"', returned)
    made = read("ops/primitive/replay.cc")
    for several in re.findall(r'for \(const char\* const function : \{(.*?)\}\)', made):
        names += re.findall(r'"(\w+)"', several)
    names += re.findall(r'add\(CopyPrimitive\("(\w+)"', made)
    return set(names) - {"from_vector"}  # a program holds a constant instead


class Operations(unittest.TestCase):

    def test_each_is_compared_with_onnxruntime_or_has_a_reason_not_to_be(self):
        compared = set(re.findall(r"= (\w+)\(", "".join(CASES.values())))
        not_exported = [name for names in NOT_EXPORTED.values() for name in names]
        self.assertGreater(len(operations()), 60)
        self.assertEqual(sorted(list(compared) + not_exported), sorted(operations()))


@unittest.skipIf(MISSING, MISSING)
class ProgramToOnnx(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.random = np.random.default_rng(7)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, body, version=3):
        """Saves a program of these lines; Python's safetensors writes its weights."""
        weights = {"0.weight": self.floats(5, 4), "0.bias": self.floats(5),
                   "1.weight": self.floats(2, 5)}
        arguments = [argument.split(": ") for argument in re.split(", (?=%)", HEAD)]
        program = Lines(iter(body.split("\n")), weights).program(
            [(name, typed(text)) for name, text in arguments])
        program["version"] = version
        safetensors.save_file(weights, self.path("p.safetensors"),
                              {"d2l.program": json.dumps(program)})

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def export(self, *to, code=0):
        done = subprocess.run([sys.executable, SCRIPT, self.path("p"), *to], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def results(self, arguments):
        """The saved program's results, by name, and onnxruntime's, in their order."""
        safetensors.save_file(arguments, self.path("in.safetensors"))
        subprocess.run([RUN, self.path("p"), "--input=" + self.path("in.safetensors"),
                        "--output=" + self.path("out.safetensors")], check=True,
                       stdout=subprocess.DEVNULL)
        ours = safetensors.load_file(self.path("out.safetensors"))
        self.export()
        model = onnx.load(self.path("p.onnx"))
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(self.path("p.onnx"),
                                               providers=["CPUExecutionProvider"])
        self.assertEqual([i.name for i in session.get_inputs()], ["x", "y", "p", "i", "u"])
        names = [output.name for output in session.get_outputs()]
        self.assertEqual(names, ["output_%d" % i for i in range(len(ours))])
        return ours, session.run(names, arguments)

    def test_onnxruntime_computes_the_same(self):
        for name, body in CASES.items():
            with self.subTest(name):
                self.save(body)
                arguments = {"x": self.floats(3, 4), "y": self.floats(3, 4),
                             "p": np.exp(self.floats(3, 4)),
                             "i": self.random.integers(-9, 10, (3, 4)),
                             "u": self.random.integers(0, 3, (3, 4), np.uint8)}
                ours, theirs = self.results(arguments)
                for i, got in enumerate(theirs):
                    wanted = ours["output_%d" % i]
                    self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), i)
                    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-7, err_msg=str(i))

    def test_floor_division_at_its_edges(self):
        huge = 2**63
        floats = np.array([5, -5, 0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 7, -7, 0.3],
                          np.float32)
        cases = [("%x", "%y", {"x": floats.reshape(3, 4), "y": other}) for other in (
            np.full((3, 4), value, np.float32) for value in (np.inf, -np.inf, 3, -3, 0, 0.1))]
        integers = np.array([-huge, huge - 1, 0, 1, -1, 7, -7, 9, -9, 2, -2, 6], np.int64)
        cases.append(("%i", "-1", {"i": integers.reshape(3, 4)}))
        cases.append(("%i", "-3", {"i": integers.reshape(3, 4)}))
        for a, b, given in cases:
            kind = "float32" if a == "%x" else "int64"
            call = "(%s, %s)" % (a, b) if b[0] == "%" else "(%s) {second=%s}" % (a, b)
            arguments = {"x": self.floats(3, 4), "y": self.floats(3, 4), "p": self.floats(3, 4),
                         "i": np.ones((3, 4), np.int64), "u": np.ones((3, 4), np.uint8), **given}
            self.save("\n  %%0 = floor_divide%s : %s[3, 4]\n  return %%0" % (call, kind))
            ours, theirs = self.results(arguments)
            np.testing.assert_array_equal(theirs[0], ours["output_0"], err_msg=str((a, b, given)))

    def test_what_cannot_be_exported(self):
        self.save("\n  write %x = add(%x) {second=1}\n  return %x")
        self.assertIn('"add" cannot be exported: it writes in place', self.export(code=1))
        self.save("\n  %0 = rand() {shape=\"(2)\", dtype=float32, device=cpu:0} : float32[2]\n"
                  "  return %0")
        self.assertIn('the operation "rand" cannot be exported', self.export(code=1))
        for line in ("relu(%u) : uint8[3, 4]", "neg(%u) : uint8[3, 4]",
                     "pow(%u) {second=2} : uint8[3, 4]"):
            self.save("\n  %%0 = %s\n  return %%0" % line)
            self.assertIn("cannot be exported for uint8; ONNX has it for int64",
                          self.export(code=1))
        self.save("\n  %0 = to(%x) {shape=\"(3, 4)\", dtype=float64, device=cpu:0} : "
                  "float64[3, 4]\n  %1 = gelu(%0) : float64[3, 4]\n  return %1")
        self.assertIn("\"gelu\" cannot be exported for float64; onnxruntime has it for float32",
                      self.export(code=1))
        self.save("\n  return %x", version=2)
        self.assertIn("the program is of version 2; this script reads 3", self.export(code=1))
        self.save("\n  %w = weight \"none\" : float32[2]\n  return %w")
        self.assertIn("the file is damaged (KeyError('none'))", self.export(code=1))
        safetensors.save_file({"w": self.floats(2)}, self.path("p.safetensors"))
        self.assertIn("it holds tensors, and no program", self.export(code=1))
        os.remove(self.path("p.safetensors"))
        self.assertIn("No such file", self.export(code=1))

    def test_the_program_is_not_overwritten(self):
        self.save("\n  return %x")
        os.symlink("p.safetensors", self.path("link"))
        before = pathlib.Path(self.path("p.safetensors")).read_bytes()
        for to in ("p.safetensors", "link"):
            self.assertIn("is the program; name another file for the model",
                          self.export(self.path(to), code=1))
        self.assertEqual(pathlib.Path(self.path("p.safetensors")).read_bytes(), before)

    def test_numbers(self):
        nan = program_to_onnx.number("0x7fc00001", np.dtype(np.float32))
        self.assertEqual(nan.view(np.uint32), 0x7fc00001)


if __name__ == "__main__":
    unittest.main(verbosity=2)
