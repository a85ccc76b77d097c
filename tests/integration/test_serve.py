"""`glovebox serve`: sockets that stay open, restarts of spawner and daemon, an end that waits for runs."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from serving import free_port

pytestmark = pytest.mark.usefixtures("python_template")


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


class Service:
    def __init__(self, glovebox, *arguments, env=None):
        self.glovebox = glovebox
        self.log = glovebox.folder / "serve.log"
        self.socket = glovebox.folder / "g.sock"
        with open(self.log, "ab") as log:
            self.process = glovebox.start("serve", *(arguments or ["--socket", self.socket]), env=env,
                                          stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def run(self, *arguments, **how):
        return self.glovebox("run", "--daemon", self.socket, *arguments, **how)

    def ready(self):
        wait_until(lambda: "listening on" in self.log.read_text() or self.process.poll() is not None)
        assert self.process.poll() is None, self.log.read_text()
        done = self.run("-c", "print(1)")
        if done.stdout != b"1\n":
            self.end()
        assert done.stdout == b"1\n", done.stderr
        return self

    def children(self):
        pid = self.process.pid
        found = {}
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            try:
                found[os.path.basename(os.readlink(f"/proc/{child}/exe"))] = int(child)
            except OSError:
                pass  # it has just ended
        return found

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
        return self.process.returncode


@pytest.fixture
def service(glovebox):
    service = Service(glovebox).ready()
    yield service
    service.end()


def test_many_runs_on_one_daemon(service):
    for number in range(5):
        assert service.run("-c", f"print({number})").stdout == b"%d\n" % number
    assert service.end() == 0
    assert not service.socket.exists(), "the socket goes with the service"


@pytest.mark.parametrize("name", ["gloveboxd", "glovebox-spawner"])
def test_killed_parts_are_restarted(service, name):
    before = service.children()
    os.kill(before[name], signal.SIGKILL)
    begin = time.monotonic()
    # A client that connects meanwhile waits at the socket instead of being refused.
    done = service.run("-c", "print('again')")
    if done.returncode != 0:  # it may have reached the one that was about to die
        done = service.run("-c", "print('again')")
    assert done.stdout == b"again\n", done.stderr
    assert time.monotonic() - begin < 20, "how soon it is back is measured by make kills"
    wait_until(lambda: service.children().keys() == before.keys())
    assert service.children()[name] != before[name]


def zygotes_below(pid):
    """The ids of the processes below this one that import modules, or have."""
    below = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    try:
        children = [int(child) for child in below.read_text().split()]
        named = b"zygote.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return set()  # it has just ended
    return set().union({pid} if named else (), *map(zygotes_below, children))


def test_a_first_run_waits_while_the_disk_reads_its_modules(service):
    """Stopped by a signal for longer than every other build may take."""
    spawner = service.children()["glovebox-spawner"]
    before = zygotes_below(spawner)
    run = service.glovebox.start("run", "--daemon", service.socket, "--policy", "data", "-c", "import pandas; print(1)",
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: zygotes_below(spawner) - before)
    zygote, = zygotes_below(spawner) - before
    os.kill(zygote, signal.SIGSTOP)
    try:
        time.sleep(17)
        assert run.poll() is None, run.communicate()
    finally:
        os.kill(zygote, signal.SIGCONT)
    assert run.communicate(timeout=60)[0] == b"1\n" and run.returncode == 0


def test_a_run_whose_daemon_ends_is_reported(service):
    process = service.glovebox.start("run", "--daemon", service.socket, "-c",
                                     "print('up', flush=True)\nwhile True: pass",
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    os.kill(service.children()["gloveboxd"], signal.SIGKILL)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 125
    # The next daemon, which the service has started meanwhile, knows of it from the log.
    assert stderr.startswith(b"glovebox: the sandbox was lost: gloveboxd ended while this run was open")
    assert b"it was not run again" in stderr and stderr.count(b"\n") == 1


def test_the_end_waits_for_runs_or_ends_them(service):
    done = []
    thread = threading.Thread(target=lambda: done.append(
        service.run("-c", "import time; print('up', flush=True); time.sleep(2); print('whole')")))
    thread.start()
    time.sleep(1)
    begin = time.monotonic()
    service.process.terminate()
    service.process.wait(timeout=30)
    assert time.monotonic() - begin < 20
    thread.join()
    # Either it came to its end, or its caller was told that it did not.
    assert done[0].stdout.endswith(b"whole\n") or done[0].returncode in (125, 130), done[0]


def test_open_watches_do_not_delay_the_shutdown(service):
    for path in ("network/connections", "approvals?state=pending&wait=60"):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(str(service.socket))
        peer.settimeout(30)
        peer.sendall(f"GET /v1/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        service.peers = [*getattr(service, "peers", []), peer]
    time.sleep(1)
    begin = time.monotonic()
    service.process.terminate()
    answers = [peer.recv(65536) for peer in service.peers]
    service.process.wait(timeout=60)
    assert time.monotonic() - begin < 30, "one of them waits for a minute, the other without end"
    assert b'"approvals"' in answers[1], answers  # what there is, as when its patience has passed


def test_while_it_leaves_callers_are_refused_at_once(glovebox):
    port = free_port()
    path = glovebox.folder / "g.sock"
    service = Service(glovebox, "--socket", path, "--listen", f"127.0.0.1:{port}").ready()
    run = glovebox.start("run", "--daemon", path, "-c", "import time; print('up', flush=True); time.sleep(8); print('whole')",
                         stdout=subprocess.PIPE)
    assert run.stdout.readline() == b"up\n"
    service.process.terminate()
    wait_until(lambda: "leaving" in service.log.read_text() and not path.exists(), 5)
    late = service.run("-c", "print(1)", timeout=30)
    assert late.returncode == 125 and str(path).encode() in late.stderr, late
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)
    assert run.poll() is None, "nobody waited for the run that is under way"
    assert run.communicate(timeout=30)[0] == b"whole\n"
    assert service.process.wait(timeout=30) == 0


def test_a_second_service_on_the_same_socket_is_refused(service):
    done = service.glovebox("serve", "--socket", service.socket)
    assert done.returncode == 125
    assert done.stderr.decode() == (f"glovebox: a daemon serves '{service.socket}' already; end it or choose "
                                    "another --socket\n")
    assert service.run("-c", "print(1)").stdout == b"1\n", "the first one is not disturbed"


def test_a_socket_that_a_dead_service_left_is_taken_over(glovebox):
    path = glovebox.folder / "g.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    Service(glovebox).ready().end()


def test_a_file_in_the_way_is_not_removed(glovebox):
    (glovebox.folder / "g.sock").write_text("mine")
    done = glovebox("serve", "--socket", "g.sock")
    assert done.returncode == 125 and b"no socket" in done.stderr
    assert (glovebox.folder / "g.sock").read_text() == "mine"


def test_only_the_owner_may_open_the_socket(service):
    assert service.socket.stat().st_mode & 0o777 == 0o600
    if os.geteuid() != 0:
        return
    for folder in service.socket.parents:
        if not folder.stat().st_mode & 0o1:
            folder.chmod(folder.stat().st_mode | 0o11)
    done = subprocess.run(["setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups",
                           service.glovebox.program, "run", "--daemon", service.socket, "-c", "1"],
                          capture_output=True, env=service.glovebox.environment(), check=False)
    assert done.returncode == 125 and b"Permission denied" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_port_that_a_user_may_not_have(glovebox, tmp_path):
    if int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text(encoding="utf-8")) < 2:
        pytest.skip("users may have each port here")
    if not all(folder.stat().st_mode & 0o1 for folder in pathlib.Path(glovebox.program).parents):
        pytest.skip("another user cannot reach the program")
    for folder in tmp_path.parents:
        if not folder.stat().st_mode & 0o1:
            folder.chmod(folder.stat().st_mode | 0o11)
    tmp_path.chmod(0o777)
    done = subprocess.run(["setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups", glovebox.program, "serve",
                           "--socket", tmp_path / "s", "--listen", "127.0.0.1:1"],
                          capture_output=True, env=glovebox.environment(), check=False, timeout=60, text=True)
    assert done.returncode == 125, done
    assert done.stderr.endswith(
        "glovebox: take a higher port, such as 7070: listen on 127.0.0.1:1: Permission denied\n"), done


@pytest.mark.skipif(os.geteuid() != 0, reason="mount(2) needs root")
def test_a_users_service_says_which_settings_are_roots(glovebox):
    """Those of /etc hold for each service: what keeps another user's from it is named with the file that says so."""
    script = ("mount -t tmpfs none /mnt && cp -a /etc /mnt/etc && mkdir -p /mnt/etc/glovebox /mnt/state/templates/a && "
              "echo '{}' > /mnt/state/templates/a/manifest.json && chmod 755 /mnt && "
              "echo 'state: /mnt/state' > /mnt/etc/glovebox/glovebox.yaml && mount --bind /mnt/etc /etc && "
              "exec setpriv --reuid 4242 --regid 4242 --clear-groups \"$1\" serve")
    for folder in pathlib.Path(glovebox.program).parents:
        if not folder.stat().st_mode & 0o1:
            pytest.skip("another user cannot reach the program")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", glovebox.program], capture_output=True, check=False, timeout=60,
                          env=glovebox.environment({"GLOVEBOX_STATE": None, "HOME": "/nowhere"}), text=True)
    assert done.returncode == 125 and done.stderr.endswith("'/mnt/state/run': Permission denied\n"), done
    assert "state is that of /etc/glovebox/glovebox.yaml (--config FILE reads another): " in done.stderr, done


def test_run_finds_the_default_socket(glovebox):
    runtime = {"GLOVEBOX_RUNTIME": str(glovebox.folder / "runtime")}
    service = Service(glovebox, "--slots", "8", env=runtime)
    service.socket = glovebox.folder / "runtime" / "glovebox.sock"
    service.ready()
    done = glovebox("run", "--json", "-c", "print(1)", env=runtime)
    assert json.loads(done.stdout)["status"] == "ok"
    assert glovebox("run", "-c", "print(2)", env=runtime).stdout == b"2\n"
    service.end()
    assert glovebox("run", "-c", "print(3)", env=runtime).stdout == b"3\n", "else a private one is started"


def test_tcp_on_loopback_and_a_config_file(glovebox):
    port = free_port()
    (glovebox.folder / "serve.conf").write_text(
        f"# how we serve\nsocket: {glovebox.folder}/g.sock\nlisten: 127.0.0.1:{port}\n\nslots:  8\n")
    service = Service(glovebox, "--config", glovebox.folder / "serve.conf").ready()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/v1/runs", json.dumps({"code": "print(1)", "policy": "minimal"}),
                       {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 401, body
    assert json.loads(body)["error"]["code"] == "unauthorized"
    service.end()


@pytest.fixture(name="short_folder")
def short_folder_():
    """For paths in messages, which have 231 bytes."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        yield pathlib.Path(folder)


def test_without_templates_it_does_not_start(glovebox, short_folder):
    """And says so in one line, before it says that it listens; what was named by mistake stays as it was."""
    empty = short_folder / "empty"
    built = len([*(glovebox.state / "templates").glob("[!.]*/manifest.json")])
    for env, says in (({}, f"no template is built in {empty}/templates, while {glovebox.state}/templates has {built}; name that "
                           "state, or run glovebox template build python with this --state"),
                      ({"GLOVEBOX_STATE": str(empty)}, f"no template is built (looked in {empty}/templates); run: glovebox template "
                                                       "build python with this --state")):
        done = glovebox("serve", "--socket", "g.sock", "--state", empty, env=env)
        assert done.returncode == 125 and done.stderr.decode() == f"glovebox: {says}\n"
        assert not (glovebox.folder / "g.sock").exists() and not empty.exists()
    empty.write_text("")
    done = glovebox("serve", "--socket", "g.sock", "--state", empty)
    assert done.returncode == 125 and done.stderr.decode().endswith("a part of that path is a file; name another folder with --state\n")


def test_no_socket_is_left_when_listening_fails(glovebox):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = glovebox("serve", "--socket", glovebox.folder / "g.sock", "--listen",
                        f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.returncode != 0 and b"Address already in use" in done.stderr, done.stderr
    assert not (glovebox.folder / "g.sock").exists()


@pytest.fixture
def many_templates(glovebox):
    """Makes a state folder with so many templates: t0 a copy of the smallest one, all with as many zygotes as may be.
    It lies where the holder's user may go, unlike a test's own folder."""
    with tempfile.TemporaryDirectory(prefix="glovebox-test-") as place:
        os.chmod(place, 0o755)
        built, glovebox.state = glovebox.state / "templates" / "minimal", pathlib.Path(place)

        def make(count):
            manifest = json.loads((built / "manifest.json").read_text())
            manifest["zygotes"] = {f"set{number}": [] for number in range(4)}
            first = glovebox.state / "templates" / "t0" / "root"
            for number in range(count):
                folder = glovebox.state / "templates" / f"t{number}"
                folder.mkdir(parents=True)
                (folder / "manifest.json").write_text(json.dumps(manifest))
                if number == 0:
                    subprocess.run(["cp", "-a", built / "root", first], check=True)
                else:
                    (folder / "root").symlink_to(first)
        yield make


def test_a_reload_during_the_start_does_not_hide_its_end(glovebox):
    service = Service(glovebox)
    try:
        wait_until(lambda: "gloveboxd" in service.children())
        service.process.send_signal(signal.SIGHUP)
        service.ready()
    finally:
        service.end()


def test_as_many_templates_as_can_be_served(glovebox, many_templates):
    many_templates(16)
    service = Service(glovebox)
    wait_until(lambda: "listening on" in service.log.read_text() or service.process.poll() is not None)
    done = service.run("--template", "t0", "-c", "print(1)")
    service.end()
    assert done.stdout == b"1\n", (done.stderr, service.log.read_text())


def test_too_many_templates_are_reported(glovebox, many_templates):
    many_templates(17)
    done = glovebox("run", "--private", "--template", "t0", "-c", "print(1)")
    assert done.returncode == 125 and b"17 templates are built" in done.stderr, done.stderr


def test_a_killed_private_daemon_is_reported(glovebox):
    process = glovebox.start("run", "--private", "-c", "print('up', flush=True)\nwhile True: pass",
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n"
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        with contextlib.suppress(FileNotFoundError):  # one of them may have ended
            if os.path.basename(os.readlink(f"/proc/{child}/exe")) == "gloveboxd":
                os.kill(int(child), signal.SIGKILL)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 125
    assert stderr == b"glovebox: gloveboxd ended without a message; run: glovebox doctor\n"
