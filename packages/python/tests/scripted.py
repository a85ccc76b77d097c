"""A model server whose answers are written down: OpenAI's chat completions and responses, Anthropic's messages.

A step is a text, or (tool, arguments); a step that is a function gets the text of all tool results so far and returns one
of those. The server answers one step for each request, whatever the request's model."""

import http.server
import json
import threading


class Model:
    def __init__(self, steps):
        self.steps = list(steps)
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                answer = outer.answer(self.path, body)
                is_stream = bool(body.get("stream"))
                data = streamed(answer) if is_stream else json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.server.server_port}"
        self.url = self.root + "/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        assert self.steps, f"one request more than steps: {json.dumps(body)[-2000:]}"
        step = self.steps.pop(0)
        if callable(step):
            step = step(results_of(body))
        number = len(self.requests)
        if path.endswith("/messages"):
            return anthropic_answer(step, number)
        if path.endswith("/responses"):
            return responses_answer(step, number)
        return chat_answer(step, number)


def results_of(body):
    """All texts of tool results in a request, of any of the three interfaces. smolagents sends them as texts of the user."""
    texts = []
    for message in body.get("messages") or body.get("input") or []:
        kind = message.get("role") or message.get("type")
        if kind in ("tool", "user", "function") or str(kind).endswith("_output"):
            texts.append(json.dumps(message.get("content", message.get("output")), ensure_ascii=False))
    return "\n".join(texts)


def chat_answer(step, number):
    message = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if not isinstance(step, str):
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function",
                                  "function": {"name": step[0], "arguments": json.dumps(step[1])}}]
    return {"id": f"chat_{number}", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop" if isinstance(step, str) else "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def streamed(answer):
    choice = answer["choices"][0]
    delta = dict(choice["message"])
    for index, call in enumerate(delta.get("tool_calls") or []):
        call["index"] = index
    rows = [{"delta": delta, "finish_reason": None}, {"delta": {}, "finish_reason": choice["finish_reason"]}]
    texts = [json.dumps({**answer, "object": "chat.completion.chunk", "choices": [{"index": 0, **row}]}) for row in rows]
    return "".join(f"data: {text}\n\n" for text in [*texts, "[DONE]"]).encode()


def responses_answer(step, number):
    if isinstance(step, str):
        item = {"id": f"m_{number}", "type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step, "annotations": []}]}
    elif step[0] == "shell":
        item = {"id": f"s_{number}", "type": "shell_call", "call_id": f"call_{number}", "status": "completed", "action": step[1]}
    else:
        item = {"id": f"f_{number}", "type": "function_call", "call_id": f"call_{number}", "status": "completed",
                "name": step[0], "arguments": json.dumps(step[1])}
    return {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "scripted", "status": "completed",
            "output": [item], "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                      "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}


def anthropic_answer(step, number):
    block = {"type": "text", "text": step} if isinstance(step, str) else \
        {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": step[1]}
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [block],
            "stop_reason": "end_turn" if isinstance(step, str) else "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}
