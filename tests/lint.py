#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make lint: every static check of the tree.

Each tool prints its findings in full and one line, "ok" or "not ok"; "N passed,
N failed" closes. A tool that cannot run, or that saw no file, has failed. What a
tool gets wrong is marked where it stands, with the reason; what is not looked
for at all is listed, with the reason, in .clang-tidy, .codespellrc and CPPCHECK.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TREE / "tests" / "vm"))

from harness import kernels                             # noqa: E402

OUT = Path("build/lint")                # below TREE, where everything runs
USER_SPACE = ["lib", "tools", "unit", "programs", "vmctl"]
KERNELS = ["6.1", "6.12"]

# file:line: or file:line:column:, and what it is
# (notes of compilers belong to a finding, those of shellcheck are findings)
FINDING = re.compile(r"^[^\s:]+:\d+:(?:\d+:)? (?!note:(?!.*\[SC\d+\]$)).*", re.MULTILINE)

CPPCHECK = [
    "cppcheck", "--quiet", "--inline-suppr", "--inconclusive", "--library=posix,gnu",
    "--enable=warning,style,performance,portability",
    # Kernel style: variables are declared where a function begins.
    "--suppress=variableScope",
    # clang-tidy's readability-inconsistent-declaration-parameter-name, which lets
    # a definition write "nlp" for "nl".
    "--suppress=funcArgNamesDifferent",
    "--template={file}:{line}:{column}: {severity}: {message} [{id}]",
]


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], cwd=TREE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          **more)
    return done.returncode, done.stdout


def run_each(commands):
    """All of them, as many at once as there are processors: the same as one run()."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda words: run(*words), commands))
    return max((status for status, _ in done), default=0), "".join(out for _, out in done)


def make(*words):
    return run("make", "--no-print-directory", "-k", f"-j{os.cpu_count()}", *words)


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def tool(self, name, files, status, output):
        """What a tool said; its exit status is 0 if it found nothing."""
        findings = len(set(FINDING.findall(output)))
        good = files and not status and not findings
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(output.rstrip())
        why = "" if good or findings else f", exit status {status}"
        print(f"{'ok' if good else 'not ok'} {name}: {findings} findings in {files} files{why}",
              flush=True)


def tracked():
    """All files of the tree: those of git, and new ones that it does not ignore."""
    _, names = run("git", "ls-files", "--cached", "--others", "--exclude-standard")
    return [name for name in names.splitlines() if (TREE / name).is_file()]


def first_lines(name):
    return (TREE / name).read_text(errors="replace").split("\n", 5)[:5]


# ---- kernel -----------------------------------------------------------------

def checkpatch(files):
    """(files, status, output) of the kernel's own, from the newest source package."""
    wanted = [f for f in files if re.match(r"(kmod|kunit|uapi)/.*\.[ch]$", f)]
    sources = sorted(Path("/usr/src").glob("linux-source-6.*.tar.xz"),
                     key=lambda p: [int(n) for n in re.findall(r"\d+", p.name)])
    if not sources:
        return wanted, 1, "no source package of a kernel in /usr/src\n"
    # Not in the git tree: it would leave a file there.
    place = TREE / OUT / sources[-1].name
    script = place / "scripts/checkpatch.pl"
    if not script.exists() or script.stat().st_ctime < sources[-1].stat().st_ctime:
        (place / "include").mkdir(parents=True, exist_ok=True)
        top = sources[-1].name.removesuffix(".tar.xz")
        status, output = run("tar", "-C", place, "-xJf", sources[-1], "--strip-components=1",
                             "--occurrence=1", *(f"{top}/scripts/{name}" for name in (
                                 "checkpatch.pl", "const_structs.checkpatch", "spelling.txt")))
        if status:
            return wanted, status, output
    status, output = run_each([
        ["env", "-C", place, "perl", script, f"--root={place}", "--no-tree", "--strict", "--terse",
         "--quiet", "--no-summary", "-f", TREE / name] for name in wanted])
    return wanted, status, output.replace(f"{TREE}/", "")


def module(label, files):
    """gcc with W=1, and sparse with checks of byte order, for one kernel."""
    wanted = [f for f in files if re.match(r"kmod/.*\.c$", f)]
    try:
        kernel = kernels.find(label)
    except kernels.KernelError as why:
        return wanted, 1, f"{why}\n"
    # A place of its own: flags that change compile everything anew.
    status, output = make("module", f"B={OUT}", f"KDIR={kernel.headers}", "W=1", "C=2",
                          "CF=-D__CHECK_ENDIAN__", "KCFLAGS=-Werror")
    checked = len(re.findall(r"^  CHECK ", output, re.MULTILINE))
    if checked < len(wanted):
        status, output = status or 1, f"{output}sparse saw {checked} files\n"
    lines = [line.replace(f"{TREE / OUT}/kmod-{kernel.version}/", "")
             for line in output.splitlines(keepends=True)]
    bad = status or any(re.search("warning", line, re.IGNORECASE) for line in lines)
    return wanted, status or int(bad), "".join(lines)


# ---- user space -------------------------------------------------------------

def compile_commands():
    """What the Makefile compiles for user space, each file once, with its flags."""
    _, output = run("make", "--no-print-directory", "-nB", f"B={OUT}", *USER_SPACE)
    found = {}
    for line in output.replace("\\\n", " ").splitlines():
        words = shlex.split(line.split("&&")[0], comments=True) or [""]
        if not re.fullmatch(r"(cc|gcc|g\+\+|c\+\+|clang)", words[0]):
            continue
        flags = []
        for word, after in zip(words[1:], [*words[2:], ""]):
            if word in ("-iquote", "-include", "-isystem"):
                flags += [word, after]
            elif re.match(r"-(?!o$|c$|M|[lL]|Wl,)", word) and word not in flags:
                flags.append(word)
        for name in words[1:]:
            if re.search(r"\.(c|cc)$", name) and name not in found:
                # quoted by backslashes, the one way that cppcheck reads as well
                command = [re.sub(r"[^\w@%+=:,./-]", r"\\\g<0>", word)
                           for word in (words[0], *flags, "-c", name)]
                found[name] = {"directory": str(TREE), "file": str(TREE / name),
                               "command": " ".join(command)}
    return found


def c_files(files):
    """Those of user space, and those of the module that are also built there."""
    status, output = make("-s", *USER_SPACE, f"B={OUT}", "WERROR=1")
    commands = compile_commands()
    (TREE / OUT).mkdir(parents=True, exist_ok=True)
    (TREE / OUT / "compile_commands.json").write_text(json.dumps(list(commands.values()), indent=1))
    for name in files:
        if re.search(r"\.(c|cc)$", name) and not re.match(r"kmod/|kunit/", name) \
                and name not in commands:
            output += f"{name}:1: no target of lint compiles it\n"
    return list(commands), status, output


def clang_tidy(names):
    status, output = run_each([["clang-tidy", "--quiet", f"-p={OUT}", name] for name in names])
    # It counts what it does not show: warnings of others' headers.
    return status, re.sub(r"^\d+ warnings? generated\.\n", "", output, flags=re.MULTILINE)


def cppcheck():
    return run(*CPPCHECK, f"-j{os.cpu_count()}", f"--project={OUT}/compile_commands.json")


# ---- scripts and text -------------------------------------------------------

def scripts(files, kind):
    """Those in "sh", which includes what scripts read in, or in "python"."""
    found = []
    for name in files:
        lines = first_lines(name)
        if kind == "python":
            good = name.endswith(".py") or re.match(r"#!.*\bpython", lines[0])
        else:
            good = re.search(r"\.(ba)?sh$", name) or re.match(r"#!.*\b(ba|da)?sh\b", lines[0]) \
                or any("shellcheck shell=" in line for line in lines)
        if good:
            found.append(name)
    return found


def shellcheck(names):
    # Suites are read by bash and have no first line that says so.
    shell = {name: [] if re.search("^#!|shellcheck shell=", "\n".join(first_lines(name)),
                                   re.MULTILINE) else ["--shell=bash"] for name in names}
    return run_each([["shellcheck", "--format=gcc", *shell[name], name] for name in names])


def main():
    report = Report()
    files = tracked()
    names, status, output = checkpatch(files)
    report.tool("checkpatch", len(names), status, output)
    for label in KERNELS:
        names, status, output = module(label, files)
        report.tool(f"sparse and gcc W=1 on {label}", len(names), status, output)
    names, status, output = c_files(files)
    report.tool("gcc on user space", len(names), status, output)
    report.tool("clang-tidy", len(names), *clang_tidy(names))
    report.tool("cppcheck", len(names), *cppcheck())
    names = scripts(files, "sh")
    report.tool("shellcheck", len(names), *shellcheck(names))
    names = scripts(files, "python")
    report.tool("pyflakes", len(names), *run("pyflakes3", *names))
    names = [name for name in files if not name.startswith("LICENSES/")]
    report.tool("codespell", len(names), *run("codespell", "--quiet-level=3", *names))
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
