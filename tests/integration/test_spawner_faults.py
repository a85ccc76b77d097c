"""Every system call on the path to a sandbox fails once: of the spawner, the fork server and glovebox-init, while
building and removing. The result must be a named error or a complete sandbox; never a sandbox with a missing wall, and
never leftovers."""

import concurrent.futures
import errno
import itertools
import os
import pathlib
import time

import pytest

from conftest import BUILD
from spawner_client import Gone, Refused, Spawner, fingerprint, group_limits, our_processes, v1_or_v2_groups

STATE = pathlib.Path(os.environ.get("GLOVEBOX_STATE", "/var/lib/glovebox"))
TEMPLATE = STATE / "templates/minimal/root"
GROUP = f"glovebox-faults-{os.getpid()}" # others may be testing too

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="tracing root's program takes root"),
    pytest.mark.skipif("GLOVEBOX_GUEST" in os.environ, reason="700 sandboxes take too long without a real processor"),
]


def life_of_a_sandbox(spawner):
    """Build, start a program, look at it, release. Gives the fingerprints, and what was granted."""
    spawner.hello()
    sandbox = spawner.build(network=LOOPBACK)
    try:
        program = sandbox.start("/usr/bin/sleep", "60")
        seen = {"init": fingerprint(sandbox.pid, sandbox.slot), "program": fingerprint(program, sandbox.slot),
                "limits": group_limits(spawner, sandbox.slot), "walls": sandbox.walls, "degraded": sandbox.degraded}
        assert spawner.release(sandbox) == 0, "something was left at release"
        return seen
    finally:
        sandbox.close()


def fail_one(place, number, code):
    """Lets call `number` fail. Gives (calls made, which one failed, what came of it)."""
    work, group = place
    before = our_processes()
    report = work / "report"
    report.unlink(missing_ok=True)
    spawner = Spawner(BUILD, TEMPLATE, work, [f"{BUILD}/fail_call", str(number), str(code), str(report)], group)
    try:
        outcome = life_of_a_sandbox(spawner)
    except Refused as refused:
        outcome = f"refused: {refused}"
    except Gone as gone:
        outcome = f"gone: {gone}"
    except OSError as vanished: # the process that we looked at has ended: its end is judged below
        outcome = f"gone: init or program: {vanished}"
    except AssertionError as wrong:
        outcome = f"wrong: {wrong}"
    said = spawner.said()
    status = spawner.close()
    left = spawner.leftovers(before)
    for _ in range(100):  # the kernel takes a moment to reap what was killed; a group stays until the next start
        if not any(item.startswith("process") for item in left):
            break
        time.sleep(0.02)
        left = spawner.leftovers(before)
    calls, _, what = report.read_text().strip().partition(" ") if report.exists() else ("0", "", "?")
    return int(calls), what, outcome, said, status, left


def sweep(place):
    """The next start must take away what a broken one has left."""
    work, group = place
    spawner = Spawner(BUILD, TEMPLATE, work, group_name=group)
    spawner.hello()
    spawner.close()
    left = spawner.leftovers()
    spawner.forget_groups()
    return [item for item in left if not item.startswith("process")]


# With its buffers of sockets, which v1 counts apart: the memory limit itself must be there all the same.
LOOPBACK = 1

# A wall that may be missing if the answer says so (`isolation.degraded`), with what then differs.
MAY_DEGRADE = {20: (), 22: ("limits.cpu/cpu.cfs_quota_us", "limits.unified/cpu.max"), 23: ()}


def differences(outcome, whole):
    """What of this sandbox is not as it is in a whole one, and was not declared."""
    missing = [bit for bit in range(64) if whole["walls"] & ~outcome["walls"] & 1 << bit]
    declared = [bit for bit in missing if bit in MAY_DEGRADE and outcome["degraded"] & 1 << bit]
    excused = {name for bit in declared for name in MAY_DEGRADE[bit]}
    wrong = [f"{part}.{key}: {value} instead of {whole[part].get(key)}" for part in ("init", "program", "limits")
             for key, value in outcome[part].items()
             if value != whole[part].get(key) and f"{part}.{key}" not in excused]
    return wrong + [f"wall {bit} is missing" for bit in missing if bit not in declared]


def complaint(outcome, said, status, left, whole, swept):
    """What is wrong about the way a failure ended, or None."""
    if left and swept:
        return f"left behind, even by the next start: {swept}"
    if any(item.startswith("process") for item in left):
        return f"left behind: {left}"
    if status is None:
        return "the spawner did not end when its peer hung up"
    if isinstance(outcome, dict):
        wrong = differences(outcome, whole)
        return f"a sandbox that differs from a whole one: {wrong}" if wrong else None
    if outcome.startswith("wrong: "):
        return outcome
    if outcome.startswith("refused: ") and len(outcome) > len("refused: "):
        return None
    # The spawner itself ended, or init did: that has to be said as well, unless it was the end that was awaited.
    if outcome == "gone: the spawner closed the socket" and status == 0:
        return "the spawner ended without a word"
    return None if said or outcome.startswith(("gone: init", "gone: the program")) or status in (125, 127, 139, 134) else f"no named error ({outcome}, {status})"


def test_every_call_may_fail_once(tmp_path):
    """Two lives at a time: each waits for the kernel more than it works."""
    places = [(tmp_path / name, f"{GROUP}-{name}") for name in ("a", "b")]
    for work, _ in places:
        work.mkdir()
    wrong, numbers, most = [], itertools.count(1), [1]

    def fail_many(place):
        calls, _, whole, said, status, left = fail_one(place, 0, 0)
        assert isinstance(whole, dict), (whole, said)
        assert status == 0 and not left
        assert whole["program"]["CapEff"] == "0" * 16 and whole["program"]["Seccomp"] == "2"
        done, most[0] = 0, max(most[0], calls)
        while (number := next(numbers)) <= most[0]:
            code = errno.EPERM if number % 2 else errno.ENOMEM
            made, what, outcome, said, status, left = fail_one(place, number, code)
            swept = sweep(place) if left else []
            problem = complaint(outcome, said, status, left, whole, swept)
            if problem:
                wrong.append(f"{number} ({what}): {problem}; said: {said}")
            if what:
                most[0] = max(most[0], min(made, calls + 50))
            done += 1
        return done

    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        done = sum(pool.map(fail_many, places))
    assert done >= 300, "a life of a sandbox has more calls than that"
    assert not wrong, f"{len(wrong)} of {done}:\n" + "\n".join(wrong)


@pytest.mark.skipif(not any(kind == "memory" for kind, _ in v1_or_v2_groups(GROUP)), reason="cgroup v2 counts socket buffers as memory")
@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOMEM])
def test_an_unlimited_socket_buffer_is_declared(tmp_path, code):
    """Some openings of the file are for groups above the sandbox's: those may fail unseen. Its own may not."""
    calls, declared = 1, []
    for number in itertools.count(1):
        calls, what, outcome, said, status, left = fail_one((tmp_path, f"{GROUP}-sockets"), f"{number}:memory.kmem.tcp.limit_in_bytes", code)
        if not what:
            break
        assert isinstance(outcome, dict) and status == 0 and not left, (outcome, said, status, left)
        missing = not outcome["walls"] & 1 << 20
        assert missing == bool(outcome["degraded"] & 1 << 20)
        declared += [number] if missing else []
    assert calls == number - 1
    assert len(declared) == 1, f"of {calls} openings"
