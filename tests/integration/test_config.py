"""Settings: which source sets a value, what a running service applies, and what it refuses."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD, TOP
from serving import Serving, state_of_its_own

pytestmark = pytest.mark.usefixtures("python_template")

RUN = "/v1/runs"


def lines_of(log):
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


def test_the_later_setting_wins_and_its_origin_is_shown(glovebox):
    file = glovebox.folder / "g.yaml"
    file.write_text("# ours\nqueue: 100\nslots: 9\nlog_level: debug\n")
    done = glovebox("config", "show", "--origin", "--config", file,
                    env={"GLOVEBOX_SLOTS": "10"})
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.decode().splitlines()}
    assert rows["queue"] == ["100", f"{file}:2:8"]
    assert rows["slots"] == ["10", "GLOVEBOX_SLOTS"]
    assert rows["key_queue"] == ["24", "default"]
    shown = json.loads(glovebox("config", "show", "--json", "--config", file).stdout)
    assert shown["log_level"] == {"value": "debug", "origin": f"{file}:4:12"}


def test_keys_are_listed_for_programs(glovebox):
    keys = json.loads(glovebox("config", "keys", "--json").stdout)
    assert [key["key"] for key in keys] == list(json.loads(glovebox("config", "show", "--json").stdout))
    assert {"key": "queue", "default": "32", "reloads": True, "text": "runs that may wait for a sandbox, of all keys together"} in keys


def test_a_file_of_comments_changes_nothing(glovebox):
    """As the one that comes with glovebox, before anything in it is touched."""
    for text in ((TOP / "data/glovebox.yaml").read_text(), "", "  # nothing\n\n#"):
        (glovebox.folder / "g.yaml").write_text(text)
        assert glovebox("config", "validate", "g.yaml").returncode == 0
        done = glovebox("config", "show", "--json", "--config", "g.yaml")
        assert done.returncode == 0 and json.loads(done.stdout)["queue"] == {"value": "32", "origin": "default"}


@pytest.mark.parametrize("text, says", [
    ("slotz: 1\n", ":1:1: nothing is called 'slotz' here; glovebox config show lists what is"),
    ("queue: 1\n\nslots: none\n", ":3:8: slots must be 1 to 4096, not 'none'"),
    ("queue: {a: 1}\n", ":1:8: 'queue' takes one value"),
    ("no_keys: maybe\n", ":1:10: no_keys must be one of false, true, not 'maybe'"),
])
def test_a_wrong_file_is_refused_with_its_place(glovebox, text, says):
    (glovebox.folder / "g.yaml").write_text(text)
    for arguments in (["config", "validate", "g.yaml"], ["config", "show", "--config", "g.yaml"],
                      ["serve", "--config", "g.yaml", "--socket", "s"]):
        done = glovebox(*arguments)
        assert done.returncode == 125 and done.stderr.decode() == f"glovebox: g.yaml{says}\n"
    assert not (glovebox.folder / "s").exists()


def test_every_wrong_line_of_a_file_is_named(glovebox):
    (glovebox.folder / "g.yaml").write_text("slots: 4\nslotz: 3\nqueue: x\nno_keys: maybe\n")
    done = glovebox("config", "validate", "g.yaml")
    assert glovebox("config", "validate", "g.yaml", "--json").stdout == b'{"valid":false}\n'
    assert done.returncode == 125 and [line.split(": ")[1] for line in done.stderr.decode().splitlines()] == [
        "g.yaml:2:1", "g.yaml:3:8", "g.yaml:4:10"], done.stderr


@pytest.mark.parametrize("text, says", [
    ("listen: 0.0.0.0:7070\n", "g.yaml:1:9: 0.0.0.0:7070 is open to other machines"),
    ("listen: 7070\n", "g.yaml:1:9: listen takes ADDRESS:PORT such as 127.0.0.1:7070, not '7070'"),
    ("approval_url: https://a.example/\n", "approval_url is an https:// URL with {id}"),
    ("oauth_issuer: https://a.example\n", "oauth_issuer and oauth_audience are URLs")])
def test_a_file_that_serve_would_refuse_is_not_valid(glovebox, text, says):
    (glovebox.folder / "g.yaml").write_text(text)
    for arguments in (["config", "validate", "g.yaml"], ["serve", "--config", "g.yaml", "--socket", "s"]):
        done = glovebox(*arguments)
        assert done.returncode in (125, 126) and done.stderr.decode().startswith(f"glovebox: {says}"), done
        assert len(done.stderr.splitlines()) == 1, "once, and nothing is started"


def test_missing_files_are_named(glovebox):
    (glovebox.folder / "there.pem").write_text("")
    (glovebox.folder / "g.yaml").write_text(
        "oauth_issuer: https://a.example\noauth_audience: https://b.example/mcp\noauth_keys: /nowhere/keys.json\n"
        f"secrets: none.yaml\nca_file: {glovebox.folder}/there.pem\n")
    done = glovebox("config", "validate", "g.yaml")
    assert (done.returncode, done.stdout) == (0, b"g.yaml is valid\n")
    assert done.stderr.decode().splitlines() == [
        f"glovebox: g.yaml:{where} is to be there when serve starts: '{path}': No such file or directory"
        for where, path in (("3:13: oauth_keys", "/nowhere/keys.json"), ("4:10: secrets", "none.yaml"))]


def test_none_is_no_address_wherever_it_is_said(glovebox):
    (glovebox.folder / "g.yaml").write_text("listen: 127.0.0.1:7070\n")
    done = glovebox("config", "show", "listen", "--origin", "--config", "g.yaml", env={"GLOVEBOX_LISTEN": "none"})
    assert done.stdout.split() == [b"listen", b'""', b"GLOVEBOX_LISTEN"]
    done = glovebox("serve", "--config", "g.yaml", "--listen", "none", "--socket", "/")
    assert b"'/' exists and is no socket" in done.stderr, "the address was taken"


def test_one_setting_is_shown_by_its_name(glovebox):
    assert glovebox("config", "show", "queue").stdout == b"queue: 32\n"
    assert list(json.loads(glovebox("config", "show", "queue", "--json").stdout)) == ["queue"]
    assert [row["key"] for row in json.loads(glovebox("config", "keys", "queue", "--json").stdout)] == ["queue"]
    assert glovebox("config", "keys", "queue").stdout.startswith(b"queue ")
    done = glovebox("config", "keys", "quueue")
    assert done.returncode == 125 and b"no setting is named 'quueue'; glovebox config keys lists all" in done.stderr


def test_variables_and_flags_are_checked_too(glovebox):
    done = glovebox("config", "show", env={"GLOVEBOX_QUEUE": "-1"})
    assert done.stderr == b"glovebox: GLOVEBOX_QUEUE: queue must be 1 to 100000, not '-1'\n"
    done = glovebox("serve", "--queue", "x", "--socket", "s")
    assert done.stderr == b"glovebox: --queue: queue must be 1 to 100000, not 'x'\n"


@pytest.fixture(name="request_policies")
def request_policies_():
    """A folder that the daemon's user can enter, whatever happens to pytest's own meanwhile."""
    with tempfile.TemporaryDirectory(prefix="glovebox-policies-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.mark.parametrize("words, says", [
    (["--ca-file", "/nowhere.pem"], "open '/nowhere.pem', named by --ca-file: No such file"),
    (["--secrets", "/nowhere"], "open '/nowhere', named by --secrets: No such file"),
    (["--secrets", "/etc/passwd"], "glovebox-egress: the secrets file '/etc/passwd' has mode 0644, others may use it; chmod 600 it"),
    (["--resolver", "dns.example"], "glovebox-egress: resolver takes ADDRESS:PORT such as 127.0.0.1:53, not 'dns.example'"),
    (["--public-hosts", "https://a.example"], "public_hosts: 'https://a.example' must be as sandbox.example.com"),
    (["--allowed-origins", "a.example"], "allowed_origins: 'a.example' must be as https://sandbox.example.com")])
def test_what_a_service_cannot_use_ends_it_with_the_reason(glovebox, words, says):
    done = glovebox("serve", "--socket", glovebox.folder / "s", *words, timeout=60)
    assert done.returncode == 125 and says in done.stderr.decode(), done
    assert b"listening" not in done.stderr, "it is said once nothing that was given can end the service"
    if "glovebox-egress" not in says:
        assert b"spawner.ready" not in done.stderr, "nothing runs before files and words were looked at"


def test_a_port_that_is_taken_is_named(glovebox):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = glovebox("serve", "--socket", glovebox.folder / "s", "--listen", place)
    assert done.returncode == 125 and done.stderr.decode().endswith(
        f"glovebox: end what has this port, or take another: listen on {place}: Address already in use\n"), done


def test_a_reload_changes_what_can_change_and_names_the_rest(glovebox, request_policies):
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    policies = request_policies
    (policies / "mine.yaml").write_text("name: mine\nextends: minimal\ndescription: one\n")
    file.write_text("key_runs_per_minute: 100\n")
    env = {"GLOVEBOX_POLICIES": f"{policies}:{BUILD}/policies"}
    with Serving(glovebox, "--config", file, env=env) as service:
        key = service.key()
        assert service.run("print(1)", key=key, policy="mine").headers["RateLimit-Limit"] == "100"

        file.write_text("key_runs_per_minute: 7\nqueue: 99\npool_max: 3\n")
        (policies / "mine.yaml").write_text("name: mine\nextends: minimal\ndescription: two\nlimits: {wall: 3s}\n")
        (policies / "new.yaml").write_text("name: new\nextends: minimal\ndescription: new\n")
        said = service.reload()
        assert "key_runs_per_minute 100 -> 7" in said and "queue 32 -> 99" in said
        assert "mine changed" in said and "new added" in said
        answer = service.run("print(1)", key=key, policy="mine")
        assert answer.headers["RateLimit-Limit"] == "7" and answer.json["limits"]["wall_ms"] == 3000
        assert service.run("print(1)", policy="new").status == 200
        assert service.call("GET", "/v1/status").json["queue"] == 99

        file.write_text("key_runs_per_minute: 8\nqueue: none\n")
        said = service.reload()
        assert "config.refused" in said and "g.yaml:2:8: queue must be 1 to 100000" in said
        warned = service.call("GET", "/v1/status").json["warnings"]
        assert len(warned) == 1 and warned[0].startswith("the reload at 20") and "g.yaml:2:8: queue" in warned[0]
        file.write_text("key_runs_per_minute: 8\n")
        (policies / "new.yaml").write_text("name: new\nextend: minimal\n")
        said = service.reload()
        assert "config.refused" in said and "new.yaml:2:1" in said
        assert service.run("print(1)", key=key).headers["RateLimit-Limit"] == "7", "nothing was changed"
        assert service.run("print(1)", policy="new").status == 200
        told = glovebox("status", "--daemon", service.socket)
        assert told.returncode == 0 and told.stdout.count(b"  warning   ") == 1, told
        assert b"was refused and changed nothing: " in told.stdout and b"new.yaml:2:1" in told.stdout

        (policies / "new.yaml").unlink()
        file.write_text("key_runs_per_minute: 8\nslots: 3\n")
        said = service.reload()
        assert "new removed" in said
        assert service.call("GET", "/v1/status").json["warnings"] == []
        assert service.run("print(1)", key=key).headers["RateLimit-Limit"] == "8"
        assert service.run("print(1)", policy="new").status == 404


def test_status_names_policies_that_were_left_out_at_the_start(glovebox, request_policies):
    state_of_its_own(glovebox)
    (request_policies / "broken.yaml").write_text("name: broken\nextend: minimal\n")
    env = {"GLOVEBOX_POLICIES": f"{request_policies}:{TOP / 'policies'}"}
    with Serving(glovebox, tcp=False, env=env) as service:
        warned = service.call("GET", "/v1/status").json["warnings"]
        assert len(warned) == 1 and warned[0].startswith("policy 'broken' cannot be used: "), warned
        assert "broken.yaml:2:1" in warned[0]
        assert service.run("print(1)").status == 200


def test_one_default_policy_for_all_doors(glovebox):
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    file.write_text("")
    with Serving(glovebox, "--config", file) as service:
        narrow = service.key("--policy", "minimal,extended", "--scope", "run,sessions")

        def taken(key=None):
            """The default policy as used by the list of policies, a run, a session, the command line."""
            ran = service.call("POST", RUN, {"code": "1"}, key=key)
            began = service.call("POST", "/v1/sessions", {}, key=key)
            service.call("DELETE", f"/v1/sessions/{began.json['id']}", key=key)
            call = () if key else (("run", "--json", "-c", "1"), ("check", "--json", "-c", "1"))
            told = [json.loads(glovebox(*words, "--daemon", service.socket).stdout) for words in call]
            return {service.call("GET", "/v1/policies", key=key).json["default"], ran.json["policy"]["name"],
                    began.json["policy"]["name"], *(one["policy"]["name"] for one in told if "policy" in one)}

        assert taken() == {"data"}, "its template is built"
        assert taken(narrow) == {"minimal"}, "the first that the key may use"
        file.write_text("default_policy: extended\n")
        assert "default_policy unset -> extended" in service.reload()
        assert taken() == taken(narrow) == {"extended"}
        file.write_text("default_policy: nobodys\n")
        assert "requests that name no policy are refused" in service.reload()
        refused = service.call("POST", RUN, {"code": "1"})
        assert refused.status == 404 and "nobodys" in refused.json["error"]["message"]
    for verb in (("prompt",), ("policy", "explain", "--json"), ("manifest", "--format", "mcp")):
        here = [glovebox(*verb, env=env).stdout for env in ({"GLOVEBOX_DEFAULT_POLICY": "minimal"}, {})]
        named = [glovebox(*verb, "--policy", policy).stdout for policy in ("minimal", "data")]
        assert here == named and named[0] != named[1], verb


def test_a_setting_that_needs_a_restart_is_named(glovebox):
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    file.write_text("queue: 50\n")
    with Serving(glovebox, "--config", file, tcp=False) as service:
        file.write_text("queue: 51\nlisten: 127.0.0.1:9\n")
        said = service.reload()
        assert "config.needs_restart: listen unset -> 127.0.0.1:9" in said and "queue 50 -> 51" in said
        daemon = service.children()["gloveboxd"]
        os.kill(daemon, signal.SIGKILL)  # the next one begins with what was taken last
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                if service.call("GET", "/v1/status").json["queue"] == 51:
                    return
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        raise AssertionError(service.log.read_text())


def test_logs_as_json(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, "--log-format", "json", "--log-level", "debug") as service:
        run = service.call("POST", RUN, {"code": "print('\"\\n')", "policy": "minimal"},
                           headers={"X-Request-Id": "mine-1"}).json
        service.reload()
    lines = lines_of(service.log)
    assert all({"time", "level", "event"} <= line.keys() for line in lines)
    ended = [line for line in lines if line["event"] == "run.ended"]
    assert ended and ended[0]["run"] == run["id"] and ended[0]["request"] == "mine-1"
    assert any(line["event"] == "config.reloaded" for line in lines)


def test_runs_are_lines_of_level_info(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox, "--log-format", "json", "--log-level", "info") as service:
        for code, limits in (("print(1)", {}), ("while True: pass", {"wall_ms": 200}), ("x", {})):
            assert service.call("POST", RUN, {"code": code, "policy": "minimal", "limits": limits}).status == 200
        service.call("GET", "/nowhere")
    lines = lines_of(service.log)
    runs = [line for line in lines if line["event"] == "run.ended"]
    assert [(line["level"], line["policy"], line["status"], line["limit"]) for line in runs] == [
        ("info", "minimal", "ok", ""), ("info", "minimal", "limit", "wall"), ("info", "minimal", "error", "")]
    assert runs[1]["took_us"] >= 200000 and all(line["queued_us"] >= 0 for line in runs)
    assert not [line for line in lines if line["level"] == "debug"]


def test_lines_of_level_info_are_sampled(glovebox):
    """One run in three has a line, which says so; what is wrong is always told."""
    state_of_its_own(glovebox)
    file = glovebox.folder / "g.yaml"
    file.write_text("log_level: info\nlog_format: json\nlog_sample: 3\n")
    with Serving(glovebox, "--config", file, tcp=False) as service:
        for _ in range(7):
            assert service.run("1").status == 200
        file.write_text("log_level: info\nlog_format: json\nqueue: none\n")
        service.reload()
        file.write_text("log_level: info\nlog_format: json\n")
        service.reload()
        assert service.run("1").status == 200
    runs = [line for line in lines_of(service.log) if line["event"] == "run.ended"]
    assert [line.get("sample") for line in runs] == [3, 3, 3, None], runs
    assert any(line["event"] == "config.reloaded" for line in lines_of(service.log))


def word_of(told):
    """The next message to the service manager other than WATCHDOG=1."""
    while (word := told.recv(100)) == b"WATCHDOG=1":
        pass
    return word


def test_sockets_and_notifications_of_systemd(glovebox):
    """LISTEN_FDS and NOTIFY_SOCKET, as systemd gives them."""
    state_of_its_own(glovebox)
    path = str(glovebox.folder / "given")
    given, tcp = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    given.bind(path)
    given.listen(8)
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(str(glovebox.folder / "notify"))
    told.settimeout(30)
    log = open(glovebox.folder / "log", "wb")

    def arrange():
        high = [os.dup2(each, 100 + i) for i, each in enumerate((given.fileno(), tcp.fileno()))]
        for i, each in enumerate(high):
            os.dup2(each, 3 + i)

    shell = 'LISTEN_PID=$$ exec "$0" serve --slots 4'
    process = subprocess.Popen(["sh", "-c", shell, glovebox.program], preexec_fn=arrange, close_fds=False, stderr=log,
                               stdout=log, env=glovebox.environment({"LISTEN_FDS": "2",
                                                                     "NOTIFY_SOCKET": str(glovebox.folder / "notify")}))
    try:
        assert word_of(told).startswith(b"READY=1")
        assert glovebox("run", "--daemon", path, "-c", "print(1)").stdout == b"1\n"
        peer = socket.create_connection(("127.0.0.1", port))
        peer.sendall(b"GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert peer.recv(12) == b"HTTP/1.1 401"
        process.send_signal(signal.SIGHUP)
        assert word_of(told) == b"RELOADING=1" and word_of(told) == b"READY=1"
        assert told.recv(100) == b"WATCHDOG=1"  # gloveboxd has said that it is alive
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0
    assert word_of(told) == b"STOPPING=1"
    assert os.path.exists(path), "it belongs to the service manager"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a service with the unit's capabilities")
def test_the_rights_of_the_unit_are_enough(glovebox):
    """Capabilities, NoNewPrivileges and UMask of glovebox.service, as systemd would set them."""
    state_of_its_own(glovebox)
    unit = dict(line.split("=", 1) for line in (TOP / "data/systemd/glovebox.service.in").read_text().splitlines()
                if "=" in line and not line.startswith("#"))
    assert unit["NoNewPrivileges"] == "yes"
    kept = ",".join(f"+{name.removeprefix('CAP_').lower()}" for name in unit["CapabilityBoundingSet"].split())
    program = glovebox.folder / "as_the_unit"
    program.write_text(f"#!/bin/sh\numask {unit['UMask']}\n"
                       f"exec setpriv --no-new-privs --bounding-set=-all,{kept} {glovebox.program} \"$@\"\n")
    program.chmod(0o755)
    glovebox.program = str(program)
    with Serving(glovebox) as service:
        assert service.run("print(1)", key=service.key()).json["stdout"] == "1\n"
        place = f"/v1/sessions/{service.call('POST', '/v1/sessions', {'policy': 'minimal'}).json['id']}"
        cell = service.call("POST", f"{place}/contexts/python/run", {"code": "open('f', 'w').write('x')"})
        assert cell.json["status"] == "ok", cell.json
        assert service.call("POST", f"{place}/branch", {}).status == 201


def test_top_shows_which_limits_each_key_reaches(glovebox):
    state_of_its_own(glovebox)
    with Serving(glovebox) as service:
        key = service.key("--name", "ci", "--tenant", "a")
        for number in range(8):
            code = "x = bytearray(400 << 20)" if number < 4 else "print(1)"
            assert service.run(code, key=key).status == 200
        status = json.loads(service.glovebox("top", "--json", "--daemon", service.socket).stdout)
        row = next(row for row in status["keys"] if row["id"] == key["id"])
        assert row["runs"] == 8 and row["limit_hits"]["memory"] >= 3 and row["tenant"] == "a"
        assert row["ends"]["ok"] == 4 and status["slots"] == 8 and status["pools"]
        page = service.glovebox("top", "--daemon", service.socket).stdout.decode()
        assert f"memory of {key['id']}: {row['limit_hits']['memory']} of 8 runs" in page
        assert key["id"] in page and "ci" in page and "\x1b" not in page, "no terminal, no colours"
        assert {pool["set_name"] for pool in status["pools"]} <= {"light", "data", None} and " IMPORTS " in page
        session = service.call("POST", "/v1/sessions", {}).json
        service.call("POST", f"/v1/sessions/{session['id']}/contexts/python/run", {"code": "1"})
        page = service.glovebox("top", "--daemon", service.socket).stdout.decode().splitlines()
        row = next(line.split() for line in page if line.startswith(session["id"]))
        assert row[1:5] == ["running", session["policy"]["name"], session["template"]["name"], "1"] and row[6] == "MiB"
        pools = [line.split()[:5] for line in page[:page.index(next(line for line in page if line.startswith("SESSION")))]
                 if line.startswith(session["template"]["name"] + " ")]
        assert pools and len(pools) == len({tuple(pool) for pool in pools}), "no two rows are alike"
    gone = glovebox("top", "--daemon", service.socket)
    assert gone.returncode == 125 and b"no daemon answers at" in gone.stderr
