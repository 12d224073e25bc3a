"""The cells in NumPy, with float32 throughout: see peer.py and pytorch_cells.py.

NumPy has neither softmax nor relu; relu is a maximum with 0.
"""
import numpy as np

RNG = np.random.default_rng(1)


def set_up(threads, device):
    """The library's name, and no function that waits. Its BLAS takes the number of
    threads from the environment, which peer.py's caller sets."""
    if device != "cpu":
        raise ValueError("NumPy has no %s" % device)
    return "NumPy " + np.__version__, None


def rand(*shape):
    return RNG.random(shape, dtype=np.float32)


def randn(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def tiny_products():
    x = rand(3, 3)

    def run():
        for _ in range(10_000):
            x @ x.T

    return run


def draw_and_multiply():

    def run():
        for _ in range(20_000):
            x = rand(10, 10)
            y = x * x

    return run


def assign_rows():

    def run():
        for _ in range(20):
            v = np.zeros((1000, 10, 10), np.float32)
            for j in range(1000):
                v[j] = rand(10, 10)
            v * v

    return run


def matrices():
    a = [rand(10, 10) for _ in range(100)]
    b = [[rand(10, 10) for _ in range(100)] for _ in range(200)]
    return a, b


def stacked_matrices():
    a, b = matrices()

    def run():
        res = np.zeros((200, 10, 10, 100), np.float32)
        a_array = np.dstack(a)
        for i in range(200):
            res[i] = a_array * np.dstack(b[i])

    return run


def matrices_one_by_one():
    a, b = matrices()

    def run():
        res_slow = np.zeros((200, 10, 10, 100), np.float32)
        for i in range(200):
            for j in range(100):
                res_slow[i, :, :, j] = a[j] * b[i][j]

    return run


def randn_matmul():

    def run():
        for _ in range(10):
            a = randn(1000, 1000)
            a @ a

    return run


def add_one():
    x = np.ones((1, 2), np.float32)

    def run():
        for _ in range(10_000):
            y = x + 1

    return run


def add_arrays():
    x = np.ones(1, np.float32)
    y = np.ones(1, np.float32)

    def run():
        for _ in range(10_000):
            z = x + y

    return run


def product(m, k, n, count):

    def setup():
        a = rand(m, k)
        b = rand(k, n)

        def run():
            for _ in range(count):
                a @ b

        return run

    return setup


def draw(function, n):
    return lambda: lambda: function(n)


def multiply_and_add():
    x = rand(10_000_000)
    y = rand(10_000_000)
    return lambda: x * y + 2


def sum_of_all():
    x = rand(10_000_000)
    return x.sum


def on_normals(function, shape, count):

    def setup():
        x = randn(*shape)

        def run():
            for _ in range(count):
                function(x)

        return run

    return setup


def add_bias():
    x = randn(256, 128)
    bias = randn(128)

    def run():
        for _ in range(100):
            x + bias

    return run


# The set-up, which returns the timed function; and how many units that does.
CELLS = {
    "003_c5": (tiny_products, 10_000),
    "003_c18": (draw_and_multiply, 20_000),
    "003_c20": (assign_rows, 20_000),
    "003_c21_vectorised": (stacked_matrices, 1),
    "003_c21_loop": (matrices_one_by_one, 1),
    "000_In6": (product(100, 100, 100, 20_000), 20_000),
    "004_In4": (randn_matmul, 1),
    "d2l_t1t2t3_each": (add_one, 10_000),
    "d2l_t1t2t3_once": (add_one, 10_000),
    "add_1": (add_arrays, 10_000),
    "mm_1000": (product(1000, 1000, 1000, 1), 1),
    "mm_256": (product(256, 256, 256, 100), 100),
    "mm_1x512_512x256": (product(1, 512, 256, 1000), 1000),
    "randn_1e6": (draw(randn, 1_000_000), 1_000_000),
    "randn_1e7": (draw(randn, 10_000_000), 10_000_000),
    "rand_1e6": (draw(rand, 1_000_000), 1_000_000),
    "rand_1e7": (draw(rand, 10_000_000), 10_000_000),
    "mul_add_1e7": (multiply_and_add, 1),
    "sum_1e7": (sum_of_all, 1),
    "exp_1e6": (on_normals(np.exp, (1_000_000,), 10), 10),
    "tanh_1e6": (on_normals(np.tanh, (1_000_000,), 10), 10),
    "bias_256x128": (add_bias, 100),
    "transpose_1000": (on_normals(lambda x: np.ascontiguousarray(x.T), (1000, 1000), 10), 10),
    "relu_1e6": (on_normals(lambda x: np.maximum(x, 0), (1_000_000,), 10), 10),
}
