"""The cells in PyTorch: see peer.py. The course's cells are its own code."""
import functools
import warnings

import torch

import pytorch_nets
import pytorch_ranks

# These make tensors on set_up's device. On a CPU they are torch's own.
rand, randn, zeros, ones = torch.rand, torch.randn, torch.zeros, torch.ones

# Waits for that device; None on a CPU, where a call returns when it is done.
synchronize = None


def set_up(threads, device):
    """The library's name, and a function that waits for the device. Throws torch's own
    error if it cannot run there."""
    global rand, randn, zeros, ones, synchronize
    torch.set_num_threads(threads)
    library = "PyTorch " + torch.__version__
    if device == "cpu":
        if threads == 1:
            CELLS.update(CELLS_OF_PROCESSES)
        return library, None
    # Full float32, as ours. By default convolutions are TF32.
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    rand, randn, zeros, ones = (
        functools.partial(function, device=device) for function in (rand, randn, zeros, ones))
    synchronize = functools.partial(torch.cuda.synchronize, device)
    ones(1) + 1  # throws if it has no code for this GPU
    synchronize()
    return "%s on %s" % (library, torch.cuda.get_device_name(device)), synchronize


def tiny_products():
    x = rand(3, 3)

    def run():
        for _ in range(10_000):
            torch.mm(x, x.t())

    return run


def tiny_products_profiled():
    x = rand(3, 3)
    activities = [torch.profiler.ProfilerActivity.CPU]
    if synchronize is not None:
        activities.append(torch.profiler.ProfilerActivity.CUDA)

    def run():
        with torch.profiler.profile(activities=activities):
            for _ in range(10_000):
                torch.mm(x, x.t())
            if synchronize is not None:
                synchronize()

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
            v = zeros(1000, 10, 10)
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
        res = zeros(200, 10, 10, 100)
        a_tensor = torch.dstack(a)
        for i in range(200):
            res[i] = a_tensor * torch.dstack(b[i])

    return run


def matrices_one_by_one():
    a, b = matrices()

    def run():
        res_slow = zeros(200, 10, 10, 100)
        for i in range(200):
            for j in range(100):
                res_slow[i, :, :, j] = a[j] * b[i][j]

    return run


def randn_matmul():

    def run():
        for _ in range(10):
            a = randn(1000, 1000)
            torch.mm(a, a)

    return run


def add_one():
    x = ones(1, 2)

    def run():
        for _ in range(10_000):
            y = x + 1

    return run


def add_one_waited_for():
    if synchronize is None:
        return add_one()
    x = ones(1, 2)

    def run():
        for _ in range(10_000):
            y = x + 1
            synchronize()

    return run


def add_tensors():
    x = ones(1)
    y = ones(1)

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
                torch.mm(a, b)

        return run

    return setup


def uniform_numbers(n):
    return lambda: lambda: rand(n)


def normal_numbers(n):
    return lambda: lambda: randn(n)


def multiply_and_add():
    x = rand(10_000_000)
    y = rand(10_000_000)
    return lambda: x * y + 2


def sum_of_all():
    x = rand(10_000_000)
    return x.sum


def on_normals(function, shape, count):

    def setup():
        x = randn(shape)

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


# How a module is run.


def eager(module):
    return module


def captured(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about its deprecation
        return torch.jit.freeze(torch.jit.script(module))


def generated(module):
    return torch.compile(module)


def mlp(n, how):

    def setup():
        layers = [torch.nn.Linear(n, n // 2), torch.nn.ReLU(),
                  torch.nn.Linear(n // 2, n // 4), torch.nn.ReLU(),
                  torch.nn.Linear(n // 4, 2)]
        x = randn(1, n)
        # Without gradients, which ours does not have.
        net = how(torch.nn.Sequential(*layers).to(x.device).requires_grad_(False).eval())
        for _ in range(10):  # TorchScript optimises in the first calls
            net(x)

        def run():
            for _ in range(1000):
                net(x)

        return run

    return setup


def mlp_of_512():
    return torch.nn.Sequential(torch.nn.Linear(512, 256), torch.nn.ReLU(),
                               torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2))


def training_steps(make_net, shape, count):

    def setup():
        x = randn(*shape)
        net = make_net().to(x.device)
        labels = ones(shape[0], dtype=torch.int64)
        sgd = torch.optim.SGD(net.parameters(), lr=0.001)

        def run():
            for _ in range(count):
                loss = torch.nn.functional.cross_entropy(net(x), labels)
                sgd.zero_grad()
                loss.backward()
                sgd.step()

        return run

    return setup


class Chain(torch.nn.Module):

    def forward(self, x, y):
        for _ in range(5):
            x = (x + y) * 0.5
        return x


def chain(how):

    def setup():
        x = randn(10_000_000)
        y = randn(10_000_000)
        net = how(Chain().eval())
        for _ in range(3):
            net(x, y)
        return lambda: net(x, y)

    return setup


def multiply():
    x = rand(10_000_000)
    y = rand(10_000_000)
    return lambda: x * y


# The set-up, which returns the timed function; and how many units that does.
CELLS = {
    "003_c5": (tiny_products, 10_000),
    "003_c5_profiled": (tiny_products_profiled, 10_000),
    "003_c18": (draw_and_multiply, 20_000),
    "003_c20": (assign_rows, 20_000),
    "003_c21_vectorised": (stacked_matrices, 1),
    "003_c21_loop": (matrices_one_by_one, 1),
    "000_In6": (product(100, 100, 100, 20_000), 20_000),
    "004_In4": (randn_matmul, 1),
    "d2l_t1t2t3_each": (add_one_waited_for, 10_000),
    "d2l_t1t2t3_once": (add_one, 10_000),
    "add_1": (add_tensors, 10_000),
    "mm_1000": (product(1000, 1000, 1000, 1), 1),
    "mm_256": (product(256, 256, 256, 100), 100),
    "mm_1x512_512x256": (product(1, 512, 256, 1000), 1000),
    "randn_1e6": (normal_numbers(1_000_000), 1_000_000),
    "randn_1e7": (normal_numbers(10_000_000), 10_000_000),
    "rand_1e6": (uniform_numbers(1_000_000), 1_000_000),
    "rand_1e7": (uniform_numbers(10_000_000), 10_000_000),
    "mul_add_1e7": (multiply_and_add, 1),
    "sum_1e7": (sum_of_all, 1),
    "exp_1e6": (on_normals(torch.exp, (1_000_000,), 10), 10),
    "tanh_1e6": (on_normals(torch.tanh, (1_000_000,), 10), 10),
    "softmax_128x1000": (on_normals(lambda x: torch.softmax(x, 1), (128, 1000), 100), 100),
    "bias_256x128": (add_bias, 100),
    "transpose_1000": (on_normals(lambda x: x.t().contiguous(), (1000, 1000), 10), 10),
    "relu_1e6": (on_normals(torch.relu, (1_000_000,), 10), 10),
    "mul_1e7": (multiply, 1),
    "mlp_8_eager": (mlp(8, eager), 1000),
    "mlp_8_captured": (mlp(8, captured), 1000),
    "mlp_8_generated": (mlp(8, generated), 1000),
    "mlp_128_eager": (mlp(128, eager), 1000),
    "mlp_128_captured": (mlp(128, captured), 1000),
    "mlp_128_generated": (mlp(128, generated), 1000),
    "mlp_512_eager": (mlp(512, eager), 1000),
    "mlp_512_captured": (mlp(512, captured), 1000),
    "mlp_512_generated": (mlp(512, generated), 1000),
    "mlp_step": (training_steps(mlp_of_512, (1, 512), 100), 100),
    "lenet_step": (training_steps(pytorch_nets.lenet, (256, 1, 28, 28), 1), 1),
    "resnet18_step": (training_steps(pytorch_nets.resnet18, (32, 1, 28, 28), 1), 1),
    "chain_1e7_eager": (chain(eager), 1),
    "chain_1e7_captured": (chain(captured), 1),
    "chain_1e7_generated": (chain(generated), 1),
}

# Cells of processes with one thread each, for the peer with one thread.
CELLS_OF_PROCESSES = {
    "ddp_lenet": (pytorch_ranks.on(2, "train_lenet"), pytorch_ranks.STEPS),
    "allreduce_64MB_2": (pytorch_ranks.on(2, "allreduce"), 1),
    "allreduce_64MB_4": (pytorch_ranks.on(4, "allreduce"), 1),
}
