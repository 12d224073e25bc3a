"""The cells that are compared, and their aims.

The work itself is in cells_benchmark.cc, parallel_cells_benchmark.cc, and the
peers' *_cells.py, under the same names. A name that begins with a number is a cell of the course.
"""
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class On:
    """The bound and the aim of a cell on a kind of device.

    At most one of the aims is set.
    """
    bound: Optional[str] = None  # a benchmark; None: what the device's peaks need
    aim_ns: Optional[float] = None
    aim_bounds: Optional[float] = None  # an aim that is a multiple of the bound
    aim_ratio: Optional[float] = None  # the first peer takes at least this many times as long

    def aim(self, bound_ns, peer_ns):
        """The longest that ours may take, in ns; None without an aim, or
        without the figure that the aim is relative to."""
        if self.aim_bounds is not None:
            return None if bound_ns is None else self.aim_bounds * bound_ns
        if self.aim_ratio is not None:
            return None if peer_ns is None else peer_ns / self.aim_ratio
        return self.aim_ns


@dataclass(frozen=True)
class Cell:
    name: str
    per: str  # what the figures are per
    in_turn: Optional[str] = None  # the same with one device at a time: a benchmark
    cpu: On = On()
    cuda: On = On()
    device_count: int = 1

    def on(self, kind):
        return {"cpu": self.cpu, "cuda": self.cuda}[kind]

    def has_ours_all(self, kind):
        """Whether the cell also runs on one device that has all cores."""
        return kind == "cpu" and self.device_count == 1


# On a GPU, launches limit small operations, arithmetic limits large products.
LAUNCHES = On(aim_ratio=1.5)
COMPUTES = On(aim_ratio=0.98)
# The others should reach 85 % of the memory's bandwidth, measured by copies.
MOVES = On(aim_bounds=1 / 0.85)

CELLS = [
    Cell("003_c5", "product 3x3 @ transposed", cpu=On(aim_ns=180), cuda=LAUNCHES),
    Cell("003_c5_profiled", "the same under the profiler",
         cpu=On(bound="003_c5", aim_bounds=1.5)),
    Cell("003_c18", "x = rand(10, 10), x * x", cpu=On(aim_ns=300), cuda=LAUNCHES),
    Cell("003_c20", "v[j] = rand(10, 10)", cpu=On(aim_ns=350), cuda=LAUNCHES),
    Cell("003_c21_vectorised", "f(), 200 stacks of 100", cpu=On(aim_ns=4e6)),
    Cell("003_c21_loop", "f(), 20,000 assignments", cpu=On(aim_ns=8e6), cuda=LAUNCHES),
    Cell("000_In6", "product 100x100", cpu=On(aim_bounds=1.5), cuda=LAUNCHES),
    Cell("000_In6_two_devices", "two products, one on each of two devices",
         in_turn="000_In6_in_turn", device_count=2),
    Cell("004_In4", "10 x (randn(1000, 1000), product)", cuda=COMPUTES),
    Cell("d2l_t1t2t3_each", "x + 1, waited for"),
    Cell("d2l_t1t2t3_once", "x + 1", cuda=LAUNCHES),
    Cell("add_1", "x + y of one element", cpu=On(aim_ns=150), cuda=LAUNCHES),
    Cell("mm_1000", "product 1000x1000", cuda=COMPUTES),
    Cell("mm_256", "product 256x256"),
    Cell("mm_1x512_512x256", "product"),
    Cell("randn_1e6", "element", cpu=On(aim_ns=1e9 / 900e6), cuda=MOVES),
    Cell("randn_1e7", "element", cpu=On(aim_ns=1e9 / 900e6), cuda=MOVES),
    Cell("rand_1e6", "element", cpu=On(aim_ns=1e9 / 1600e6), cuda=MOVES),
    Cell("rand_1e7", "element", cpu=On(aim_ns=1e9 / 1600e6), cuda=MOVES),
    Cell("mul_add_1e7", "x * y + 2", cpu=On(aim_ns=15e6), cuda=MOVES),
    Cell("sum_1e7", "sum", cpu=On(aim_bounds=1.5)),
    Cell("exp_1e6", "exp", cuda=MOVES),
    Cell("tanh_1e6", "tanh", cuda=MOVES),
    Cell("softmax_128x1000", "softmax of the rows"),
    Cell("bias_256x128", "(256, 128) + (128)"),
    Cell("transpose_1000", "transposed copy"),
    Cell("relu_1e6", "relu", cuda=MOVES),
    Cell("mul_1e7", "x * y"),
    # Compiled programs. The peer's captured ones are frozen TorchScript; its
    # generated ones are torch.compile's.
    Cell("mlp_8_eager", "call of layers of 8, 4, 2 and 2"),
    Cell("mlp_8_captured", "the same"),
    Cell("mlp_8_generated", "the same"),
    Cell("mlp_128_eager", "call of layers of 128, 64, 32 and 2"),
    Cell("mlp_128_captured", "the same"),
    Cell("mlp_128_generated", "the same"),
    Cell("mlp_512_eager", "call of layers of 512, 256, 128 and 2"),
    Cell("mlp_512_captured", "the same"),
    Cell("mlp_512_generated", "the same"),
    Cell("mlp_step", "step of training of layers of 512, 256, 128 and 2, one image",
         cpu=On(aim_ratio=8), cuda=LAUNCHES),
    Cell("lenet_step", "step of training of LeNet, 256 images", cpu=On(aim_ratio=2)),
    Cell("resnet18_step", "step of training of ResNet-18, 32 images", cpu=On(aim_ratio=1.1)),
    # The peers' are processes of one thread each, which exchange gradients by gloo.
    Cell("ddp_lenet", "step of training of LeNet on two devices, 256 images",
         in_turn="ddp_lenet_in_turn",
         cpu=On(bound="bound_ddp_lenet", aim_ratio=2), device_count=2),
    Cell("allreduce_64MB_2", "sum of 64 MiB of each of 2 devices",
         cpu=On(aim_ratio=4), device_count=2),
    Cell("allreduce_64MB_4", "sum of 64 MiB of each of 4 devices",
         cpu=On(aim_ratio=4), device_count=4),
    Cell("chain_1e7_eager", "x = (x + y) * 0.5, five times"),
    Cell("chain_1e7_captured", "the same", cpu=On(aim_bounds=2.3)),
    Cell("chain_1e7_generated", "the same", cpu=On(aim_bounds=1.5)),
]
