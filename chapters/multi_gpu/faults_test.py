#!/usr/bin/env python3
"""What training with mpirun does when something breaks: a table in Markdown.

  bazel build //chapters/multi_gpu:train
  sudo chapters/multi_gpu/faults_test.py
  bazel test //chapters/multi_gpu:faults_test   # --quick

Every row is a training on two ranks that is broken in the middle and then goes
on with the command that it printed; its last checkpoint is compared with that
of a training that nobody broke, byte by byte of its tensors.  Two rows need
root: a full disk is a small tmpfs, and two hosts are two network namespaces of
this machine, joined by a virtual cable.  Everything it makes is in a temporary
directory and is removed.  Needs Python's standard library, Open MPI 4, and
iproute2 and util-linux for the rows that need root.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

LIMIT_S = 300  # for each program
# How a rank's message of a fault begins. The first rank prints on the screen.
SAYS = r"^(rank \d of \d: |cannot write )"
EPOCHS = 6
FLAGS = ["--devices=cpu:0", "--net=lenet", f"--epochs={EPOCHS}",
         "--momentum=0.5", "--batch_size=128"]
# mpirun takes its options from the environment, so that the printed command
# runs as it is; the test searches for English messages.
ENVIRONMENT = {"LC_ALL": "C.UTF-8",
               "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1"}
HOSTS = {"a": "10.77.0.1", "b": "10.77.0.2"}  # of the namespaces d2l_a, d2l_b
AGENT = """#!/bin/sh
# What mpirun calls instead of ssh: HOST COMMAND...
shift
exec ip netns exec d2l_b unshare --uts sh -c \\
  'hostname d2l-b; exec sh -c "$0"' "$*"
"""


def tensors_hash(checkpoint):
  """Hashes only the tensors: the header also has the epochs' seconds."""
  data = pathlib.Path(checkpoint).read_bytes()
  header_bytes = struct.unpack("<Q", data[:8])[0]
  return hashlib.sha256(data[8 + header_bytes:]).hexdigest()[:16]


class Training:
  """One run of mpirun and its ranks."""

  def __init__(self, command, directory):
    self.log = pathlib.Path(tempfile.mkstemp(dir=directory, suffix=".log")[1])
    with self.log.open("wb") as log:
      self.process = subprocess.Popen(
          command, stdout=log, stderr=subprocess.STDOUT, cwd=directory,
          env={**os.environ, **ENVIRONMENT}, start_new_session=True)

  def output(self):
    return self.log.read_text(errors="replace")

  def wait_until(self, condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
      if self.process.poll() is not None or time.monotonic() > deadline:
        raise RuntimeError(f"the training went another way:\n{self.output()}")
      time.sleep(0.0002)

  def wait_for_epoch(self, epoch):
    self.wait_until(
        lambda: re.search(rf"^epoch +{epoch}/", self.output(), re.M))

  def rank(self, number):
    """The rank's process id."""
    wanted = f"OMPI_COMM_WORLD_RANK={number}".encode()
    children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
    for pid in pathlib.Path(children).read_text().split():
      if wanted in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(
          b"\0"):
        return int(pid)
    raise RuntimeError(f"no rank {number}")

  def end(self):
    """The exit code, and the seconds until a rank printed a message."""
    begin = time.monotonic()
    said_after = None
    while self.process.poll() is None:
      if said_after is None and re.search(SAYS, self.output(), re.M):
        said_after = time.monotonic() - begin
      if time.monotonic() - begin > LIMIT_S:
        os.killpg(self.process.pid, signal.SIGKILL)
        return f"none within {LIMIT_S} s", said_after
      time.sleep(0.02)
    if said_after is None and re.search(SAYS, self.output(), re.M):
      said_after = time.monotonic() - begin
    return self.process.returncode, said_after


# ---- The faults. Each gets a training that is in its third epoch.


def kill(number):
  return lambda training, save: os.kill(training.rank(number), signal.SIGKILL)


def stop(training, save):
  os.kill(training.rank(1), signal.SIGSTOP)


def kill_while_writing(training, save):
  """Kills rank 0 while it writes a checkpoint."""
  rank = training.rank(0)

  def being_written():
    # The name that the file has until it is complete (atomic_file.h).
    files = f"/proc/{rank}/fd"
    for number in os.listdir(files):
      with contextlib.suppress(FileNotFoundError):
        if os.readlink(f"{files}/{number}").startswith(f"{save.parent}/.d2l-"):
          return True
    return False

  deadline = time.monotonic() + LIMIT_S
  while time.monotonic() < deadline:
    training.wait_until(being_written)
    os.kill(rank, signal.SIGSTOP)
    if being_written():  # it has not been renamed in the meantime
      os.kill(rank, signal.SIGKILL)
      return
    os.kill(rank, signal.SIGCONT)
  raise RuntimeError("no checkpoint was seen half written")


def cut_cable(training, save):
  subprocess.run(["ip", "-n", "d2l_b", "link", "set", "d2l_vb", "down"],
                 check=True)


def nothing(training, save):
  pass


@contextlib.contextmanager
def full_disk(directory):
  """A folder with room for one checkpoint, but not for a second one."""
  folder = directory / "full"
  folder.mkdir()
  subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1600k", "d2l", folder],
                 check=True)
  try:
    yield folder, []
  finally:
    subprocess.run(["umount", folder], check=False)


@contextlib.contextmanager
def two_hosts(directory):
  """Two namespaces with host names of their own, and mpirun's options."""

  def ip(*words):
    subprocess.run(["ip", *words], check=True)

  made = []
  try:
    for name in HOSTS:
      ip("netns", "add", f"d2l_{name}")
      made.append(name)
    ip("link", "add", "d2l_va", "netns", "d2l_a", "type", "veth", "peer",
       "name", "d2l_vb", "netns", "d2l_b")
    for name, address in HOSTS.items():
      ip("-n", f"d2l_{name}", "addr", "add", f"{address}/24", "dev",
         f"d2l_v{name}")
      for link in ("lo", f"d2l_v{name}"):
        ip("-n", f"d2l_{name}", "link", "set", link, "up")
      # How often TCP sends again before mpirun hears that a host is gone: by
      # default 15 times, in 15 minutes.
      ip("netns", "exec", f"d2l_{name}", "sh", "-c",
         "echo 5 > /proc/sys/net/ipv4/tcp_retries2")
    agent = directory / "agent.sh"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    hostfile = directory / "hosts"
    hostfile.write_text("".join(f"{a} slots=1\n" for a in HOSTS.values()))
    network = HOSTS["a"].rsplit(".", 1)[0] + ".0/24"
    yield directory, [
        "--hostfile", hostfile, "--mca", "plm_rsh_agent", agent, "--mca", "btl",
        "tcp,self", "--mca", "btl_tcp_if_include", network, "--mca",
        "oob_tcp_if_include", network]
  finally:
    for name in made:
      pids = subprocess.run(["ip", "netns", "pids", f"d2l_{name}"],
                            stdout=subprocess.PIPE, text=True, check=False)
      for pid in pids.stdout.split():
        with contextlib.suppress(ProcessLookupError):
          os.kill(int(pid), signal.SIGKILL)
      subprocess.run(["ip", "netns", "del", f"d2l_{name}"], check=False)


@contextlib.contextmanager
def one_host(directory):
  yield directory, []


FAULTS = [
    ("rank 1 is killed (-9)", one_host, kill(1)),
    ("rank 0 is killed (-9)", one_host, kill(0)),
    ("rank 1 is stopped (SIGSTOP)", one_host, stop),
    ("rank 0 is killed while it writes a checkpoint", one_host,
     kill_while_writing),
    ("no room for a further checkpoint", full_disk, nothing),
    ("rank 1's host is cut off", two_hosts, cut_cable),
]


QUICK = 3  # with --quick: the first ones


# ---- The table.


def message_of(output):
  """The messages of a rank and of mpirun, each in one line, without folders."""
  said = [re.search(SAYS + r".*?(?=^\S|\Z)", output, re.M | re.S),
          re.search(r"^mpirun noticed.*?$", output, re.M)]
  lines = [" ".join(each.group(0).split()).split(". Unless it")[0]
           for each in said if each]
  return "; ".join(re.sub(r"(?<!\S)/\S*/", "", line) for line in lines)


def command_in(output):
  """The last command after "Go on"."""
  found = re.findall(r"^[^\n]*Go on[^\n]*\n  (.*)$", output, re.M)
  return found[-1] if found else None


def try_fault(arguments, place, fault, directory, unbroken):
  """The cells of a row, after the fault's name."""
  with place(directory) as (folder, options):
    save = folder / "x.safetensors"
    command = ["mpirun", *options, "-np", "2", arguments.train, *FLAGS,
               f"--images={arguments.images}", f"--save={save}",
               f"--mpi_timeout_s={arguments.timeout}"]
    if options:
      command = ["ip", "netns", "exec", "d2l_a", "unshare", "--uts", "sh", "-c",
                 'hostname d2l-a; exec "$@"', "sh", *command]
    training = Training([str(word) for word in command], directory)
    training.wait_for_epoch(2)
    if fault is not kill_while_writing:
      # Into the next epoch; where in it does not matter.
      time.sleep(0.1 if arguments.quick else 0.3)
    fault(training, save)
    begin = time.monotonic()
    code, said_after = training.end()
    ended_after = time.monotonic() - begin
    output = training.output()
    resume = command_in(output)
    print(f"---- {' '.join(map(str, command))}\n{output}", file=sys.stderr)
    said = message_of(output)
    rank = re.match(r"rank \d", said)
    cells = [rank.group(0) if rank else "-",
             f"{said_after:.1f} s" if said_after else "-",
             f"{ended_after:.1f} s", str(code), said]
    if fault is nothing:
      # It has trained to its end, and resumes once more from its checkpoint.
      to_its_end = f"epoch {EPOCHS}/{EPOCHS}" in output
      cells[:3] = ["rank 0", "at its write",
                   "trains to its end" if to_its_end else "BROKE OFF"]
      copy = directory / "copy.safetensors"
      shutil.copy(save, copy)
      save = copy
      resume = f"mpirun -np 2 {arguments.train} --resume={copy}"
    elif resume is None:
      return [*cells, "NOT POSSIBLE: no command printed"]
  # A training that was cut off resumes with both ranks on this host.
  again = Training(shlex.split(resume), directory)
  resumed_code, _ = again.end()
  print(f"---- {resume}\n{again.output()}", file=sys.stderr)
  equal = resumed_code == 0 and tensors_hash(save) == unbroken
  return [*cells, f"{tensors_hash(save)}, {'equal' if equal else 'NOT EQUAL'}"]


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--train", default="bazel-bin/chapters/multi_gpu/train",
                      help="the program, built where Open MPI was")
  parser.add_argument("--timeout", type=int,
                      help="--mpi_timeout_s of the trainings; 10, and 3 with "
                      "--quick")
  parser.add_argument("--images", type=int,
                      help="how many each training has; 3000, and 1500 with "
                      "--quick")
  parser.add_argument("--quick", action="store_true",
                      help="only the first faults, that need no root")
  parser.add_argument("--only", default="",
                      help="faults whose name has this in it")
  arguments = parser.parse_args()
  arguments.timeout = arguments.timeout or (3 if arguments.quick else 10)
  arguments.images = arguments.images or (1500 if arguments.quick else 3000)
  arguments.train = os.path.abspath(arguments.train)
  for needed in (arguments.train, "mpirun"):
    if shutil.which(needed) is None:
      sys.exit(f"There is no {needed}. sudo apt-get install openmpi-bin "
               "libopenmpi-dev; bazel build //chapters/multi_gpu:train")
  with tempfile.TemporaryDirectory() as temporary:
    directory = pathlib.Path(temporary)
    file = directory / "unbroken.safetensors"
    whole = Training(
        ["mpirun", "-np", "2", arguments.train, *FLAGS,
         f"--images={arguments.images}", f"--save={file}"], directory)
    if whole.end()[0] != 0:
      sys.exit(f"The training fails without a fault:\n{whole.output()}")
    unbroken = tensors_hash(file)
    print(f"Unbroken: {unbroken}. --mpi_timeout_s={arguments.timeout}\n")
    print("| fault | seen by | after | all ended after | exit code | message "
          "| gone on with the printed command |\n|---|---|---|---|---|---|---|", flush=True)
    failed = False
    for name, place, fault in FAULTS[:QUICK] if arguments.quick else FAULTS:
      if arguments.only not in name:
        continue
      if place is not one_host and os.geteuid() != 0:
        print(f"| {name} | left out: needs root | | | | | |", flush=True)
        continue
      with tempfile.TemporaryDirectory(dir=directory) as own:
        cells = try_fault(arguments, place, fault, pathlib.Path(own), unbroken)
      failed = failed or "NOT" in cells[-1] or cells[3] == "0"
      print(f"| {name} | {' | '.join(cells)} |", flush=True)
  sys.exit(1 if failed else 0)


if __name__ == "__main__":
  main()
