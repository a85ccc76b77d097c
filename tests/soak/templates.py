#!/usr/bin/python3
"""Checks that changes of one template do not disturb runs of others: tests/soak/templates.py BUILD [SECONDS]

A service with a polite client of 50 runs a second in `minimal` and `python`, two sessions with a cell each second, and a client
that runs in `changes` itself. Meanwhile `changes` is built, fails to build in four ways, is killed (SIGKILL) while it is built,
rolled back, removed, and damaged in the folder of templates in six ways; round after round, in random order, for SECONDS.
Wheels come from an index of the test's own on loopback. It ends with 1 if a run of the others failed or gave a wrong answer, a
session lost its variables, a run in `changes` was answered by another version than one that stood there, a step did not end as
it must, the service was not ready, or something was left."""

import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from service import TOP, Caller, Service

sys.path.append(str(TOP / "tests/integration"))
from package_index import IndexServer, wheel_of  # noqa: E402

RATE, CALLERS = 50, 12
RECIPE = """\
name: changes
base: host-copy
packages: [bash, coreutils, python3, python3-pip]
pip: {pip}
disk: 100MiB
languages:
  python: {{command: [/usr/bin/python3, "{{file}}"], file: main.py}}
  bash: {{command: [/bin/bash, "{{file}}"], file: main.sh}}
zygotes: {zygotes}
prepare: {prepare}
"""
THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
# Of every ten runs of the polite client: policy, code with the run's number, more of the request.
PROGRAMS = [("minimal", "print({n})", {})] * 5 + [("minimal", "echo {n}", {"language": "bash"})] * 2 + [
    ("data", "print({n})", {}), ("data", "import pandas\nprint(pandas.Series([{n}, 1]).iloc[0])", {}),
    ("data", "import numpy\nprint(int(numpy.int64({n})))", {"mode": "cell"})]
FAILS = {  # what the build says: pip, zygotes, prepare
    "import greetbadly fails": (["greetbadly"], "{data: [greetbadly]}", "[]"),
    "leaves a thread running": (["threaded"], "{data: [threaded]}", "[]"),
    "prepare": (["greet"], "{}", "[[/bin/bash, -c, exit 3]]"),
    "no wheel of nowhere-to-be-found": (["nowhere-to-be-found"], "{}", "[]"),
}


class Others:
    """Those who must notice nothing: requests at a steady rate, whether or not the ones before were answered."""

    def __init__(self, path):
        self.path, self.lock, self.number, self.stops = path, threading.Lock(), 0, False
        self.wrong, self.took, self.told, self.begin = [], [], collections.Counter(), time.monotonic()
        self.ready = collections.Counter()
        self.threads = [threading.Thread(target=self.client) for _ in range(CALLERS)]
        self.threads += [threading.Thread(target=self.session, args=one) for one in
                         (("data", "python", "python"), ("minimal", "minimal", "bash"))]
        self.threads.append(threading.Thread(target=self.look))
        for thread in self.threads:
            thread.start()

    def client(self):
        caller = Caller(self.path)
        while not self.stops:
            with self.lock:
                self.number += 1
                number = self.number
            at = self.begin + number / RATE
            time.sleep(max(0.0, at - time.monotonic()))
            policy, code, more = PROGRAMS[number % len(PROGRAMS)]
            request = json.dumps({"language": "python", "policy": policy, "code": code.format(n=number)} | more)
            begin = time.monotonic()
            try:
                status, answer = caller.call("POST", "/v1/runs", request)
                while status == 429:
                    self.told["429, and asked again"] += 1
                    time.sleep(0.1)
                    status, answer = caller.call("POST", "/v1/runs", request)
            except OSError as failure:
                status, answer = 0, {"error": repr(failure)}
            took = time.monotonic() - begin
            with self.lock:
                if status == 200 and answer["status"] == "ok" and answer["stdout"] == f"{number}\n":
                    self.took.append(took)
                else:
                    self.wrong.append(f"run {number} of policy {policy}: HTTP {status}: {json.dumps(answer)[:600]}")

    def session(self, policy, template, context):
        caller, count = Caller(self.path), 0
        status, made = caller.call("POST", "/v1/sessions", json.dumps({"policy": policy, "template": template}))
        if status != 201:
            self.wrong.append(f"no session of {template}: {made}")
            return
        line = {"python": "n = globals().get('n', 0) + 1; print(n)", "bash": "n=$((n + 1)); echo $n"}[context]
        place = f"/v1/sessions/{made['id']}"
        while not self.stops:
            time.sleep(1)
            count += 1
            status, answer = caller.call("POST", f"{place}/contexts/{context}/run", json.dumps({"code": line}))
            if status != 200 or answer["stdout"] != f"{count}\n":
                self.wrong.append(f"cell {count} in {template}: HTTP {status}: {json.dumps(answer)[:600]}")
                return
        self.told[f"cells in {template}"] = count

    def look(self):
        caller = Caller(self.path)
        while not self.stops:
            status, answer = caller.call("GET", "/readyz")
            self.ready[status, answer.get("cause", "")] += 1
            time.sleep(0.2)

    def end(self):
        self.stops = True
        for thread in self.threads:
            thread.join()
        self.wrong += [f"/readyz said {status}, {count} times: {cause}" for (status, cause), count in self.ready.items()
                       if status != 200 and "template" in cause]  # that every slot is in use is no failure


class Changes:
    """Steps on the one template; `stands` are the versions that may answer now, None for "there is none"."""

    def __init__(self, build, state, folder, service):
        self.build, self.state, self.service = build, state, service
        self.recipe, self.wheels = pathlib.Path(folder, "changes.yaml"), pathlib.Path(folder, "wheels")
        self.place = pathlib.Path(state, "templates", "changes")
        self.wheels.mkdir()
        self.index = IndexServer(self.wheels)
        self.serves = threading.Thread(target=self.index.serve_forever, kwargs={"poll_interval": 0.05})
        self.serves.start()
        self.version, self.wrong, self.did = 0, [], collections.Counter()
        self.built = []  # versions: the one in place, then the one of before
        self.seconds = 1.0  # that a build takes
        wheel_of(self.wheels, "threaded", "1.0", {"threaded.py": THREAD})
        wheel_of(self.wheels, "greetbadly", "1.0", {"greetbadly.py": "import a_module_that_is_missing\n"})

    def close(self):
        self.index.shutdown()
        self.serves.join()
        self.index.server_close()

    def command(self, *words):
        env = os.environ | {"GLOVEBOX_STATE": self.state, "PIP_CONFIG_FILE": os.devnull, "PIP_EXTRA_INDEX_URL": "",
                            "PIP_FIND_LINKS": "", "PIP_INDEX_URL": f"http://127.0.0.1:{self.index.server_port}/simple"}
        return subprocess.Popen([f"{self.build}/glovebox", "template", *words], env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ends(self, *words, code=0, says=""):
        process = self.command(*words)
        said = process.communicate(timeout=300)[0]
        if (process.returncode == 0) != (code == 0) or says not in said:
            self.wrong.append(f"template {' '.join(words)}: {process.returncode}: {said[-600:]}")

    def write(self, pip, zygotes="{data: [greet]}", prepare="[]"):
        self.recipe.write_text(RECIPE.format(pip=json.dumps(pip), zygotes=zygotes, prepare=prepare), encoding="utf-8")

    def next_version(self):
        self.version += 1
        wheel_of(self.wheels, "greet", f"{self.version}.0", {"greet.py": f"WORD = {self.version}\n"})
        self.write([f"greet=={self.version}.0"])

    def is_answered(self, version, seconds=30.0):
        """Runs in it are answered by this version within that time, or by 404 for None."""
        caller, end, answer = Caller(self.service.socket), time.monotonic() + seconds, None
        while time.monotonic() < end:
            answer = run_changes(caller)
            if answer == version:
                return
            time.sleep(0.02)
        self.wrong.append(f"runs in changes are answered {answer!r}, not {version!r}")

    def step_build(self):
        self.next_version()
        begin = time.monotonic()
        self.ends("build", str(self.recipe))
        self.seconds = time.monotonic() - begin
        self.built = [self.version, *self.built[:1]]
        self.is_answered(self.version)

    def step_fail(self):
        says, (pip, zygotes, prepare) = random.choice(list(FAILS.items()))
        wheel_of(self.wheels, "greet", "0.1", {"greet.py": "WORD = 0\n"})
        self.write(pip, zygotes, prepare)
        self.ends("build", str(self.recipe), code=1, says=says)
        self.is_answered(self.built[0] if self.built else None)

    def step_kill(self):
        self.next_version()
        process = self.command("build", str(self.recipe))
        time.sleep(random.uniform(0, 1.1) * self.seconds)
        process.kill()
        process.communicate()
        time.sleep(1)
        self.wrong += [f"a build that was killed has left a process: {line}" for line in builders(self.place)]
        caller, end = Caller(self.service.socket), time.monotonic() + 2
        while time.monotonic() < end and run_changes(caller) not in (self.version, *self.built[:1], *([] if self.built else [None])):
            time.sleep(0.02)
        if run_changes(caller) == self.version:  # it was done
            self.built = [self.version, *self.built[:1]]
        self.is_answered(self.built[0] if self.built else None)

    def step_roll_back(self):
        if len(self.built) == 2:
            self.ends("rollback", "changes")
            self.built.reverse()
            self.is_answered(self.built[0])

    def step_remove(self):
        if self.built:
            self.ends("remove", "changes")
            self.built = []
            self.is_answered(None)
            self.ends("rollback", "changes", code=1, says="no earlier template")

    def step_damage(self):
        """Behind the back of all commands: a folder whose parts are missing or wrong takes the template's place at once, or its
        files are changed where they are. The next build heals it."""
        if not self.built:
            return
        how = self.choose_damage()
        broken = self.place.with_name(".broken")
        subprocess.run(["cp", "-a", self.place, broken], check=True)
        manifest = json.loads((broken / "manifest.json").read_text())
        (broken / "manifest.json").write_text(json.dumps(manifest | {"digest": "sha256:" + "0" * 64}))
        DAMAGES[how](broken)
        if random.random() < 0.5:
            DAMAGES[how](self.place)
        self.place.rename(self.place.with_name(".was"))
        broken.rename(self.place)
        self.did[how] += 1
        caller = Caller(self.service.socket)
        for _ in range(10):
            begin = time.monotonic()
            run_changes(caller)
            if time.monotonic() - begin > 60:
                self.wrong.append(f"a run in a template with {how} was answered after {time.monotonic() - begin:.1f} s")
        shutil.rmtree(self.place)
        shutil.rmtree(self.place.with_name(".was"))
        self.built = []
        self.step_build()

    def choose(self):
        return random.choice([self.step_build, self.step_fail, self.step_kill, self.step_roll_back, self.step_remove,
                              self.step_damage])

    def choose_damage(self):
        return random.choice(list(DAMAGES))

    def turn(self):
        """False after the last one."""
        step = self.choose()
        if step:
            self.did[step.__name__] += 1
            step()
        return step is not None


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir(mode=0o755)


DAMAGES = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "a cut manifest": lambda folder: (folder / "manifest.json").write_text('{"digest": "sha'),
    "no python3": lambda folder: (folder / "root/usr/bin/python3").unlink(),
    "an empty root": lambda folder: empty(folder / "root"),
    "no root": lambda folder: shutil.rmtree(folder / "root"),
    "a cut C library": lambda folder: [os.truncate(path, 5000) for path in folder.glob("root/usr/lib/*/libc.so.6")],
    "a module with a thread": lambda folder: [path.write_text(THREAD) for path in
                                              folder.glob("root/usr/local/lib/python3*/dist-packages/greet.py")],
    "a module that ends the interpreter": lambda folder: [path.write_text("import os\nos._exit(0)\n") for path in
                                                          folder.glob("root/usr/local/lib/python3*/dist-packages/greet.py")],
}


def run_changes(caller):
    """The version that answers, None if there is no such template, or what else was said."""
    status, answer = caller.call("POST", "/v1/runs", json.dumps(
        {"policy": "minimal", "template": "changes", "code": "import greet\nprint(greet.WORD)", "language": "python"}))
    if status == 404 and "no template is named 'changes'" in answer["error"]["message"]:
        return None
    if status == 200 and answer["status"] == "ok" and answer["stdout"].strip().isdigit():
        return int(answer["stdout"])
    return json.dumps(answer)[:600]


def builders(place):
    """Processes whose root or working folder is a template that is being built."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            seen = {os.readlink(process / "root"), os.readlink(process / "cwd")}
            if any(link.startswith(f"{place.with_name('.building-changes')}") for link in seen):
                yield f"{process.name} {(process / 'cmdline').read_bytes()[:200]}"
        except OSError:
            pass


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def templates_of_its_own(build, folder):
    """A state folder whose `minimal` and `python` are links to those that are built."""
    built = pathlib.Path(os.environ.get("GLOVEBOX_STATE", f"{build}/state"), "templates")
    place = pathlib.Path(folder, "built", "templates")
    place.mkdir(parents=True)
    for name in ("minimal", "python"):
        (place / name).symlink_to((built / name).resolve())
    os.environ["GLOVEBOX_STATE"] = str(place.parent)
    return place


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else f"{TOP}/build")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 300
    seed = int(os.environ.get("GLOVEBOX_SEED", random.randrange(1 << 30)))
    random.seed(seed)
    with tempfile.TemporaryDirectory(prefix="glovebox-templates-") as folder:
        os.chmod(folder, 0o755)
        place = templates_of_its_own(build, folder)
        with Service(build, folder, 32) as service:
            changes = Changes(build, str(place.parent), folder, service)
            others = Others(service.socket)
            try:
                changes.step_build()
                end = time.monotonic() + seconds
                while time.monotonic() < end and not changes.wrong and not others.wrong and changes.turn():
                    pass
            finally:
                others.end()
                changes.close()
            ran = time.monotonic() - others.begin
        changes.ends("build", str(changes.recipe)) if not changes.wrong else None
        left = sorted(entry.name for entry in place.iterdir() if entry.name.startswith((".building", ".leaving")))
    print(f"seed {seed}: {dict(changes.did)}")
    print(f"{len(others.took)} runs of others in {ran:.0f} s, {len(others.took) / ran:.1f} a second: p50 "
          f"{quantile(others.took, .5) * 1000:.1f} ms, p99 {quantile(others.took, .99) * 1000:.0f} ms, at most "
          f"{max(others.took, default=0) * 1000:.0f} ms; {dict(others.told)}; /readyz: {dict(others.ready)}")
    wrong = others.wrong + changes.wrong + [f"left in the folder of templates: {name}" for name in left]
    for line in wrong[:20]:
        print(f"WRONG {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
