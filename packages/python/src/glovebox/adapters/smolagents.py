"""smolagents: an executor for CodeAgent."""

from __future__ import annotations

import json
from typing import Any, Dict

from smolagents.local_python_executor import CodeOutput, PythonExecutor
from smolagents.tools import get_tools_definition_code

from .._http import loads
from ..errors import GloveboxError
from ..modeltools import clipped
from ._common import Workspace

# The agent's own final_answer ends a step by an exception; the value leaves the sandbox as JSON in a file.
FINAL = "_GloveboxFinalAnswer"
ANSWER_PATH = "/tmp/.glovebox-final-answer.json"
FINAL_ANSWER = f'''
class {FINAL}(BaseException): pass
def final_answer(answer=None):
    import json
    try: text = json.dumps(answer)
    except (TypeError, ValueError): text = json.dumps(str(answer))
    with open("{ANSWER_PATH}", "w") as file: file.write(text)
    raise {FINAL}
'''


class Executor(Workspace, PythonExecutor):
    """CodeAgent(executor=Executor()). timeout: seconds of one step. Tools of the agent run inside, from their source;
    what they need has to be in the template."""

    def __init__(self, timeout: float = 60, **options: Any) -> None:
        super().__init__(**options)
        self.timeout = timeout
        self._has_final_answer = False

    def send_tools(self, tools: Dict[str, Any]) -> None:
        own = {name: tool for name, tool in tools.items() if name != "final_answer"}
        if own:
            self._must_run(get_tools_definition_code(own))
        if "final_answer" in tools and not self._has_final_answer:
            self._must_run(FINAL_ANSWER)
            self._has_final_answer = True

    def send_variables(self, variables: Dict[str, Any]) -> None:
        if variables:
            text = json.dumps(variables)  # raises TypeError for values that JSON does not have
            self._must_run(f"globals().update(__import__('json').loads({text!r}))")

    def _must_run(self, code: str) -> None:
        execution = self.run_cell(code)
        if execution.error is not None:
            raise RuntimeError(f"{execution.explain()}\n{execution.error.traceback}")

    def __call__(self, code_action: str) -> CodeOutput:
        execution = self.run_cell(code_action, timeout=self.timeout)
        logs = clipped(execution.stdout + execution.stderr)
        error = execution.error
        if error is not None and error.name == FINAL:
            return CodeOutput(output=self._final_answer(), logs=logs, is_final_answer=True)
        if error is not None:
            raise RuntimeError("\n".join(part for part in (logs, error.traceback, execution.explain()) if part))
        return CodeOutput(output=execution.text, logs=logs, is_final_answer=False)

    def _final_answer(self) -> Any:
        try:
            return loads(self.sandbox.files.read_bytes(ANSWER_PATH))
        except GloveboxError as problem:
            raise RuntimeError(f"the final answer cannot be read: {problem.message}") from None

    def cleanup(self) -> None:
        self.close()
