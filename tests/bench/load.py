"""The clients of the bench: one that waits between requests, and many without pauses in one process."""
import json
import selectors
import socket
import time


def request_bytes(code, **more):
    body = json.dumps({'code': code, 'policy': 'data', **more}).encode()
    return (b'POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
            b'Content-Length: %d\r\n\r\n' % len(body)) + body


def answer_size(data):
    """Bytes of the answer that `data` begins with; None while its head is not complete."""
    end = data.find(b'\r\n\r\n')
    if end < 0:
        return None
    for line in data[:end].split(b'\r\n')[1:]:
        name, _, value = line.partition(b':')
        if name.lower() == b'content-length':
            return end + 4 + int(value)
    raise ValueError('an answer without a length')


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(path)

    def run(self, code, **more):
        """Milliseconds from the first byte sent to the last received, and the result."""
        return self.ask(request_bytes(code, **more))

    def get(self, path):
        return self.ask(b'GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' % path.encode())[1]

    def ask(self, request):
        begin = time.perf_counter()
        self.socket.sendall(request)
        data, size = b'', None
        while size is None or len(data) < size:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError('the daemon hung up')
            data += piece
            size = answer_size(data) if size is None else size
        took = (time.perf_counter() - begin) * 1e3
        return took, json.loads(data[data.index(b'\r\n\r\n') + 4:])


def retry_after(data):
    """Seconds that a refused client waits, of an answer 429 (RFC 9110, 10.2.3); None of another."""
    if not data.startswith(b'HTTP/1.1 429 '):
        return None
    return next(int(line.split(b':')[1]) for line in data.split(b'\r\n') if line.lower().startswith(b'retry-after:'))


def flat_out(path, clients, code, expected, seconds, warm_up):
    """Runs a second, milliseconds of each, and how many requests were refused. A client that was refused waits as long
    as the answer says."""
    request = request_bytes(code)
    selector = selectors.DefaultSelector()
    waiting = []  # when a client sends again, and its key

    def send(key):
        key.data[:] = b'', time.perf_counter()
        key.fileobj.sendall(request)

    for _ in range(clients):
        its = socket.socket(socket.AF_UNIX)
        its.connect(path)
        send(selector.register(its, selectors.EVENT_READ, [b'', 0]))
    begin = time.perf_counter() + warm_up
    end = begin + seconds
    took, refused = [], 0
    while (now := time.perf_counter()) < end:
        while waiting and waiting[0][0] <= now:
            send(waiting.pop(0)[1])
        for key, _ in selector.select(min([end, *(at for at, _ in waiting[:1])]) - now):
            state = key.data
            state[0] += key.fileobj.recv(1 << 20)
            size = answer_size(state[0])
            if size is None or len(state[0]) < size:
                continue
            now = time.perf_counter()
            pause = retry_after(state[0])
            if pause is None and expected not in state[0]:
                raise RuntimeError(f'an answer that was not expected: {state[0][:500]}')
            if now >= begin and pause is None:
                took.append((now - state[1]) * 1e3)
            refused += now >= begin and pause is not None
            if pause is None:
                send(key)
            else:
                waiting.append((now + pause, key))
                waiting.sort(key=lambda each: each[0])
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    selector.close()
    return len(took) / seconds, took, refused
