#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make check, check-all, check-long: builds, unit tests on the host, then suites in VMs.

Closes with a table of the layers and "N passed, N failed, N skipped"; exits 1 if
anything failed or nothing ran.
"""

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "vm"))

from harness import kernels, suites                     # noqa: E402
from harness.paths import BUILD, LOGS, TREE             # noqa: E402
from harness.session import Run                         # noqa: E402

# The test kernel takes longest: first, so that nothing waits for it at the end.
KERNELS = {"check": ["6.1", "6.12"], "all": ["test", "6.1", "6.12"], "long": ["test", "6.1", "6.12"]}
AT_ONCE = 2         # kernels; each has one or two VMs of one processor
HARNESS_SECONDS = 600   # of its own tests, more than any suite takes
HOST_SECONDS = 1200     # one program on the host; DKMS builds modules for some minutes


def say(text):
    print(text, flush=True)


def make(*words):
    """Builds; what it prints is shown only if it fails."""
    command = ["make", "--no-print-directory", f"-j{os.cpu_count()}", "-C", str(TREE), *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    if done.returncode:
        say(done.stdout)
        say(f"make {' '.join(words)} failed")
    return done


def has_kunit(kernel):
    config = kernel.headers / ".config"
    return config.exists() and "\nCONFIG_KUNIT=" in config.read_text()


def build(chosen, *more):
    """User space and a module for each kernel: (builds that passed, that failed)."""
    failed = int(make("lib", "tools", "programs", "vmctl", *more, "WERROR=1").returncode != 0)
    for kernel in chosen:
        done = make("kunit" if has_kunit(kernel) else "module", f"KDIR={kernel.headers}", "W=1")
        warnings = [line for line in done.stdout.splitlines() if "warning:" in line]
        for line in warnings:
            say(line)
        failed += bool(done.returncode or warnings)
    return 1 + len(chosen) - failed, failed


# On the host, too long for every time: minutes.
NOT_IN_CHECK = ("dkms",)


def host_programs(wanted, level):
    """What runs on the host: (name, command). cmocka programs, and some scripts."""
    unit = TESTS / "unit"
    found = [(p.stem, [BUILD / "tests/unit" / p.stem]) for p in sorted(unit.glob("test_*.c"))]
    # KUnit suites of pure files, as they run on the host.
    kunit = (p.stem.removesuffix("_test") for p in sorted((TREE / "kunit").glob("*_test.c")))
    found += [(f"kunit_{name}", [BUILD / f"tests/unit/kunit_{name}"]) for name in kunit
              if (BUILD / f"tests/unit/kunit_{name}").exists()]
    found += [(f"corpus_{d.name}", [BUILD / f"tests/unit/corpus_{d.name}", d])
              for d in sorted((TESTS / "fuzz/corpus").iterdir())]
    found += [
        ("header", [BUILD / "tests/unit/header"]),
        ("cli_docs", [unit / "cli_docs.sh", BUILD / "bin/rmpool", TREE]),
        ("abi_32bit", [unit / "abi_32bit.py"]),
        ("backport", [unit / "backport.sh"]),
        ("ktap", [unit / "ktap.sh"]),
        ("dkms", [unit / "dkms.sh", TREE]),
        ("module_size", [unit / "module_size.sh", BUILD]),
        ("netlink_spec", [unit / "check_netlink_spec.py"]),
        ("readme", [unit / "readme.sh", TREE]),
        ("demo", [TESTS / "demo" / "run", "--self-test"]),
        ("netlink_spec_changes", [unit / "check_netlink_spec.py", "--self-test"]),
    ]
    # What is asked for by its name is done at any level.
    return [(name, command) for name, command in found if wanted in name and
            (wanted or level != "check" or name not in NOT_IN_CHECK)]


def host_results(output, status):
    """(passed, failed, skipped) of one program: TAP lines, its own sum, or its exit status."""
    lines = re.findall(r"^(not )?ok\b(?!.* # SKIP)", output, re.MULTILINE)
    skipped = len(re.findall(r"^ok\b.* # SKIP", output, re.MULTILINE))
    total = re.search(r"^(?:\w+: )?(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if total:
        passed, failed = int(total.group(1)), int(total.group(2))
    else:
        failed = sum(bool(n) for n in lines)
        passed = len(lines) - failed
    if status and not failed:
        failed = 1              # a crash, or a sanitizer's report
    if not status and not passed and not skipped:
        passed = 1              # no lines: the exit status is the test
    return passed, failed, skipped


def unit_tests(wanted, level):
    """Everything on the host. Returns (passed, failed, skipped)."""
    passed = failed = skipped = 0
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", UBSAN_OPTIONS="print_stacktrace=1")
    LOGS.mkdir(parents=True, exist_ok=True)
    for name, command in host_programs(wanted, level):
        try:
            done = subprocess.run(command, env=env, cwd=TREE, stdout=subprocess.PIPE, text=True,
                                  stderr=subprocess.STDOUT, errors="replace", timeout=HOST_SECONDS,
                                  check=False)
            output, status = done.stdout, done.returncode
        except (subprocess.TimeoutExpired, OSError) as why:
            output, status = f"{why}\n", -1
        (LOGS / f"{name}.unit").write_text(output)
        good, bad, left_out = host_results(output, status)
        told = re.search(r"^(not )?ok ", output, re.MULTILINE)
        if name.startswith(("test_", "kunit_", "corpus_")) and not told:
            good, bad = 0, 1    # a program of tests without a test
        say(f"{'not ok' if bad else 'ok'} unit {name}: "
            f"{suites.closing_line(good, bad, left_out)}")
        if bad:
            say("".join(f"  | {line}\n" for line in output.splitlines()[-60:]))
        passed += good
        failed += bad
        skipped += left_out
    return passed, failed, skipped


async def selftest(chosen, no_suite_after):
    """The harness's own tests: (passed, failed, skipped)."""
    if no_suite_after is not None and time.monotonic() > no_suite_after - HARNESS_SECONDS:
        say("skip selftest: the time for all tests was over")
        return 0, 0, 1
    process = await asyncio.create_subprocess_exec(
        TESTS / "vm" / "selftest", *(k.label for k in chosen), stdout=subprocess.PIPE)
    try:
        output = (await process.communicate())[0].decode(errors="replace")
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    say(output.rstrip())
    states = re.findall(r"^(not ok|ok) selftest", output, re.MULTILINE)
    failed = states.count("not ok")
    return states.count("ok"), failed or int(bool(process.returncode or not states)), 0


def fuzz(wanted, level):
    """libFuzzer for a minute or an hour, and how much of the pure files the suites run."""
    passed = failed = 0
    for name, words in (("coverage", ["coverage"]),
                        ("fuzz", ["fuzz", f"SECONDS={3600 if level == 'long' else 60}"])):
        if wanted not in name:
            continue
        done = make(*words, "WERROR=1")
        lines = re.findall(r"^(?:not )?ok .*$", done.stdout, re.MULTILINE)
        for line in lines if not done.returncode else []:       # else make() told all
            say(line)
        bad = sum(line.startswith("not") for line in lines)
        passed += len(lines) - bad
        failed += bad or int(bool(done.returncode or not lines))
    return passed, failed, 0


async def vm_suites(kernel, todo, named, no_suite_after):
    """All suites with one kernel; groups one after the other. Those that the user named
    are run at any level."""
    runner = Run(kernel, f"check-{kernel.label}", printer=say)
    runner.no_suite_after = no_suite_after
    mine = [s for s in todo if s.runs_on(kernel.label) and
            (named or s.is_of(suites.level(), kernel.label))]
    for number, group in enumerate(suites.groups(mine)):
        runner.logs = LOGS / f"check-{kernel.label}" / f"group{number}"
        await runner.run(group)
    return runner.results


async def all_vms(chosen, todo, named, at_once, harness, no_suite_after):
    """([(kernel, results, seconds)], those of the harness's own tests, which come last)"""
    free = asyncio.Semaphore(at_once)

    async def one(what, tests):
        async with free:
            began = time.monotonic()
            return what, await tests(), time.monotonic() - began

    jobs = [one(k, lambda k=k: vm_suites(k, todo, named, no_suite_after)) for k in chosen]
    if harness:
        jobs.append(one(None, lambda: selftest(chosen, no_suite_after)))
    done = await asyncio.gather(*jobs)
    return done[:len(chosen)], done[len(chosen):]


class Layers:
    """What each layer of tests came to."""

    def __init__(self):
        self.rows = []
        self.began = time.monotonic()

    def add(self, name, passed, failed, skipped, seconds=None):
        """Seconds: by default since the last one."""
        now = time.monotonic()
        self.rows.append((name, passed, failed, skipped,
                          now - self.began if seconds is None else seconds))
        self.began = now

    def close(self):
        """Tells the sums. Whether all is well."""
        say(f"-- {'layer':<22} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>8}")
        for name, *counts, seconds in self.rows:
            say(f"-- {name:<22} {counts[0]:7} {counts[1]:7} {counts[2]:8} {seconds:8.0f}")
        passed, failed, skipped = (sum(row[i] for row in self.rows) for i in (1, 2, 3))
        say(f"{passed} passed, {failed} failed, {skipped} skipped")
        return passed and not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-T", metavar="NAME", default="", help="only what has NAME in its name")
    parser.add_argument("-K", metavar="KERNEL", default="", help="only one kernel: 6.1, 6.12, test")
    parser.add_argument("--level", choices=suites.LEVELS,
                        help="how much is done (default: $RMPOOL_LEVEL or check)")
    parser.add_argument("--build-only", action="store_true",
                        help="what a VM needs, and nothing else")
    parser.add_argument("--minutes", type=float, metavar="N",
                        help="no suite begins later than that; those left out are skipped")
    parser.add_argument("--serial", action="store_true", help="one kernel after the other")
    args = parser.parse_args()
    began = time.monotonic()
    # nohup and the background of a shell have some of these ignored, and what
    # tests Ctrl-C would inherit that.
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        if args.level:
            os.environ["RMPOOL_LEVEL"] = args.level
        level = suites.level()
        seed = suites.seed()
        chosen = [kernels.find(k) for k in ([args.K] if args.K else KERNELS[level])]
        todo = [suites.load(p) for p in sorted(TESTS.glob("integration/*.sh")) if args.T in p.name]
    except (kernels.KernelError, suites.SuiteError) as why:
        sys.exit(f"run.py: {why}")

    layers = Layers()
    built, failed_builds = build(chosen, *([] if args.build_only else ["unit"]))
    if args.build_only:
        return 1 if failed_builds else 0
    say(f"-- level {level}, seed {seed} (RMPOOL_SEED={seed} does the same again)")
    layers.add("builds", built, failed_builds, 0)
    if not failed_builds:
        layers.add("unit", *unit_tests(args.T, level))
        if level != "check" or args.T:
            layers.add("fuzz and coverage", *fuzz(args.T, level))
        say(f"-- on the host: until {time.monotonic() - began:.0f} s")
        failures = []
        harness = args.T in "selftest" if args.T else level != "check"
        by_kernel, own = asyncio.run(all_vms(chosen, todo, bool(args.T),
                                             1 if args.serial else AT_ONCE, harness,
                                             args.minutes and began + args.minutes * 60))
        for _, counts, seconds in own:
            layers.add("harness", *counts, seconds)
        for kernel, results, seconds in by_kernel:
            layers.add(f"in VMs, {kernel.label}", *suites.count(results), seconds)
            failures += [r for r in results if r.status == "not ok"]
        if failures:
            say(f"-- failed (logs: {LOGS}):")
            for result in failures:
                say(result.line())
    say(f"-- {time.monotonic() - began:.0f} s in all")
    return 0 if layers.close() else 1


if __name__ == "__main__":
    sys.exit(main())
