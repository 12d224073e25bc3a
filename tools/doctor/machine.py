"""A machine, as the doctor sees it: files, programs, settings; and its report, in English
or Chinese (po/zh.po). What the machine says, such as a path, is filled in behind _: it stays
as it is.

    machine.language = "zh"
    _("{} of {} GiB free").format("8.0", "16.0")  # 8.0/16.0 GiB空闲
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading

sys.path.append(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
import course_texts  # noqa: E402
from course_texts import columns, wrap  # noqa: E402

language = "en"  # of all output
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")  # colours


def _(text):
    return course_texts.translator(language)(text)


def ngettext(one, many, count):
    return _(one if count == 1 else many)


def pgettext(context, text):
    """For a text that means something else in other places, such as a single word."""
    return course_texts.translator(language)(context + "\4" + text).rpartition("\4")[2]


def padded(text, width):
    return text + " " * (width - columns(text))


class Machine:
    """Paths are as on the machine; in tests, `root` is a folder that stands for /."""

    def __init__(self, repository, env, root=""):
        self.repository, self.env, self.root = repository, env, root
        system = "etc/os-release"
        self.os_id, self.os_version = self.field(system, "ID"), self.field(system, "VERSION_ID")
        self.wsl = "icrosoft" in self.read("proc/sys/kernel/osrelease")
        self.container = self.exists(".dockerenv") or self.exists("run/.containerenv")
        self.arm = env.get("HOSTTYPE", os.uname().machine) == "aarch64"
        self.sudo = "" if os.geteuid() == 0 else "sudo "
        # Bazel inspects the system once per server.
        self.shutdown = " && bazel shutdown" if self.which("bazel") else ""

        self.lines = []
        # (text, command): the needs of any build, and the needs of a GPU only.
        self.todo, self.todo_gpu = [], []

    # The machine's files and programs.

    def exists(self, path):
        return os.path.exists(self.root + "/" + path)

    def read(self, path):
        """The text of a file; empty if it cannot be read."""
        try:
            with open(self.root + "/" + path, errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def number(self, path):
        """The number that is a file's content, or None."""
        text = self.read(path).strip()
        return int(text) if text.isdigit() else None

    def field(self, path, key):
        """The text after "KEY:" or "KEY=" in a file; empty if there is none."""
        found = re.search(r"^%s\s*[:=][ \t]*(.*)" % key, self.read(path), re.M)
        return found[1].strip().strip('"') if found else ""

    def which(self, program, *folders):
        """The path of a program, on PATH and in more folders; or None."""
        path = [self.env.get("PATH", "")] + [self.root + folder for folder in folders]
        return shutil.which(program, path=":".join(path))

    def ask(self, *command, seconds=60):
        """(exit code, output) of a program; 127 if there is none, 124 if it takes longer."""
        try:
            # Bazel's launcher looks for .bazelversion in this folder and those above.
            child = subprocess.Popen(command, cwd=self.repository, env=self.env,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, errors="replace")
        except OSError:
            return 127, ""
        waiting = threading.Timer(min(5, seconds / 2), sys.stderr.write, [
            _("Waiting for {}, {} s at most.").format(
                os.path.basename(command[0]), seconds) + "\n"])
        waiting.start()
        try:
            said = child.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1)  # a driver that hangs may keep it alive
            child.stdout.close()
            return 124, ""
        finally:
            waiting.cancel()
        return child.returncode, ESCAPES.sub("", said).strip()

    def shown(self, path):
        return path[len(self.root):] if path.startswith(self.root) else path

    def has_package(self, package):
        return self.ask("dpkg-query", "--show", "--showformat=${db:Status-Status}",
                        package)[1] == "installed"

    def apt_get(self, *packages):
        return "{0}apt-get update && {0}apt-get install -y {1}".format(
            self.sudo, " ".join(packages))

    # The doctor's output: plain text of 80 columns.

    def say(self, text="", first=""):
        """Prints a paragraph; the other lines are indented by the width of `first`."""
        self.lines += wrap(text, first=first, rest=" " * columns(first))

    def fact(self, label, status, text, *todo, gpu=True):
        """Prints a line, or a few, with the status at the right. The label and the status are
        the English texts. `todo` holds the arguments of add."""
        label, status = pgettext("doctor", label), pgettext("doctor", status)
        for line in wrap(text, 55):
            self.lines.append("".join((
                "  ", padded(label, 14), line,
                " " * (64 - columns(line + status)), status)).rstrip())
            label = status = ""
        if todo:
            self.add(*todo, gpu=gpu)

    def add(self, why, command="", gpu=False):
        (self.todo_gpu if gpu else self.todo).append((why, command))

    def say_numbered(self, items):
        for number, (text, command) in enumerate(items, 1):
            self.say(text, "  %d. " % number)
            if command:
                # The lines can be copied together. Quoted text is not broken.
                command = re.sub("'[^']*'", lambda m: m[0].replace(" ", "\xa0"), command)
                lines = wrap(command, 78, " " * 7, " " * 9)
                self.lines.append(" \\\n".join(lines).replace("\xa0", " "))
