"""API keys: what they open and what they do not, whose runs and files they see, and how much they may use."""

import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

MAKES_A_FILE = "open('out.txt', 'w').write('made by {0}')\nprint('{0}')"


@pytest.fixture(name="service")
def service_(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        yield service


def test_a_key_opens_the_port_and_nothing_else_does(service):
    key = service.key("--name", "ci")
    assert service.run("print(1)", key=key).json["stdout"] == "1\n"
    by_header = service.call("POST", "/v1/runs", {"code": "print(2)", "policy": "minimal"}, tcp=True,
                             headers={"X-API-Key": key["key"]})
    assert by_header.json["stdout"] == "2\n"
    wrong = key["key"][:-1] + ("A" if key["key"][-1] != "A" else "B")
    for sent in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer " + wrong}, {"X-API-Key": "x" * 5000},
                 {"Authorization": "Basic " + key["key"]}, {"Authorization": key["key"]}):
        answer = service.call("POST", "/v1/runs", {"code": "print(1)"}, tcp=True, headers=sent)
        assert answer.status == 401, sent
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.json["error"]["code"] == "unauthorized"
    both = service.call("GET", "/v1/limits", tcp=True,
                        headers={"Authorization": "Bearer " + key["key"], "X-API-Key": wrong})
    assert both.status == 400
    assert service.call("GET", "/healthz", tcp=True).status == 200, "whether it is well is no secret"


def test_the_socket_is_its_owners(service):
    assert service.run("print(1)").status == 200
    key = service.key("--scope", "audit")
    refused = service.call("POST", "/v1/runs", {"code": "1"}, key=key, tcp=False)
    assert refused.status == 403, "a key that is shown counts, also for the owner"
    assert "scope run" in refused.json["error"]["message"]
    if os.geteuid() != 0:
        return
    os.chmod(service.socket, 0o666)  # as a socket of systemd may be
    done = os.fork()
    if done == 0:
        os.setresuid(4242, 4242, 4242)
        os._exit(0 if service.call("GET", "/v1/limits").status == 401 else 1)
    assert os.waitpid(done, 0)[1] == 0, "another user needs a key"


def test_revoked_rotated_and_expired_keys_are_refused_at_once(service):
    key = service.key()
    assert service.call("GET", "/v1/limits", key=key).status == 200
    rotated = service.glovebox("key", "rotate", key["id"], "--json")
    new = json.loads(rotated.stdout)["key"]
    assert service.call("GET", "/v1/limits", key=key).status == 401
    assert service.call("GET", "/v1/limits", key=new).status == 200
    graced = json.loads(service.glovebox("key", "rotate", key["id"], "--grace", "1h", "--json").stdout)["key"]
    assert [service.call("GET", "/v1/limits", key=each).status for each in (new, graced)] == [200, 200]
    assert service.glovebox("key", "revoke", key["id"]).returncode == 0
    for each in (new, graced):
        answer = service.call("GET", "/v1/limits", key=each)
        assert answer.status == 401 and "revoked" in answer.json["error"]["message"]
    short = service.key("--expires", "1s")
    end = time.monotonic() + 30
    while service.call("GET", "/v1/limits", key=short).status == 200 and time.monotonic() < end:
        time.sleep(0.1)
    assert "expired" in service.call("GET", "/v1/limits", key=short).json["error"]["message"]
    listed = {row["id"]: row["state"] for row in json.loads(service.glovebox("key", "list", "--json").stdout)}
    assert listed[key["id"]] == "revoked" and listed[short["id"]] == "expired"
    assert key["key"] not in service.glovebox("key", "list", "--json").stdout.decode(), "it is shown once"


def test_an_unknown_policy_is_reported(glovebox):
    state_of_its_own(glovebox)
    made = glovebox("key", "create", "--policy", "minimal,dta")
    assert made.returncode == 0 and made.stdout.startswith(b"glb_"), made
    assert b"no policy is named 'dta' here" in made.stderr and b"'minimal'" not in made.stderr
    assert b"no policy" not in glovebox("key", "create", "--policy", "minimal,data").stderr
    assert b"no policy" not in glovebox("key", "create").stderr


def test_the_rights_of_a_new_key_are_printed(glovebox):
    state_of_its_own(glovebox)
    made = glovebox("key", "create", "ci")
    key = json.loads(glovebox("key", "list", "--json").stdout)[0]
    assert key["name"] == "ci"
    assert made.stderr.decode() == (f"glovebox: this is key {key['id']}, for run with every policy; it is not shown again; "
                                    "sessions need --scope run,sessions\n")
    said = glovebox("key", "create", "--scope", "run,sessions", "--policy", "minimal").stderr
    assert b", for run,sessions with minimal; it is not shown again\n" in said
    assert b"with every policy; it is not shown again\n" in glovebox("key", "create", "--scope", "audit").stderr


def test_a_policy_of_a_key_that_is_not_there_is_named(glovebox):
    unknown = b"glovebox: no policy is named 'dta' here so far"
    state_of_its_own(glovebox)
    said = glovebox("key", "create", "--policy", "dta,minimal").stderr
    assert unknown in said and b"'minimal' here" not in said, said
    if os.geteuid() != 0:
        return
    usual = f"mount -t tmpfs none /var/lib && exec {glovebox.program} key create --policy dta"  # the state folder of root's service
    done = subprocess.run(["unshare", "--mount", "sh", "-c", usual], env=glovebox.environment({"GLOVEBOX_STATE": None}), capture_output=True, check=False)
    assert done.returncode == 0 and unknown in done.stderr, done


def test_policies_of_a_key(service):
    key = service.key("--policy", "minimal,data", "--scope", "run,sessions")
    assert service.run("print(1)", key=key).status == 200
    for path, body in (("/v1/runs", {"code": "1", "policy": "extended"}), ("/v1/sessions", {"policy": "extended"})):
        answer = service.call("POST", path, body, key=key)
        assert answer.status == 403, answer.body
        assert "may not use policy 'extended'; it may use: minimal,data" in answer.json["error"]["message"]


# What every route answers to: a key of the same tenant, of another one, of nobody, of the wrong scope.
# {run}, {sha}, {session} belong to tenant a.
ROUTES = [
    # method, path,                          scope,      own, other
    ("GET",    "/v1/runs/{run}",             "run",      200, 404),
    ("GET",    "/v1/runs/{run}/events",      "run",      200, 404),
    ("DELETE", "/v1/runs/{run}",             "run",      200, 404),
    ("GET",    "/v1/artifacts/{sha}",        "run",      200, 404),
    ("GET",    "/v1/artifacts/sha256:{sha}", "run",      200, 404),
    ("GET",    "/v1/sessions/{session}",     "sessions", 200, 404),
    ("PATCH",  "/v1/sessions/{session}",     "sessions", 200, 404),
    ("GET",    "/v1/sessions/{session}/contexts", "sessions", 200, 404),
    ("POST",   "/v1/sessions/{session}/contexts/python/run", "sessions", 200, 404),
    ("POST",   "/v1/sessions/{session}/contexts/python/interrupt", "sessions", 200, 404),
    ("GET",    "/v1/sessions/{session}/ports:token", "sessions", 200, 404),
    ("GET",    "/v1/sessions/{session}/ports/8080/", "sessions", 403, 404),  # this policy has no loopback
    ("GET",    "/v1/policies",               None,       200, 200),
    ("GET",    "/v1/templates",              None,       200, 200),
    ("GET",    "/v1/limits",                 None,       200, 200),
    ("GET",    "/v1/status",                 "admin",    200, 200),
    ("DELETE", "/v1/sessions/{session}",     "sessions", 200, 404),
]


def test_every_route_for_own_other_none_and_wrong_scope(service):
    every = "run,sessions,approve,audit,admin"
    own = [service.key("--tenant", "a", "--scope", every) for _ in range(2)]
    other = service.key("--tenant", "b", "--scope", every)
    run = service.run(MAKES_A_FILE.format("a"), key=own[0]).json
    sha = hashlib.sha256(b"made by a").hexdigest()
    assert run["artifacts"][0]["sha256"] == sha
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=own[0]).json
    bodies = {"PATCH": {"metadata": {}}, "POST": {"code": "1"}}
    wrong = []
    for method, path, scope, for_own, for_other in ROUTES:
        place = path.format(run=run["id"], sha=sha, session=session["id"])
        body = bodies.get(method)
        expected = [(other, for_other), ("glb_0000000000000000_" + "A" * 43, 401)]
        if scope:
            lacks = [name for name in every.split(",") if name != scope]
            if scope == "run":
                lacks.remove("sessions")  # a cell of a session is a run: they may read its result
            expected.append((service.key("--tenant", "a", "--scope", ",".join(lacks)), 403))
        expected.append((own[1], for_own))
        for key, status in expected:
            got = service.call(method, place, body, key=key).status
            if got != status:
                wrong.append((method, path, got, status))
        if service.call(method, place, body, tcp=True).status != 401:
            wrong.append((method, path, "without a key"))
    assert not wrong
    assert service.call("GET", "/v1/sessions?state=all", key=other).json["sessions"] == []
    assert [row["id"] for row in service.call("GET", "/v1/sessions?state=all", key=own[1]).json["sessions"]]
    assert service.call("GET", f"/v1/runs/{run['id']}").status == 404, "not even the owner of the daemon"


def test_the_same_bytes_are_another_tenants_only_once_it_made_them(service):
    mine, theirs = service.key("--tenant", "a"), service.key("--tenant", "b")
    sha = service.run(MAKES_A_FILE.format("all"), key=mine).json["artifacts"][0]["sha256"]
    assert service.call("GET", f"/v1/artifacts/{sha}", key=theirs).status == 404
    assert service.run(MAKES_A_FILE.format("all"), key=theirs).json["artifacts"][0]["sha256"] == sha
    assert service.call("GET", f"/v1/artifacts/{sha}", key=theirs).body == b"made by all"


def test_tenants_share_no_interpreter(service):
    """Children of one zygote have the same hash seed and the same addresses; of two, they have not."""
    code = "print(hash('seed'), id(object), id(len))"
    keys = [service.key("--tenant", name) for name in ("a", "b")]
    seen = [service.run(code, key=key).json["stdout"] for key in (keys[0], keys[1], keys[0])]
    assert seen[0] != seen[1], "another tenant"
    assert seen[0] == seen[2], "the same tenant: this test tells zygotes apart"


def test_runs_per_minute_and_what_the_headers_say(service):
    key = service.key("--runs-per-minute", "3", "--cpu-seconds-per-day", "100")
    answers = [service.run("print(1)", key=key) for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert answers[0].headers["RateLimit-Policy"] == '"runs";q=3;w=60, "cpu-seconds";q=100;w=86400'
    assert answers[0].headers["RateLimit"].startswith('"runs";r=2;t=')
    assert answers[0].headers["RateLimit-Limit"] == "3" and answers[0].headers["RateLimit-Remaining"] == "2"
    refused = answers[3]
    assert 1 <= int(refused.headers["Retry-After"]) <= 21
    assert refused.headers["RateLimit-Remaining"] == "0" and int(refused.headers["RateLimit-Reset"]) <= 60
    told = refused.json["error"]
    assert (told["code"], told["fault"], told["retryable"]) == ("quota", "caller", True)
    assert "may start 3 runs a minute" in told["message"]
    assert f"the next may start in {refused.headers['Retry-After']} s" in told["message"]
    assert service.call("GET", "/v1/limits", key=key).status == 200, "only runs are counted"
    assert service.run("print(1)", key=service.key()).status == 200, "another key has its own"


def test_processor_time_of_a_day_survives_a_restart(glovebox):
    state_of_its_own(glovebox)
    burn = "import time\nwhile time.process_time() < 1.05: pass"
    with Serving(glovebox) as service:
        key = service.key("--cpu-seconds-per-day", "1")
        burnt = service.run(burn, key=key, policy="data", template="minimal", limits={"wall_ms": 120000})  # beside others
        assert burnt.json["status"] == "ok" and burnt.json["usage"]["cpu_ms"] >= 1000, burnt.json
        refused = service.run("print(1)", key=key)
        told = refused.json["error"]
        assert refused.status == 429 and told["code"] == "quota"
        assert re.search(r"has used 1\.[0-9] s of its 1 s of processor time", told["message"]), told
        assert 0 < int(refused.headers["Retry-After"]) <= 86400
        assert f"the next begins in {refused.headers['Retry-After']} s" in told["message"]
    with Serving(glovebox) as service:
        assert service.run("print(1)", key=key).status == 429


def test_concurrency_of_a_key_is_held_and_its_others_wait(service):
    key = service.key("--concurrency", "1")
    code = "import time\nt = time.time()\ntime.sleep(0.3)\nprint(t, time.time())"
    spans = []
    threads = [threading.Thread(target=lambda: spans.append(service.run(code, key=key).json["stdout"].split()))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spans = sorted((float(first), float(last)) for first, last in spans)
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:])), spans


def test_one_tenant_cannot_hold_every_connection(service):
    """Requests that wait hold theirs for as long as they like."""
    mine = [service.key("--tenant", "a") for _ in range(2)]
    other = service.key("--tenant", "b")
    run = service.call("POST", "/v1/runs", {"code": "import time; time.sleep(60)", "policy": "minimal"}, key=mine[0],
                       headers={"Prefer": "respond-async"}).json
    held = []
    for turn in range(530):
        peer = socket.create_connection(("127.0.0.1", service.port))
        peer.sendall(f"GET /v1/runs/{run['id']}/events HTTP/1.1\r\nHost: localhost\r\n"
                     f"Authorization: Bearer {mine[turn % 2]['key']}\r\n\r\n".encode())
        held.append(peer)
    answers = [peer.recv(12) for peer in held[:300]]
    assert (answers.count(b"HTTP/1.1 200"), answers.count(b"HTTP/1.1 429")) == (256, 44)
    assert service.call("GET", "/v1/limits", key=other).status == 200, "another tenant is served"
    for peer in held:
        peer.close()
    service.call("DELETE", f"/v1/runs/{run['id']}", key=mine[0])  # else the service waits for it at its end


def test_one_flooding_key_does_not_delay_other_keys(glovebox):
    """One key has thirty runs in the queue; of another one each run is next."""
    state_of_its_own(glovebox)
    with Serving(glovebox, "--queue", "256", "--key-queue", "64", slots=2) as service:
        many, one = service.key("--name", "many"), service.key("--name", "one")
        ended = []
        flood = [threading.Thread(target=lambda: ended.append(service.run(
            "import time; time.sleep(0.1)", key=many, cold=True).status)) for _ in range(30)]
        for thread in flood:
            thread.start()
        while service.call("GET", "/healthz").json["queued"] < 20:
            time.sleep(0.01)
        before = len(ended)
        for _ in range(3):
            assert service.run("print(1)", key=one).status == 200
        between = len(ended) - before
        for thread in flood:
            thread.join()
        assert between <= 14, f"{between} of the flood went first"
        assert set(ended) == {200}


def test_a_queue_that_was_full_stays_short_while_requests_are_refused(glovebox):
    """Two runs are served, four of each key and six in all may wait; waiting runs are cancelled to make room."""
    state_of_its_own(glovebox)
    with Serving(glovebox, "--queue", "6", "--key-queue", "4", slots=2) as service:
        keys = [service.key("--name", name, "--concurrency", "2") for name in ("one", "two", "three")]
        waiting = {}

        def ask(key):
            answer = service.call("POST", "/v1/runs", {"code": "import time; time.sleep(100)", "language": "python",
                                                       "policy": "data"},
                                  key=keys[key], headers={"Prefer": "respond-async"})
            if answer.status == 202:
                waiting.setdefault(key, []).append(answer.json["id"])
            else:
                assert answer.headers["Retry-After"] == "1" and "wait already" in answer.json["error"]["message"]
            return answer.status

        def leave(key, count):
            for run in [waiting[key].pop() for _ in range(count)]:
                assert service.call("DELETE", f"/v1/runs/{run}", key=keys[key]).json["status"] == "cancelled"

        def queued():
            return service.call("GET", "/healthz").json["queued"]

        assert [ask(0), ask(0)] == [202, 202]
        while queued() > 0:
            time.sleep(0.01)  # what was parked for others makes room first
        assert [ask(0) for _ in range(4)] == [202] * 4 and queued() == 4, "two are served, four wait"
        assert ask(0) == 429
        assert [ask(1), ask(1), ask(2)] == [202, 202, 429], "the first key's crowd is its own; then all places are taken"
        leave(0, 2)
        assert queued() == 4
        assert ask(0) == 429, "more of it wait than half of what is served of it"
        assert ask(1) == 429, "it has more than its share"
        assert ask(2) == 202, "who has nothing waiting is let in"
        leave(0, 2)
        assert queued() == 3
        assert [ask(0), ask(0)] == [202, 429], "its share is one"
        time.sleep(2.1)
        assert [ask(0), ask(0)] == [202, 202], "nobody was refused for a while: a burst is taken again"
        for key in [*waiting]:
            leave(key, len(waiting[key]))


def test_one_key_leaves_slots_to_the_others(glovebox):
    """However it takes them: as sessions or as runs. A key of its own --concurrency has what that says."""
    state_of_its_own(glovebox)
    with Serving(glovebox, slots=8) as service:
        scope, session = ("--scope", "run,sessions"), {"policy": "minimal"}
        mine = service.key(*scope)

        def begin(key):
            return service.call("POST", "/v1/sessions", session, key=key)

        def end(made, key):
            assert service.call("DELETE", f"/v1/sessions/{made.json['id']}", key=key).status == 200

        def holds():
            return next(row for row in service.call("GET", "/v1/status").json["keys"] if row["id"] == mine["id"])

        alone = [begin(mine) for _ in range(8)]
        assert [answer.status for answer in alone] == [201] * 8, "there is no other key: all of it is there for it"
        other, third = service.key(*scope), service.key()
        told = "while there are other keys it may have 3/4 of what they leave; end a session or a run, or use a key made"
        end(alone.pop(), mine)
        time.sleep(1.1)  # the keys are counted once a second
        refused = begin(mine)
        assert refused.status == 429 and refused.headers["Retry-After"] == "1"
        assert refused.json["error"]["message"].startswith(f"key {mine['id']} holds 7 of 8 slots (7 sessions, 0 runs): {told}")
        end(alone.pop(), mine)
        refused = service.call("POST", f"/v1/sessions/{alone[0].json['id']}/branch", {}, key=mine)
        assert refused.status == 429 and "holds 6 of 8 slots" in refused.json["error"]["message"]
        refused = service.run("1", key=mine)
        assert refused.status == 429 and "(6 sessions, 0 runs)" in refused.json["error"]["message"], \
            "no run of it will end, so it does not wait for one"
        others = begin(other)
        assert others.status == 201 and begin(other).status == 429
        assert service.run("print(1)", key=third).status == 200, "the last slot is for who has none"
        assert service.run("print(1)").status == 200, "the owner has no share"
        end(alone.pop(), mine)
        assert begin(mine).status == 429 and holds()["sessions"] == 5, "the other one holds something, too: 3/4 of 7"
        end(alone.pop(), mine)
        alone.append(begin(mine))
        assert alone[-1].status == 201
        for made in alone:
            end(made, mine)
        waits = {"code": "import time; time.sleep(100)", "policy": "minimal"}
        runs = [service.call("POST", "/v1/runs", waits, key=mine, headers={"Prefer": "respond-async"}) for _ in range(9)]
        assert [answer.status for answer in runs] == [202] * 9
        while holds()["active"] < 5:
            time.sleep(0.02)
        assert (holds()["active"], holds()["queued"]) == (5, 4)
        second = begin(other)
        assert second.status == 201
        waiting = service.call("POST", "/v1/runs", waits, key=other, headers={"Prefer": "respond-async"})
        assert waiting.status == 202, "runs of others end: it waits for that"
        service.call("DELETE", f"/v1/runs/{waiting.json['id']}", key=other)
        end(second, other)
        assert service.run("print(1)", key=third).status == 200
        end(others, other)
        while holds()["active"] < 6:
            time.sleep(0.02)
        assert service.call("DELETE", f"/v1/runs/{runs[0].json['id']}", key=mine).json["status"] == "cancelled"
        while holds()["queued"] > 2:
            time.sleep(0.02)
        for run in runs[1:]:
            service.call("DELETE", f"/v1/runs/{run.json['id']}", key=mine)
        wide = service.key(*scope, "--concurrency", "8")
        assert [begin(wide).status for _ in range(8)] == [201] * 8, "somebody has said so"


def test_a_key_that_queues_too_much_is_refused(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        key = service.key("--concurrency", "1")
        answers = []
        flood = [threading.Thread(target=lambda: answers.append(service.run("import time; time.sleep(0.02)", key=key)))
                 for _ in range(90)]
        for thread in flood:
            thread.start()
        for thread in flood:
            thread.join()
        refused = [answer for answer in answers if answer.status == 429]
        assert refused and refused[0].headers["Retry-After"] == "1"
        assert len(refused) + sum(answer.status == 200 for answer in answers) == 90


@pytest.mark.parametrize("arguments, says", [
    (["create", "--scope", "rum"], "no scope is named 'rum'; there are: run,sessions,approve,audit,admin"),
    (["create", "--expires", "never"], "--expires takes a time such as 90s, 15m, 12h or 30d, or a moment to come such as 2036-11-22T03:00:00Z, not 'never'"),
    (["create", "--expires", "2020-01-01T00:00:00Z"], "--expires takes a time such as 90s, 15m, 12h or 30d, or a moment to come such as 2036-11-22T03:00:00Z, not '2020-01-01T00:00:00Z'"),
    (["create", "--concurrency", "0"], "--concurrency takes 1 to 1000000000, not '0'"),
    (["create", "--name", "a\nb"], "--name has a control character, or is not UTF-8"),
    (["create", "--tenant", "\udcff"], "--tenant has a control character, or is not UTF-8"),
    (["create", ""], "--name is empty; leave it out"),
    (["create", "a", "--name", "b"], "the key has two names, 'a' and 'b'; give one"),
    (["create", "a", "b"], "key create takes no 'b'; see glovebox key --help"),
    (["list", "a"], "key list takes no 'a'; see glovebox key --help"),
    (["revoke", "0123456789abcdef"], "no key has the id '0123456789abcdef'; see glovebox key list"),
    (["revoke"], "which key? try glovebox key revoke ID; glovebox key list shows them"),
    (["crate"], "there is no 'key crate'; did you mean glovebox key create"),
])
def test_mistakes_are_named(glovebox, arguments, says):
    state_of_its_own(glovebox)
    assert glovebox("key", "create").returncode == 0
    done = glovebox("key", *arguments)
    assert done.returncode == 125 and done.stderr.decode() == f"glovebox: {says}\n"


def test_keys_belong_to_the_daemons_user(glovebox):
    state = state_of_its_own(glovebox)
    assert glovebox("key", "create").returncode == 0
    folder = (state / "daemon").stat()
    assert folder.st_mode & 0o777 == 0o700
    for name in ("keys.db", "keys.secret"):
        file = (state / "daemon" / name).stat()
        assert file.st_mode & 0o777 == 0o600 and file.st_uid == folder.st_uid


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("words", [["create"], ["list"], ["revoke", "0123456789abcdef"]], ids=lambda words: words[0])
def test_keys_of_another_users_state_are_not_taken_for_ones_own(glovebox, words):
    state = state_of_its_own(glovebox)
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, 4321, 4321)
        done = subprocess.run(["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups", glovebox.program, "key", *words, "--state", state],
                              env=glovebox.environment({"HOME": home}), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 125 and done.stdout == "" and done.stderr == f"glovebox: '{state}' is another user's; run this as root\n", done


def test_the_command_line_and_the_library_come_by_the_port_with_a_key(service):
    key = service.key("--name", "cli")["key"]
    place = f"127.0.0.1:{service.port}"

    def run(place, key, *arguments):
        return service.glovebox("run", "--daemon", place, "--policy", "minimal", *arguments,
                                env={"GLOVEBOX_API_KEY": key} if key else {})

    done = run(place, key, "-c", "print(6 * 7)")
    assert (done.returncode, done.stdout) == (0, b"42\n"), done.stderr
    assert run(place.replace("127.0.0.1", "localhost"), key, "-c", "print(1)").stdout == b"1\n"
    by_socket = service.glovebox("run", "-c", "print(2)", "--policy", "minimal",
                                 env={"GLOVEBOX_SOCKET": place, "GLOVEBOX_API_KEY": key})
    assert by_socket.stdout == b"2\n", by_socket.stderr
    refused = run(place, None, "-c", "1")
    assert refused.returncode == 126 and b"a key is needed" in refused.stderr and b"set GLOVEBOX_API_KEY" in refused.stderr
    wrong = run(place, key[:-4] + "AAAA", "-c", "1")
    assert wrong.returncode == 126 and b"not known here" in wrong.stderr
    smuggled = run(place, key + "\r\nX-Api-Key: x", "-c", "1")
    assert smuggled.returncode == 125 and b"API key is none" in smuggled.stderr
    far = run("192.0.2.1:7070", key, "-c", "1")
    assert far.returncode == 125 and b"ssh -L 7070:127.0.0.1:7070" in far.stderr
    audit = service.key("--scope", "audit")["key"]
    assert run(service.socket, audit, "-c", "1").returncode == 126, "a key that is shown counts by the socket too"
    artifacts = run(place, key, "--out", "out", "-c", "open('a', 'w').write('b')")
    assert artifacts.returncode == 0 and (service.glovebox.folder / "out" / "a").read_text() == "b"
    busy = service.key("--runs-per-minute", "1")["key"]
    assert run(place, busy, "-c", "1").returncode == 0
    spent = run(place, busy, "--json", "-c", "1")
    assert spent.returncode == 125 and json.loads(spent.stdout)["error"]["code"] == "quota"


SPIN = "import time\nend = time.process_time() + {0}\nwhile time.process_time() < end: pass"


@pytest.mark.parametrize("how", ["a program", "what outlives a cell", "a terminal", "cells"])
def test_the_day_of_a_key_is_charged_for_all_that_runs(service, how):
    key = service.key("--cpu-seconds-per-day", "2", "--scope", "run,sessions")

    def ask(method, path, body=None):
        return service.call(method, path, body, key=key)

    session = ask("POST", "/v1/sessions", {"policy": "data"}).json
    place = f"/v1/sessions/{session['id']}"

    def cell(code):
        return ask("POST", f"{place}/contexts/python/run", {"code": code})

    if how in ("a program", "a terminal"):
        wishes = {"command": ["python3", "-c", SPIN.format(60)]} | ({"terminal": {"rows": 9, "columns": 9}} if "term" in how else {})
        assert ask("POST", f"{place}/processes", wishes).status == 201
    elif how == "cells":
        while cell(SPIN.format(0.7)).status == 200:
            pass
    else:
        assert cell(f"import subprocess\nsubprocess.Popen(['python3', '-c', {SPIN.format(60)!r}])\nNone").status == 200
    for _ in range(1200):
        told = ask("GET", place).json
        if told["state"] == "paused":
            break
        time.sleep(0.05)
    assert (told["state"], told["paused_for"]) == ("paused", "cpu_seconds_per_day")
    assert 1900 < told["usage"]["cpu_ms"] < 6000, "what is over is not stopped in a second or two"
    for answer in (ask("POST", "/v1/runs", {"code": "1", "policy": "minimal"}), ask("POST", "/v1/sessions", {"policy": "data"}),
                   ask("POST", f"{place}/resume")):
        assert (answer.status, answer.json["error"]["code"]) == (429, "quota"), answer.json
        assert "2 s of processor time of this day" in answer.json["error"]["message"] and "Retry-After" in answer.headers
    refused = cell("1")
    assert refused.status == 409 and "cpu_seconds_per_day" in refused.json["error"]["message"]
    assert ask("DELETE", place).status == 200
    assert service.run("print(1)", key=service.key()).json["stdout"] == "1\n", "another key has its own day"
