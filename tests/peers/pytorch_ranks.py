"""Cells of several processes, which exchange tensors by gloo."""
import datetime
import functools
import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed

import pytorch_nets

STEPS = 5  # of training, in a run
IMAGES = 256  # in a step, of all processes

# A process that waits longer fails. In seconds.
TIME_LIMIT = 60


def train_lenet():
    images = IMAGES // torch.distributed.get_world_size()
    x = torch.randn(images, 1, 28, 28)
    labels = torch.ones(images, dtype=torch.int64)
    net = torch.nn.parallel.DistributedDataParallel(pytorch_nets.lenet())
    sgd = torch.optim.SGD(net.parameters(), lr=0.001)

    def run():
        for _ in range(STEPS):
            loss = torch.nn.functional.cross_entropy(net(x), labels)
            sgd.zero_grad()
            loss.backward()
            sgd.step()

    return run


def allreduce():
    x = torch.rand(16 << 20)
    return lambda: torch.distributed.all_reduce(x)


WORK = {"train_lenet": train_lenet, "allreduce": allreduce}


def rank_main(rank, ranks, file, work, connection):
    """A process: runs the work on each message, until the connection ends."""
    torch.set_num_threads(1)
    if sys.platform.startswith("linux"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group(
        "gloo", init_method="file://" + file, rank=rank, world_size=ranks,
        timeout=datetime.timedelta(seconds=TIME_LIMIT))
    run = WORK[work]()
    connection.send("ready")
    try:
        while True:
            connection.recv()
            run()
            connection.send("done")
    except EOFError:
        del run  # before the group, whose threads it uses
        torch.distributed.destroy_process_group()


class Ranks:
    """The processes. A call makes all of them do the work once."""

    def __init__(self, ranks, work):
        self.folder = tempfile.TemporaryDirectory()
        file = os.path.join(self.folder.name, "store")
        context = multiprocessing.get_context("spawn")
        self.connections, self.processes = [], []
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            process = context.Process(target=rank_main, args=(rank, ranks, file, work, theirs),
                                      daemon=True)
            process.start()
            theirs.close()
            self.connections.append(ours)
            self.processes.append(process)
        self._await_all()

    def __call__(self):
        for connection in self.connections:
            connection.send("run")
        self._await_all()

    def _await_all(self):
        for rank, connection in enumerate(self.connections):
            if not connection.poll(TIME_LIMIT):
                raise TimeoutError("process %d: not done after %d s" % (rank, TIME_LIMIT))
            try:
                connection.recv()
            except EOFError:
                raise RuntimeError("process %d of %d ended" % (rank, len(self.processes)))

    def __del__(self):
        for connection in self.connections:
            connection.close()
        for process in self.processes:
            process.join(TIME_LIMIT)
        self.folder.cleanup()


def on(ranks, work):
    """The set-up of a cell. work: one of WORK."""
    return functools.partial(Ranks, ranks, work)
