"""Deep Agents: its own file tools and `execute` in a sandbox."""

from deepagents import create_deep_agent
from glovebox.adapters.deepagents import Backend
from langchain_openai import ChatOpenAI
from scripted import Model
from tasks import ANALYSIS, PNG, example, expect, options, upload  # noqa: F401


def ask(backend, steps):
    with Model(steps) as model:
        agent = create_deep_agent(ChatOpenAI(model="scripted", base_url=model.url, api_key="none"), backend=backend)
        return agent.invoke({"messages": [("user", "Do the task.")]})["messages"][-1].content


def test_chart_of_an_uploaded_csv(options):  # noqa: F811
    with Backend(**options) as backend:
        upload(backend.sandbox)
        code = ANALYSIS.replace("plt.show()", "plt.savefig('/workspace/chart.png')")
        steps = [("write_file", {"file_path": "/workspace/chart.py", "content": code}),
                 ("execute", {"command": "cd /workspace && MPLBACKEND=agg python3 chart.py"}),
                 expect("total 60", "Sales were 60 in all.")]
        assert ask(backend, steps) == "Sales were 60 in all."
        [chart, missing] = backend.download_files(["/workspace/chart.png", "/workspace/none"])
        assert chart.content.startswith(PNG) and chart.error is None
        assert missing.content is None and missing.error == "file_not_found"


def test_a_limit_is_reported(options):  # noqa: F811
    with Backend(timeout=1, **options) as backend:
        steps = [("execute", {"command": "while :; do :; done"}), expect("timeout was over", "It took too long.")]
        assert ask(backend, steps) == "It took too long."
        assert backend.execute("exit 3", timeout=60).exit_code == 3


def test_files_stay_for_its_own_tools(options):  # noqa: F811
    with Backend(**options) as backend:
        steps = [("write_file", {"file_path": "/workspace/note.txt", "content": "kept 17\n"}),
                 ("edit_file", {"file_path": "/workspace/note.txt", "old_string": "17", "new_string": "18"}),
                 ("grep", {"pattern": "kept", "path": "/workspace"}),
                 ("read_file", {"file_path": "/workspace/note.txt"}), expect("kept 18", "The file has stayed.")]
        assert ask(backend, steps) == "The file has stayed."
        large = "x" * 60_000
        assert backend.write("/workspace/large.txt", large).error is None
        assert backend.download_files(["/workspace/large.txt"])[0].content == large.encode()
        [made] = backend.upload_files([("/workspace/up.bin", b"\xff\x00")])
        assert made.error is None and backend.sandbox.files.read_bytes("up.bin") == b"\xff\x00"


def test_example_of_the_docs(example):  # noqa: F811
    assert example("Deep Agents", [("execute", {"command": "echo $((6 * 7))"}), expect("42", "It is 42.")]) == "It is 42.\n"
