#!/usr/bin/env python3
"""Runs cuda_configure.bzl, which Python understands as well, on folders with fake toolkits."""
import os
import pathlib
import tempfile
import types
import unittest
from unittest import mock

FOLDER = os.path.dirname(os.path.abspath(__file__))


def load_bzl(name):
    """The names that a .bzl file defines."""
    names = {"attr": mock.MagicMock(), "repository_rule": mock.MagicMock()}

    def load(label, *wanted):
        loaded = load_bzl(label.lstrip(":"))
        names.update({key: loaded[key] for key in wanted})

    names["load"] = load
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        exec(file.read(), names)  # pylint: disable=exec-used
    return names


CUDA_CONFIGURE = load_bzl("cuda_configure.bzl")["_cuda_configure_impl"]


class Machine:
    """The repository_ctx of a machine whose files are below a folder."""

    name = "local_cuda"

    def __init__(self, folder, environment, gcc):
        self.root, self.gcc = pathlib.Path(folder), gcc
        self.os = types.SimpleNamespace(environ=environment)
        self.files, self.links = {}, {}

    def path(self, name):
        real = self.root / str(name).lstrip("/")
        return types.SimpleNamespace(exists=real.exists(), real=real)

    def which(self, program):
        found = self.path("/usr/bin/" + program)
        if not found.exists:
            return None
        real = "/" / found.real.resolve().relative_to(self.root.resolve())
        folder = types.SimpleNamespace(dirname=real.parent.parent)
        return types.SimpleNamespace(realpath=types.SimpleNamespace(dirname=folder))

    def read(self, name):
        return self.path(name).real.read_text(encoding="utf-8")

    def execute(self, command, environment=None):
        del environment
        said = self.gcc if command[0] == "gcc" else self.read(command[0])
        return types.SimpleNamespace(return_code=0, stdout=said)

    def file(self, name, text):
        self.files[name] = text

    def symlink(self, target, name):
        self.links[name] = target


class CudaConfigureTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, path, text=""):
        path = self.folder / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def toolkit(self, root, version="12.4.131", libraries="/lib64", newest_gcc=13):
        """A toolkit without NVTX; incomplete if libraries is None."""
        major_minor = ".".join(version.split(".")[:2])
        self.write(root + "/bin/nvcc", "nvcc: NVIDIA (R) Cuda compiler driver\n"
                   "Build cuda_%s.r%s/compiler.1_0\n" % (version, major_minor))
        self.write(root + "/include/crt/host_config.h",
                   "#if __GNUC__ > %d\n#error unsupported\n" % newest_gcc)
        if libraries:
            self.write(root + libraries + "/libcudart_static.a")

    def configure(self, gcc="12.2.0\n", **environment):
        """Returns what was written of the toolkit."""
        self.machine = Machine(self.folder, environment, gcc)
        CUDA_CONFIGURE(self.machine)
        names = {"struct": types.SimpleNamespace}
        exec(self.machine.files["toolkit.bzl"], names)  # pylint: disable=exec-used
        return names["TOOLKIT"]

    def expect(self, nvcc, library_folder, **options):
        toolkit = self.configure(**options)
        self.assertEqual((toolkit.problem, toolkit.nvcc), ("", nvcc))
        self.assertIn('["-L%s", "-lcudart_static"' % library_folder, self.machine.files["BUILD"])
        return toolkit

    def expect_problem(self, *words, **environment):
        toolkit = self.configure(**environment)
        for word in words:
            self.assertIn(word, toolkit.problem)
        self.assertEqual(self.machine.files["BUILD"].count("\nmissing_library("), 4)

    def test_none(self):
        self.expect_problem("no nvcc was found (looked at CUDA_PATH, CUDA_HOME, PATH, /usr/")
        self.expect_problem("looked at CUDA_PATH=/opt/no, ", CUDA_PATH="/opt/no")
        self.toolkit("/usr/local/cuda")
        self.expect_problem("CUDA_PATH=none", CUDA_PATH="none")

    def test_of_nvidia(self):
        self.toolkit("/usr/local/cuda", version="12.4.131")
        toolkit = self.expect("/usr/local/cuda/bin/nvcc", "/usr/local/cuda/lib64")
        self.assertIn("cuda_12.4.131.r12.4", toolkit.version)
        self.assertEqual(self.machine.links, {"include": "/usr/local/cuda/include"})
        self.assertIn("has no NVTX: install it", self.machine.files["BUILD"])
        self.write("/usr/local/cuda/include/nvtx3/nvToolsExt.h")
        self.configure()
        self.assertNotIn("missing_library(\n", self.machine.files["BUILD"])

    def test_of_a_distribution(self):
        self.toolkit("/usr", libraries="/lib/x86_64-linux-gnu")
        self.expect("/usr/bin/nvcc", "/usr/lib/x86_64-linux-gnu")
        self.assertEqual(self.machine.links, {})
        self.folder.joinpath("usr/lib").rename(self.folder / "elsewhere")
        self.toolkit("/usr", libraries="/lib/aarch64-linux-gnu")
        self.expect("/usr/bin/nvcc", "/usr/lib/aarch64-linux-gnu")

    def test_of_a_link(self):
        self.toolkit("/opt/cuda-13.0", version="13.0.48", libraries="/targets/x86_64-linux/lib")
        self.folder.joinpath("usr/bin").mkdir(parents=True)
        self.folder.joinpath("usr/bin/nvcc").symlink_to(self.folder / "opt/cuda-13.0/bin/nvcc")
        self.expect("/opt/cuda-13.0/bin/nvcc", "/opt/cuda-13.0/targets/x86_64-linux/lib")

    def test_the_first_that_is_complete(self):
        self.toolkit("/usr", libraries=None)
        self.expect_problem("in /usr has no libcudart_static.a in /usr/lib64, ",
                            "install the rest of it")
        self.toolkit("/usr/local/cuda")
        self.expect("/usr/local/cuda/bin/nvcc", "/usr/local/cuda/lib64")
        self.toolkit("/opt/home")
        self.expect("/opt/home/bin/nvcc", "/opt/home/lib64", CUDA_HOME="/opt/home/")
        self.toolkit("/opt/path")
        self.expect("/opt/path/bin/nvcc", "/opt/path/lib64", CUDA_HOME="/opt/home",
                    CUDA_PATH="/opt/path")

    def test_too_old(self):
        self.toolkit("/usr/local/cuda", version="11.8.89")
        self.expect_problem("in /usr/local/cuda is 11.8.89, and this needs CUDA 12.0 or newer")
        self.toolkit("/usr/local/cuda", version="12.0.76")
        self.expect("/usr/local/cuda/bin/nvcc", "/usr/local/cuda/lib64")

    def test_a_gcc_that_nvcc_refuses(self):
        self.toolkit("/usr/local/cuda", newest_gcc=13)
        self.assertEqual(self.configure(gcc="13.3.0\n").host_problem, "")
        self.assertEqual(self.configure(gcc="14.2.0\n").host_problem,
                         "CUDA 12.4.131 takes gcc up to 13; found 14. Install g++-13 and set "
                         "--//:cuda_ccbin=/usr/bin/g++-13.")
        self.write("/usr/bin/g++-12")
        self.assertIn("found 14. Set --//:cuda_ccbin=/usr/bin/g++-12.",
                      self.configure(gcc="14").host_problem)


if __name__ == "__main__":
    unittest.main()
