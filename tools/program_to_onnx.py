#!/usr/bin/env python3
"""Makes an ONNX model of a saved program.

Usage: tools/program_to_onnx.py my_mlp [my_mlp.onnx]

Reads my_mlp.safetensors, and writes my_mlp.onnx. Needs numpy and onnx: pip install onnx.
The file is described in common/graph/saved/saved.h.
The model's inputs are called as the program's arguments are, and its outputs output_0,
output_1, ....
"""
import json
import os
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 18
VERSION = 3
DTYPES = {"float32": np.float32, "float64": np.float64, "int64": np.int64, "uint8": np.uint8}
SAFETENSORS = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8}

UNARY = {"neg": "Neg", "abs": "Abs", "relu": "Relu", "exp": "Exp", "log": "Log", "sqrt": "Sqrt",
         "tanh": "Tanh", "sigmoid": "Sigmoid", "clone": "Identity", "contiguous": "Identity"}
BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "pow": "Pow",
          "maximum": "Max", "minimum": "Min"}
COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
               "ge": "GreaterOrEqual"}
REDUCTIONS = {"sum": "ReduceSum", "mean": "ReduceMean", "amax": "ReduceMax", "amin": "ReduceMin"}
# The shape of the result, for any inputs.
RESHAPES = ("view", "squeeze", "unsqueeze")
POOLS = {"avg_pool2d": "AveragePool", "max_pool2d": "MaxPool"}
# What ONNX does not define for a dtype, or onnxruntime does not have; and what does instead.
MISSING = {"uint8": (("neg", "relu", "pow"), "ONNX has it for int64: To(x, DType::kInt64)"),
           "float64": (("ndtr", "gelu", "conv2d", "avg_pool2d"),
                       "onnxruntime has it for float32: To(net, DType::kFloat32)")}


class Wrong(Exception):
    """The file is no program, or the program cannot be exported."""


class Type:
    """Has no strides and no device, because ONNX has none."""

    def __init__(self, value):
        if value["dtype"] not in DTYPES:
            raise Wrong("no dtype is called %s" % value["dtype"])
        self.dtype = np.dtype(DTYPES[value["dtype"]])
        self.shape = value["shape"]

    def onnx(self):
        return helper.np_dtype_to_tensor_dtype(self.dtype)


class Operation:
    """An operation with one result."""

    def __init__(self, node):
        self.name = node["op"]
        self.attributes = node["attributes"]
        if "target" in node:
            raise Wrong("the operation \"%s\" cannot be exported: it writes in place" % self.name)
        self.type = Type(node["outputs"][0])

    def dims(self, name):
        return [int(d) for d in self.attributes[name].strip("()").split(",") if d.strip()]


def number(text, dtype):
    if text.startswith("0x"):  # the bits of a NaN
        unsigned = np.uint32 if dtype == np.float32 else np.uint64
        return np.array([int(text, 16)], unsigned).view(dtype)[0]
    return dtype.type(float(text) if dtype.kind == "f" else int(text))


def read(path):
    """Reads a saved program, and its tensors."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    size = int.from_bytes(data[:8], "little")
    header = json.loads(bytes(data[8:8 + size]))
    metadata = header.pop("__metadata__", {})
    if "d2l.program" not in metadata:
        raise Wrong("it holds tensors, and no program; save one: net.Save(\"my_mlp\")")
    program = json.loads(metadata["d2l.program"])
    if program["version"] != VERSION:
        raise Wrong("the program is of version %s; this script reads %d" % (
            program["version"], VERSION))
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in SAFETENSORS:
            raise Wrong("the tensor \"%s\" is of the dtype %s; a program's are %s" % (
                name, entry["dtype"], ", ".join(SAFETENSORS)))
        tensors[name] = np.frombuffer(data[8 + size:][begin:end], SAFETENSORS[
            entry["dtype"]]).reshape(entry["shape"])
    return program, tensors


class Exporter:
    """Writes the nodes of a program."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.nodes, self.initializers, self.names = [], [], set()

    def new_name(self, wanted):
        name, i = wanted, 0
        while name in self.names:
            i += 1
            name = "%s_%d" % (wanted, i)
        self.names.add(name)
        return name

    def constant(self, array, name="constant"):
        name = self.new_name(name)
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(
            np.shape(array)), name))
        return name

    def add(self, op, inputs, name="value", **attributes):
        output = self.new_name(name)
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def cast(self, value, dtype):
        return self.add("Cast", [value], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def ndtr(self, x, dtype, name="value"):
        """The part of the normal distribution below x."""
        half, one, root = (self.constant(dtype.type(c)) for c in (0.5, 1, np.sqrt(2)))
        twice = self.add("Add", [one, self.add("Erf", [self.add("Div", [x, root])])])
        return self.add("Mul", [twice, half], name)

    def floor_divide(self, a, b, dtype, name):
        """Of floats, a multiple of b is divided, and the quotient rounded, as PyTorch does."""
        if dtype.kind == "u":
            return self.add("Div", [a, b], name)
        zero, one = (self.constant(dtype.type(c)) for c in (0, 1))
        divisor = b
        if dtype.kind == "i":  # ONNX's Div rounds towards 0
            # The smallest integer divided by -1 ends onnxruntime.
            negated = self.add("Equal", [b, self.constant(dtype.type(-1))])
            divisor = self.add("Where", [negated, one, b])
            quotient = self.add("Div", [a, divisor])
            rest = self.add("Sub", [a, self.add("Mul", [quotient, divisor])])
        else:
            rest = self.add("Mod", [a, b], fmod=1)
            quotient = self.add("Div", [self.add("Sub", [a, rest]), b])
        # The rest has the sign of a. If that is not b's, the next integer below is right.
        signs = [self.add("Less", [x, zero]) for x in (rest, divisor)]
        other = self.add("And", [self.add("Not", [self.add("Equal", [rest, zero])]),
                                 self.add("Xor", signs)])
        floor = self.add("Where", [other, self.add("Sub", [quotient, one]), quotient])
        if dtype.kind == "i":
            return self.add("Where", [negated, self.add("Neg", [a]), floor], name)
        by_zero = self.add("Equal", [b, zero])
        return self.add("Where", [by_zero, self.add("Div", [a, b]),
                                  self.add("Round", [floor])], name)

    def program(self, program, arguments):
        """Arguments and results are pairs of a name and a type."""
        values = list(arguments)
        for node in program["nodes"]:
            inputs = [values[i] for i in node["inputs"]]
            if "op" in node:
                operation = Operation(node)
                name = node["outputs"][0].get("name", operation.name)
                values.append((self.operation(operation, inputs, name), operation.type))
            else:
                kind = "weight" if "weight" in node else "constant"
                name = self.constant(self.tensors[node[kind]], node[kind])
                values.append((name, Type(node["outputs"][0])))
        return [values[i] for i in program["returns"]]

    def operation(self, node, inputs, name):
        to = node.type
        values = [value for value, _ in inputs]
        of = inputs[0][1] if inputs else None
        missing, instead = MISSING.get(of.dtype.name if of else "", ((), ""))
        if node.name in missing:
            raise Wrong("the operation \"%s\" cannot be exported for %s; %s" % (
                node.name, of.dtype.name, instead))
        if node.name in UNARY:
            return self.add(UNARY[node.name], values, name)
        if node.name == "square":
            return self.add("Mul", values * 2, name)
        if node.name == "ndtr":
            return self.ndtr(values[0], to.dtype, name)
        if node.name == "gelu":
            return self.add("Mul", values + [self.ndtr(values[0], to.dtype)], name)
        if node.name in BINARY or node.name in COMPARISONS or node.name in ("ne", "floor_divide"):
            for at, key in ((0, "first"), (1, "second")):
                if key in node.attributes:
                    dtype = to.dtype if node.name == "div" else of.dtype
                    values.insert(at, self.constant(number(node.attributes[key], dtype)))
            if node.name == "floor_divide":
                return self.floor_divide(*values, of.dtype, name)
            if node.name in BINARY:
                if of.dtype != to.dtype:  # true division of integers
                    values = [self.cast(value, to.dtype) for value in values]
                return self.add(BINARY[node.name], values, name)
            truth = self.add(COMPARISONS.get(node.name, "Equal"), values)
            if node.name == "ne":
                truth = self.add("Not", [truth])
            return self.cast(truth, np.uint8)
        if node.name == "where":
            for at, key in ((1, "input"), (2, "other")):
                if key in node.attributes:
                    values.insert(at, self.constant(number(node.attributes[key], to.dtype)))
            return self.add("Where", [self.cast(values[0], np.bool_)] + values[1:], name)
        if node.name == "matmul":
            return self.add("MatMul", values, name)
        if node.name in ("softmax", "log_softmax"):
            op = "Softmax" if node.name == "softmax" else "LogSoftmax"
            return self.add(op, values, name, axis=int(node.attributes["dim"]))
        if node.name in REDUCTIONS:
            if of.dtype != to.dtype:
                values = [self.cast(values[0], to.dtype)]
            if node.attributes["dim"] != "all":
                values.append(self.constant(np.array(node.dims("dim"), np.int64)))
            return self.add(REDUCTIONS[node.name], values, name,
                            keepdims=int(node.attributes["keepdim"] == "true"))
        if node.name == "transpose":
            order = list(range(len(of.shape)))
            a, b = int(node.attributes["dim0"]), int(node.attributes["dim1"])
            if order:
                order[a], order[b] = order[b], order[a]
            return self.add("Transpose", values, name, perm=order)
        if node.name in RESHAPES or node.name == "expand":
            shape = self.constant(np.array(to.shape, np.int64))
            return (self.add("Expand", values + [shape], name) if node.name == "expand" else
                    self.add("Reshape", values + [shape], name, allowzero=1))
        if node.name in ("slice", "select"):
            a = {key: int(value) for key, value in node.attributes.items()}
            if node.name == "select":
                return self.add("Gather", values + [self.constant(np.int64(a["index"]))], name,
                                axis=a["dim"])
            slices = [self.constant(np.array([a[key]], np.int64))
                      for key in ("start", "end", "dim", "step")]
            return self.add("Slice", values + slices, name)
        if node.name in ("gather", "index_select"):
            return self.add("GatherElements" if node.name == "gather" else "Gather", values, name,
                            axis=int(node.attributes["dim"]))
        if node.name == "argmax":
            axis = 0
            if node.attributes["dim"] == "all":
                values = [self.add("Reshape", values + [self.constant(np.array([-1], np.int64))])]
            else:
                axis, = node.dims("dim")
            first = self.add("ArgMax", values, axis=axis)
            shape = self.constant(np.array(to.shape, np.int64))
            return self.add("Reshape", [first, shape], name, allowzero=1)
        if node.name == "conv2d" or node.name in POOLS:
            window = {"strides": node.dims("stride"), "pads": node.dims("padding") * 2}
            if node.name == "conv2d":
                return self.add("Conv", values, name, **window)
            window["kernel_shape"] = node.dims("kernel_size")
            if node.name == "avg_pool2d":
                window["count_include_pad"] = 1
            return self.add(POOLS[node.name], values, name, **window)
        if node.name == "batch_norm":
            x, statistics, weight, bias = values
            rows = [self.add("Gather", [statistics, self.constant(np.int64(i))]) for i in (0, 1)]
            return self.add("BatchNormalization", [x, weight, bias] + rows, name,
                            epsilon=float(node.attributes["eps"]))
        if node.name == "cat":
            return self.add("Concat", values, name, axis=int(node.attributes["dim"]))
        if node.name == "to":
            return self.add("Cast", values, name, to=to.onnx())
        if node.name == "arange":
            start, step = (number(node.attributes[key], to.dtype) for key in ("start", "step"))
            return self.constant(start + np.arange(to.shape[0]).astype(to.dtype) * step, name)
        if node.name == "eye":
            return self.constant(np.eye(*to.shape, dtype=to.dtype), name)
        if node.name in ("full", "zeros", "ones"):
            return self.constant(np.full(to.shape, number(node.attributes["fill_value"], to.dtype)),
                                 name)
        raise Wrong("the operation \"%s\" cannot be exported" % node.name)


def export(prefix):
    """The ONNX model of a saved program."""
    program, tensors = read(prefix + ".safetensors")
    exporter = Exporter(tensors)
    inputs, outputs = [], []
    exporter.names.update("output_%d" % i for i in range(len(program["returns"])))
    for i, argument in enumerate(program["arguments"]):
        inputs.append((exporter.new_name(argument.get("name", str(i))), Type(argument)))
    for i, (value, type_) in enumerate(exporter.program(program, inputs)):
        outputs.append(("output_%d" % i, type_))
        exporter.nodes.append(helper.make_node("Identity", [value], ["output_%d" % i]))
    described = [[helper.make_tensor_value_info(name, type_.onnx(), type_.shape)
                  for name, type_ in all_of]
                 for all_of in (inputs, outputs)]
    graph = helper.make_graph(exporter.nodes, os.path.basename(prefix), *described,
                              exporter.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                              ir_version=8, producer_name="d2l")
    onnx.checker.check_model(model, full_check=True)
    return model


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0].startswith("-"):
        sys.exit(__doc__)
    here = os.environ.get("BUILD_WORKING_DIRECTORY", "")
    prefix, to = (os.path.join(here, p) for p in (arguments + [arguments[0] + ".onnx"])[:2])
    source = prefix + ".safetensors"
    if os.path.exists(to) and os.path.exists(source) and os.path.samefile(to, source):
        sys.exit("program_to_onnx.py: %s is the program; name another file for the model" % to)
    try:
        onnx.save(export(prefix), to)
    except (Wrong, OSError) as error:
        sys.exit("program_to_onnx.py: %s: %s" % (prefix, error))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError,
            MemoryError) as error:
        # run_program's loader names the wrong node, and the reason.
        sys.exit("program_to_onnx.py: %s: the file is damaged (%r). To see where: "
                 "bazel run //tools:run_program -- %s" % (prefix, error, prefix))
    print("Wrote %s." % to)


if __name__ == "__main__":
    main(sys.argv[1:])
