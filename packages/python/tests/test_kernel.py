"""The Jupyter kernel, by the clients that notebooks use, and the magic %%sandbox."""

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from conftest import STATE
from glovebox import Sandbox
from glovebox.kernel.__main__ import main as kernel_main
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

PATIENCE = 60
needs_data = pytest.mark.skipif(not (STATE / "templates/python/manifest.json").exists(), reason="the template python is not built")


@pytest.fixture(name="specification", scope="module")
def specification_(tmp_path_factory, server):
    """The kernel, installed in a folder of its own, with the server of the tests."""
    folder = tmp_path_factory.mktemp("jupyter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "data"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("GLOVEBOX_SOCKET", server.socket)
        assert kernel_main(["install", "--user", "--policy", "minimal"]) == 0
        assert kernel_main(["install", "--user", "--policy", "data", "--name", "data"]) == 0
        yield "glovebox-python"


class Kernel:
    def __init__(self, name):
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def run(self, code, interrupt_when=None, **how):
        """(reply, messages by type)."""
        asked = self.client.execute(code, **how)
        messages = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != asked:
                continue
            messages.append((message["msg_type"], message["content"]))
            if interrupt_when and interrupt_when in message["content"].get("text", ""):
                self.manager.interrupt_kernel()
                interrupt_when = None
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while (reply := self.client.get_shell_msg(timeout=PATIENCE))["parent_header"].get("msg_id") != asked:
            pass
        return reply["content"], messages

    def text(self, code, **how):
        return "".join(content["text"] for kind, content in self.run(code, **how)[1] if kind == "stream")

    def stop(self):
        self.client.stop_channels()
        if self.manager.is_alive():
            self.manager.shutdown_kernel(now=False)


@pytest.fixture(name="kernel", scope="module")
def kernel_(specification):
    kernel = Kernel(specification)
    yield kernel
    kernel.stop()


def sandboxes(server):
    return [info for info in Sandbox.list(socket=server.socket) if info.state in ("running", "starting")]


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_cells_keep_names_and_give_values(kernel):
    assert kernel.run("x = 20")[0]["status"] == "ok"
    reply, messages = kernel.run("import sys\nprint('out'); print('err', file=sys.stderr)\nx + 1")
    assert reply["status"] == "ok" and reply["execution_count"] >= 2
    said = {"stdout": "", "stderr": ""}
    for content in (content for kind, content in messages if kind == "stream"):
        said[content["name"]] += content["text"]  # in as many messages as the program's writes
    assert said == {"stdout": "out\n", "stderr": "err\n"}
    [value] = [content for kind, content in messages if kind == "execute_result"]
    assert value["data"]["text/plain"] == "21" and value["execution_count"] == reply["execution_count"]


def test_it_runs_inside(kernel):
    assert kernel.text("import os; print(os.getcwd(), os.path.exists('/proc/1/root/etc/shadow'), os.environ.get('GLOVEBOX_SOCKET'))") \
        == "/workspace False None\n"


def test_an_error_is_one_and_leaves_names(kernel):
    kernel.run("x = 7")
    reply, messages = kernel.run("1 / 0")
    assert reply["status"] == "error" and reply["ename"] == "ZeroDivisionError" and reply["evalue"] == "division by zero"
    [error] = [content for kind, content in messages if kind == "error"]
    assert "ZeroDivisionError" in "\n".join(error["traceback"])
    assert kernel.text("print(x)") == "7\n"


def test_silent_cells_say_nothing(kernel):
    _, messages = kernel.run("print('x'); 5", silent=True)
    assert {kind for kind, _ in messages} <= {"status"}


def test_expressions_of_the_client_are_values(kernel):
    reply, _ = kernel.run("x = 3", user_expressions={"a": "x * 2", "b": "1 / 0"})
    assert reply["user_expressions"]["a"]["data"]["text/plain"] == "6"
    assert reply["user_expressions"]["b"]["ename"] == "ZeroDivisionError"


def test_an_interrupt_reaches_the_cell_and_keeps_names(kernel):
    kernel.run("x = 5")
    reply, _ = kernel.run("import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.05)", interrupt_when="begun")
    assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt"
    assert kernel.text("print(x)") == "5\n"


def test_completion_and_inspection(kernel):
    kernel.run("import collections\ndef frobnicate(a, b=2):\n  'Frobs.'\n")

    def ask(request, *arguments):
        asked = request(*arguments)
        while (reply := kernel.client.get_shell_msg(timeout=PATIENCE))["parent_header"]["msg_id"] != asked:
            pass
        return reply["content"]

    found = ask(kernel.client.complete, "y = frobn", 9)
    assert found["matches"] == ["frobnicate"] and (found["cursor_start"], found["cursor_end"]) == (4, 9)
    assert "collections.OrderedDict" in ask(kernel.client.complete, "collections.Ord", 15)["matches"]
    assert ask(kernel.client.complete, "'\"; print(1)", 12)["status"] == "ok"
    said = ask(kernel.client.inspect, "frobnicate(1)", 4)
    assert said["found"] and "Frobs." in said["data"]["text/plain"] and "b=2" in said["data"]["text/plain"]
    assert not ask(kernel.client.inspect, "nothing_of_this_name", 4)["found"]
    assert ask(kernel.client.is_complete, "for i in range(3):") == {"status": "incomplete", "indent": "    "}
    assert ask(kernel.client.is_complete, "x = 1")["status"] == "complete"


def test_input_is_refused_at_once(kernel):
    reply, _ = kernel.run("input('name? ')", allow_stdin=True)
    assert reply["ename"] == "StdinNotImplementedError"


def test_hostile_html_is_shown_in_a_frame_that_runs_nothing(kernel):
    _, messages = kernel.run("class H:\n  def _repr_html_(self): return '<script>alert(1)</script>'\nH()")
    [value] = [content for kind, content in messages if kind == "execute_result"]
    assert "<script>" not in value["data"]["text/html"] and 'sandbox=""' in value["data"]["text/html"]


def test_an_ended_sandbox_is_reported_and_replaced(kernel, server):
    kernel.run("x = 1")
    for info in sandboxes(server):
        Sandbox.connect(info.sandbox_id, socket=server.socket).kill()
    reply, _ = kernel.run("print(x)")
    assert reply["status"] == "error" and "fresh sandbox" in "\n".join(reply["traceback"])
    assert kernel.run("print(x)")[0]["ename"] == "NameError"


@pytest.mark.usefixtures("specification")
def test_a_missing_policy_is_reported_with_the_remedy():
    assert kernel_main(["install", "--user", "--policy", "nope", "--name", "wrong"]) == 0
    kernel = Kernel("wrong")
    try:
        [says] = kernel.run("1")[0]["traceback"]
    finally:
        kernel.stop()
        assert kernel_main(["remove", "--name", "wrong"]) == 0
    assert says.startswith("no policy is named 'nope'") and "python -m glovebox.kernel install" in says and "run the cell again" not in says


def test_two_notebooks_share_nothing_and_end_with_their_kernels(specification, server):
    before = len(sandboxes(server))
    first, second = Kernel(specification), Kernel(specification)
    try:
        first.run("x = 1; open('f', 'w').close()")
        assert second.text("import os; print('x' in globals(), os.path.exists('f'))") == "False False\n"
        assert len(sandboxes(server)) == before + 2
        first.manager.restart_kernel()
        first.client.wait_for_ready(timeout=PATIENCE)
        assert first.text("print('x' in globals())") == "False\n"
    finally:
        first.stop()
        second.stop()
    until(lambda: len(sandboxes(server)) == before)


@needs_data
def test_a_notebook_with_a_chart(specification):
    code = ["import pandas as pd, matplotlib.pyplot as plt\ntable = pd.DataFrame({'a': [1, 2, 3]})",
            "table.plot()\nplt.show()", "table"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    NotebookClient(notebook, kernel_name="data", timeout=PATIENCE).execute()
    nbformat.validate(notebook)
    kinds = [[sorted(output.get("data", {})) for output in cell["outputs"]] for cell in notebook["cells"]]
    assert any("image/png" in data for data in kinds[1]), kinds
    assert any("text/html" in data for data in kinds[2]), kinds
    failing = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("raise KeyError('k')")])
    with pytest.raises(CellExecutionError, match="KeyError"):
        NotebookClient(failing, kernel_name=specification, timeout=PATIENCE).execute()


def test_a_killed_kernel_leaves_its_sandbox_to_the_idle_time(specification, server):
    kernel = Kernel(specification)
    kernel.run("x = 1")
    newest = max(sandboxes(server), key=lambda info: info.started_at)
    os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
    assert newest.raw["idle_seconds"] == 3600
    kernel.client.stop_channels()
    Sandbox.connect(newest.sandbox_id, socket=server.socket).kill()


def test_install_and_remove(specification, tmp_path, capsys):
    assert kernel_main(["install", "--prefix", str(tmp_path / "prefix"), "--name", "other", "--template", "python"]) == 0
    said = json.loads((tmp_path / "prefix/share/jupyter/kernels/other/kernel.json").read_text())
    assert said["env"] == {"GLOVEBOX_KERNEL_TEMPLATE": "python"} and said["argv"][:3] == [sys.executable, "-m", "glovebox.kernel"]
    assert specification in KernelSpecManager().find_kernel_specs()
    assert kernel_main(["remove"]) == 0 and specification not in KernelSpecManager().find_kernel_specs()
    assert kernel_main(["remove"]) == 1 and "no kernel is called" in capsys.readouterr().err
    assert kernel_main(["install", "--prefix", str(tmp_path), "--name", "a b"]) == 1
    assert "'a b' is not installed: Invalid kernel name" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert kernel_main(["install", "--prefix", str(tmp_path / "file")]) == 1 and "Not a directory" in capsys.readouterr().err


def test_without_jupyter_it_says_what_to_install(tmp_path):
    hidden = "import sys; sys.modules['jupyter_client'] = sys.modules['jupyter_client.kernelspec'] = None\n" \
             "from glovebox.kernel.__main__ import main; sys.exit(main(['install']))"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "pip install 'glovebox-sandbox[jupyter]'" in done.stderr, done.stderr


@pytest.fixture(name="shell")
def shell_(server, monkeypatch):
    monkeypatch.setenv("GLOVEBOX_SOCKET", server.socket)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "glovebox")
    yield shell
    shell.run_line_magic("unload_ext", "glovebox")
    InteractiveShell.clear_instance()


def test_the_magic_runs_a_cell_in_a_sandbox(shell, capsys):
    shell.run_cell_magic("sandbox", "--policy minimal", "import os\nx = 4\nprint(os.getcwd())")
    shell.run_cell_magic("sandbox", "--policy minimal", "print(x)")
    assert capsys.readouterr().out == "/workspace\n4\n"
    assert "x" not in shell.user_ns and shell.user_ns["_sandbox"].status == "ok"
    shell.run_cell_magic("sandbox", "--policy minimal --fresh", "print(x)")
    assert "NameError" in capsys.readouterr().err
    shell.run_cell_magic("sandbox", "--polcy minimal", "1")
    assert "--polcy" in capsys.readouterr().err
    shell.run_cell_magic("sandbox", "--policy nothing", "1")
    assert "nothing" in capsys.readouterr().err
