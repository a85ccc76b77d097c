"""Withheld is withheld: two programs that differ in everything they do, and whose output does not pass, look the same to
the key that asked, to every other key without the scope `audit`, and to those who hold the log."""

import base64
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import signal
import time

import pytest
from conftest import Glovebox
from serving import Serving, state_of_its_own, with_policies

pytestmark = pytest.mark.usefixtures("python_template")

WALL_MS = 2000
POLICIES = {"numbers": f"template: minimal\nlimits: {{wall: {WALL_MS}ms}}\nnetwork: {{allow: [{{host: example.org, ports: [80]}}]}}\n"
                       "expect:\n  on_fault: withhold\n  stdout: {schema: {type: object, required: [mean]}}\n  others: forbid",
            "cells": f"template: minimal\nlimits: {{wall: {WALL_MS}ms}}\n"
                     "expect: {on_fault: withhold, stdout: {schema: {type: integer}}}",
            "open": "template: minimal\nnetwork: {allow: [{host: example.org, ports: [80]}]}",
            # longer than cells below try to get processor time
            "long-cells": f"template: minimal\nlimits: {{wall: {4 * WALL_MS}ms}}\n"
                          "expect: {on_fault: withhold, stdout: {schema: {type: integer}}}"}

# What a program can do so that somebody who sees how it went learns more than that it did not pass.
CHANNELS = {
    "nothing": "print('x')",
    "another output": "print('y' * 100000)",
    "no output": "",
    "stderr": "import sys; print('x'); sys.stderr.write('z' * 4711)",
    "output over its limit": "print('x' * (8 << 20))",
    "not UTF-8": "import sys; sys.stdout.buffer.write(bytes(range(256)))",
    "exit code": "print('x'); import os; os._exit(77)",
    "signal": "print('x'); import os; os.kill(os.getpid(), 11)",
    "an error": "raise ValueError('PATIENT 4711')",
    "a long traceback": "def f(n):\n    if n: f(n - 1)\n    raise KeyError(n)\nf(30)",
    "artifacts": "print('x')\nfor i in range(28): open(f'{i}', 'w').write('%03d' % i + 'ab')",
    "one artifact": "print('x'); open('secret.bin', 'wb').write(b'12' * 999)",
    "kinds of artifacts": "print('x'); open('a.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n'); open('b.html', 'w').write('<html>')",
    "times of artifacts": "print('x'); import os; open('a', 'w').close(); os.utime('a', (1e9, 1e9))",
    "names": "print('x'); open('DE89370400440532013000', 'w').close()",
    "kinds of files": "print('x'); import os; os.symlink('/', 'link'); os.mkfifo('fifo'); os.mkdir('d')",
    "memory": "x = bytearray(50 << 20); x[::4096] = b'1' * len(x[::4096]); print('x')",
    "too much memory": "x = [bytearray(1 << 20) for _ in range(1 << 20)]",
    "processor": "import time; t = time.process_time()\nwhile time.process_time() - t < 0.4: pass\nprint('x')",
    "time": "import time; time.sleep(1.2); print('x')",
    "the end of time": "print('x', flush=True); import time; time.sleep(60)",
    "processes": "import os, time\nfor _ in range(9):\n    if not os.fork(): time.sleep(0.2); os._exit(0)\nprint('x')",
    "processes left": "import os, time\nif not os.fork():\n    os.setsid(); time.sleep(60)\nprint('x')",
    "disk": "print('x'); import os; f = open('/tmp/big', 'wb'); f.write(b'1' * (9 << 20)); f.flush(); os.unlink('/tmp/big')",
    "a denial": "import socket\ntry: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nexcept OSError: pass\nprint('x')",
    "a host that is refused": "import socket\ntry: socket.create_connection(('secret.example', 80), 1)\nexcept OSError: pass\nprint('x')",
    "connections": "import socket\nfor _ in range(3):\n    try: socket.create_connection(('example.org', 80), 1)\n"
                   "    except OSError: pass\nprint('x')",
    "what fails": "print('{}')",
    "what fails, and where": "print('\\n\\n\\n{\"mean\":')",
    "what cannot be compared": "print('[' * 100000)",
    "passes but for a file": "print('{\"mean\": 1}'); open('n', 'w').write('5')",
}


@pytest.fixture(name="service", scope="module")
def service_(tmp_path_factory):
    glovebox = Glovebox(tmp_path_factory.mktemp("withheld"))
    state_of_its_own(glovebox)
    with Serving(glovebox, env=with_policies(glovebox, POLICIES), slots=4) as server:
        server.asker = server.key("--tenant", "t", "--scope", "run,sessions")
        server.auditor = server.key("--tenant", "t", "--scope", "audit")
        yield server


def post(service, code, **request):
    began = time.monotonic()
    answer = service.run(code, policy="numbers", key=service.asker, **request)
    assert answer.status == 200, answer.body
    return answer.json, time.monotonic() - began


def payload(service, result, key):
    answer = service.call("GET", f"/v1/receipts/{result['receipt']}", key=key)
    assert answer.status == 200, answer.body
    return json.loads(base64.b64decode(answer.json["payload"]))


def blind(value, result):
    """Without what was known when it began, or is made by chance: ids, moments of asking, the place in the log."""
    text = json.dumps(value, sort_keys=True)
    for known in (result["id"], result["receipt"]):
        text = text.replace(known, "ID")
    text = re.sub(r'"(submitted_ms|started_ms|written_ms|queued_ms|index)": \d+', r'"\1": 0', text)
    text = re.sub(r'"(commitment|root_before|sealed)": "([^"]*)"', lambda found: f'"{found[1]}": {len(found[2])}', text)
    return re.sub(r'"start": "(parked|built)"', '"start": ""', text)


def test_every_channel_says_the_same(service):
    """Result, receipt and events of each, word for word but for ids and what the asker has sent itself."""
    seen = {}
    with concurrent.futures.ThreadPoolExecutor(4) as threads:  # the asker knows its own code: it is as long here
        told = list(threads.map(lambda code: post(service, code.ljust(400)), CHANNELS.values()))
    for what, (result, took) in zip(CHANNELS, told, strict=True):
        receipt = payload(service, result, service.asker)
        assert receipt["predicate"]["times"]["written_ms"] - receipt["predicate"]["times"]["started_ms"] >= WALL_MS, what
        assert took >= WALL_MS / 1000, what
        seen.setdefault(blind([result, receipt], result), []).append(what)
    assert len(seen) == 1, "\n".join(f"{names}: {text}" for text, names in seen.items())


def inits(pid):
    """Those of glovebox-init below a process."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return [one for one in found if "glovebox-init" in pathlib.Path(f"/proc/{one}/cmdline").read_text()]


def test_a_program_that_does_not_die_reveals_nothing_more(service):
    """A program can make its end slow: then it is killed from outside, and that it had used up its time is withheld, too."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        asked = thread.submit(post, service, "print('x', flush=True); import time; time.sleep(60)")
        time.sleep(WALL_MS / 2000)
        stopped = inits(service.process.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            result, _ = asked.result(60)
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    assert (result["status"], result["fault"], result["limit"]) == ("error", "policy", None), result
    assert blind(result, result) == blind(*[post(service, "print('x')")[0]] * 2)


def test_the_attack_of_the_hashes(service):
    """28 artifacts of 3 digits and 2 bytes were read out of their hashes by trying, sizes and names of others directly."""
    secret = "PATIENT 4711: HIV positive; iban DE89370400440532013000"
    code = (f"secret = {secret!r}\nfor i in range(28): open(f'{{i}}', 'w').write('%03d' % i + secret[2 * i:2 * i + 2])\n"
            "print('no number')")
    result, _ = post(service, code)
    log = service.glovebox("log", "search", "--json", result["id"]).stdout.decode()
    told = json.dumps(result) + json.dumps(payload(service, result, service.asker)) + log
    assert result["receipt"] in log
    for i in range(28):
        content = f"{i:03}{secret[2 * i:2 * i + 2]}".encode()
        assert hashlib.sha256(content).hexdigest() not in told
        assert service.call("HEAD", f"/v1/artifacts/sha256:{hashlib.sha256(content).hexdigest()}", key=service.asker).status == 404
    # Nor is a short input or output of a run that passed to be guessed by those who have the log.
    passed = service.run("print('{\"mean\": 7}')", policy="numbers", key=service.asker, stdin="yes").json
    assert passed["gate"]["verdict"] == "passed"
    log = service.glovebox("log", "search", "--json", passed["id"]).stdout.decode()
    for guess in (b"yes", b"no", b'{"mean": 7}\n', b"print('{\"mean\": 7}')"):
        assert hashlib.sha256(guess).hexdigest() not in log and hashlib.sha256(guess).digest() not in log.encode()


def test_access_by_scope(service):
    """The key that was answered opens what it has seen; a key with scope audit what was withheld, too; others nothing."""
    other = service.key("--tenant", "t", "--scope", "run,approve,sessions,admin")
    stranger = service.key("--tenant", "elsewhere", "--scope", "audit")
    withheld, _ = post(service, "print('x'); open('n', 'w').write('5')")
    passed = service.run("print('{\"mean\": 7}')", policy="numbers", key=service.asker).json

    def status(result, key):
        return service.call("GET", f"/v1/receipts/{result['receipt']}/opening", key=key).status

    assert [status(passed, key) for key in (service.asker, service.auditor, other, stranger)] == [200, 200, 403, 404]
    assert [status(withheld, key) for key in (service.asker, service.auditor, other, stranger)] == [403, 200, 403, 404]
    opening = service.call("GET", f"/v1/receipts/{withheld['receipt']}/opening", key=service.auditor).json
    hashes = {f"{one['group']}/{one['name']}": one["sha256"] for one in opening["sealed_items"]}
    assert hashes["artifacts/n"] == hashlib.sha256(b"5").hexdigest()
    assert opening["sealed"]["predicate"]["outcome"]["exit_code"] == 0
    opening = service.call("GET", f"/v1/receipts/{passed['receipt']}/opening", key=service.asker).json
    said = payload(service, passed, service.asker)["predicate"]
    assert opening["sealed"] is None
    item = next(one for one in opening["items"] if one["name"] == "stdout")
    assert item["sha256"] == hashlib.sha256(b'{"mean": 7}\n').hexdigest() != said["outputs"]["stdout"]["commitment"]


def test_the_end_of_a_withheld_cell_is_not_visible(service):
    """Asking for its state, or reading its events, says `running` until it is answered."""
    answer = service.call("POST", "/v1/runs", {"code": "print('x')", "language": "python", "policy": "numbers"},
                          key=service.asker, headers={"Prefer": "respond-async"})
    place, seen, began = f"/v1/runs/{answer.json['id']}", [], time.monotonic()
    while not seen or seen[-1] not in ("error", "ok", "lost"):
        state = service.call("GET", place, key=service.asker).json["status"]
        if not seen or state != seen[-1]:
            seen.append(state)
        assert time.monotonic() - began < 30
        time.sleep(0.05)
    assert seen[-2:] == ["running", "error"] and not {"stopping", "collecting", "gating"} & set(seen), seen
    stream = service.call("POST", "/v1/runs", {"code": "print('x'); 1/0", "language": "python", "policy": "numbers"},
                          key=service.asker, headers={"Accept": "text/event-stream"}).body.decode()
    assert re.findall(r"^event: (\w+)", stream, re.M) == ["started", "end"], stream


def test_global_counters_are_not_shown_to_callers(service):
    for path in ("/metrics", "/v1/status"):
        assert service.call("GET", path, key=service.asker).status in (403, 404), path


def test_connections_are_shown_to_no_watcher(service):
    """A name that is asked for may say anything."""
    seen, both = set(), service.key("--tenant", "t", "--scope", "run,audit")
    for names in ([], ["patient-4711.example"], [f"n{number}.example" for number in range(9)]):
        code = f"import socket\nfor name in {names}:\n    try: socket.getaddrinfo(name, 80)\n    except OSError: pass\nprint('x')"
        answer, _ = post(service, code)
        assert answer["error"]["name"] == "Withheld"
        seen |= {service.call("GET", "/v1/network/connections?follow=0", key=key).body for key in (service.asker, both)}
    assert seen == {b""}, seen
    told = service.run("import socket\ntry: socket.getaddrinfo('heard.example', 80)\nexcept OSError: pass", policy="open", key=service.asker)
    assert told.json["network"]
    asked = service.call("GET", "/v1/network/connections?follow=0", key=service.asker).body.decode()
    assert "heard.example" in asked and re.search(r"^id: (\d+)", asked, re.M)[1] == "1", asked


def glovebox_log(service, word):
    """The events of the log that hold the word, as who has its files reads them."""
    done = service.glovebox("log", "search", "--json", word)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_session_says_no_more_of_what_its_cells_use(service):
    said = set()
    for code in ("print('a')", "x = bytearray(40 << 20); x[::4096] = b'1' * len(x[::4096])",
                 "import os\nfor number in range(7): os.mkfifo(f'{number}')\nopen('b', 'w').write('x' * 99999)",
                 "import os, time\nfor _ in range(5):\n    if not os.fork(): time.sleep(0.1); os._exit(0)",
                 "import time; t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"):
        session = service.call("POST", "/v1/sessions", {"policy": "cells", "template": "minimal"}, key=service.asker).json
        place = f"/v1/sessions/{session['id']}"
        service.call("POST", f"{place}/contexts/python/run", {"code": code}, key=service.asker)
        usage = service.call("GET", place, key=service.asker).json["usage"]
        kept = service.call("POST", f"{place}/checkpoints", {"name": "a"}, key=service.asker).json
        branch = service.call("POST", f"{place}/branch", {}, key=service.asker).json
        usage = [usage, kept["bytes"], kept["not_carried"], branch["branched_from"]["not_carried"]]
        service.call("DELETE", f"/v1/sessions/{branch['id']}", key=service.asker)
        service.call("DELETE", place, key=service.asker)
        told = glovebox_log(service, session["id"])
        [marked] = [record["facts"] for record in told if record.get("event") == "session.checkpointed"]
        [ended] = [record["facts"] for record in told if record.get("event") == "session.ended"]
        said.add((json.dumps([usage, marked["bytes"]]), json.dumps({**ended, "session": ""})))
    assert len(said) == 1, said


def test_the_same_answer_again(service):
    request = {"code": "print('again')", "language": "python", "policy": "numbers"}
    answers = [service.call("POST", "/v1/runs", request, key=service.asker, headers={"Idempotency-Key": "k1"}).json
               for _ in range(2)]
    assert answers[0] == answers[1] and answers[0]["error"]["name"] == "Withheld"


def test_cells_say_no_more(service):
    session = service.call("POST", "/v1/sessions", {"policy": "cells", "template": "minimal"}, key=service.asker).json
    place = f"/v1/sessions/{session['id']}"
    seen = set()
    for code in ("print('a')", "1/0", "import time; time.sleep(0.5); 'x' * 99", "for i in range(999): print(i)",
                 "import time; time.sleep(60)"):
        result = service.call("POST", f"{place}/contexts/python/run", {"code": code.ljust(80)}, key=service.asker).json
        receipt = payload(service, result, service.asker)
        seen.add(re.sub(r'"number": \d+', '"number": 0', blind([result, receipt], result)))
    assert len(seen) == 1, "\n".join(seen)
    service.call("DELETE", place, key=service.asker)


def test_how_an_interpreter_ended_is_not_visible(service):
    """That it has ended shows, as the page says; by what signal or of what is withheld."""
    session = service.call("POST", "/v1/sessions", {"policy": "cells", "template": "minimal"}, key=service.asker).json
    place, seen = f"/v1/sessions/{session['id']}", set()
    for code in ("import os; os._exit(7)", "import os; os.kill(os.getpid(), 9)", "import os; os.abort()"):
        result = service.call("POST", f"{place}/contexts/python/run", {"code": code}, key=service.asker).json
        [context] = service.call("GET", place, key=service.asker).json["contexts"]
        seen.add((result["cell"]["context_state"], result["cell"]["context_end"], context["last_end"]))
    assert seen == {("lost", "it ended", "it ended")}, seen
    service.call("DELETE", place, key=service.asker)


def test_it_is_charged_all_the_same(service):
    """Its processor time counts for the quota of its key, although the time is not reported."""
    key = service.key("--tenant", "t", "--scope", "run", "--cpu-seconds-per-day", "1")
    burn = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.6: pass\nprint('x')"
    answers = []
    while len(answers) < 9 and (not answers or answers[-1].status == 200):
        answers.append(service.run(burn, policy="numbers", key=key))
        assert answers[-1].status == 429 or answers[-1].json["error"]["name"] == "Withheld"
    assert answers[-1].status == 429 and len(answers) > 1, "nothing was charged"


def test_a_cell_is_charged_once(service):
    """Withheld or not, it costs its key the same: what it used, of which a busy machine may give it less."""
    burn = ("import time; end = time.monotonic() + 4\n"
            "while time.process_time() < 0.4 and time.monotonic() < end: pass\nprint({})")
    charged = {}
    for text in ("int(time.process_time() * 1000)", "'x'"):
        key = service.key("--tenant", "t", "--scope", "sessions")
        session = service.call("POST", "/v1/sessions", {"policy": "long-cells", "template": "minimal"}, key=key).json
        place = f"/v1/sessions/{session['id']}"
        cell = service.call("POST", f"{place}/contexts/python/run", {"code": burn.format(text)}, key=key).json
        assert (cell["status"], cell["gate"]["verdict"]) == (("error", "failed") if text == "'x'" else ("ok", "passed")), cell
        assert service.call("DELETE", place, key=key).status == 200
        charged[cell["stdout"]] = next(one["cpu_ms"] for one in service.call("GET", "/v1/status").json["keys"] if one["id"] == key["id"])
    used = max(map(int, filter(None, map(str.strip, charged))))
    assert used <= charged[f"{used}\n"] < used + 300, charged
    assert min(used, 50) <= charged[""] < 700, charged
