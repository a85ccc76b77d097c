"""A loop between a model and its tools, over OpenAI's chat completions: OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL."""

import json
import os
import urllib.request

import glovebox

STEPS_MAX = 20


def ask(messages, tools):
    """The model's next message."""
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/") + "/chat/completions"
    body = json.dumps({"model": os.environ.get("OPENAI_MODEL", "gpt-5"), "messages": messages, "tools": tools})
    request = urllib.request.Request(url, body.encode(), {
        "Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"})
    with urllib.request.urlopen(request, timeout=300) as answer:
        return json.load(answer)["choices"][0]["message"]


def work(tools, role, task):
    """Lets the model do a task with the tools. Returns its last text and the executions of its tool calls."""
    messages = [{"role": "system", "content": f"{role}\n\n{glovebox.prompt()}"}, {"role": "user", "content": task}]
    executions = []
    for _ in range(STEPS_MAX):
        message = ask(messages, tools)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"], executions
        for call in message["tool_calls"]:
            messages.append(tools.answer(call))
            if tools.last is not None and tools.last not in executions:
                executions.append(tools.last)
    return f"no answer after {STEPS_MAX} steps", executions
