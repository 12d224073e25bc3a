"""The cells that are compared, what is aimed at, and what bounds them.

The work itself is in cells_benchmark.cc, pytorch_cells.py and numpy_cells.py,
under the same names. What begins with a number is a cell of the course.
"""
from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Cell:
    name: str
    per: str  # what the figures are per
    aim_ns: Optional[float] = None
    aim_bounds: Optional[float] = None  # an aim that is a multiple of the bound
    bound: Optional[str] = None  # a benchmark, ...
    bound_items: float = 1  # ... and how many of its items bound this cell
    flop: Optional[float] = None
    in_turn: Optional[str] = None  # the same one after the other: a benchmark

    def aim(self, bound_ns):
        if self.aim_bounds is None:
            return self.aim_ns
        return None if bound_ns is None else self.aim_bounds * bound_ns


# Reads x and y and writes x * y, reads that and writes x * y + 2.
MUL_ADD_BYTES = (3 + 2) * 4e7

CELLS = [
    Cell("003_c5", "product 3x3 @ transposed", aim_ns=180, bound="bound_sgemm_3"),
    Cell("003_c18", "x = rand(10, 10), x * x", aim_ns=300),
    Cell("003_c20", "v[j] = rand(10, 10)", aim_ns=350),
    Cell("003_c21_vectorised", "f(), 200 stacks of 100", aim_ns=4e6),
    Cell("003_c21_loop", "f(), 20,000 assignments", aim_ns=8e6),
    Cell("000_In6", "product 100x100", aim_bounds=1.05, bound="bound_sgemm_100", flop=2e6),
    Cell("000_In6_two_devices", "two products, on cpu:0 and cpu:1", bound="bound_sgemm_100",
         flop=4e6, in_turn="000_In6_in_turn"),
    Cell("004_In4", "10 x (randn(1000, 1000), product)"),
    Cell("d2l_t1t2t3_each", "x + 1, waited for"),
    Cell("d2l_t1t2t3_once", "x + 1"),
    Cell("add_1", "x + y of one element", aim_ns=150),
    Cell("mm_1000", "product 1000x1000", flop=2e9),
    Cell("mm_256", "product 256x256", flop=2 * 256**3),
    Cell("mm_1x512_512x256", "product", flop=2 * 512 * 256),
    Cell("randn_1e6", "element", aim_ns=1e9 / 900e6),
    Cell("randn_1e7", "element", aim_ns=1e9 / 900e6),
    Cell("rand_1e6", "element", aim_ns=1e9 / 1600e6),
    Cell("rand_1e7", "element", aim_ns=1e9 / 1600e6),
    Cell("mul_add_1e7", "x * y + 2", aim_ns=15e6, bound="bound_copy", bound_items=MUL_ADD_BYTES),
    Cell("sum_1e7", "sum", aim_bounds=1.1, bound="bound_read", bound_items=4e7),
    Cell("exp_1e6", "exp"),
    Cell("tanh_1e6", "tanh"),
    Cell("softmax_128x1000", "softmax of the rows"),
    Cell("bias_256x128", "(256, 128) + (128)"),
    Cell("transpose_1000", "transposed copy"),
    Cell("relu_1e6", "relu"),
]
