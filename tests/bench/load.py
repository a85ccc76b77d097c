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


def flat_out(path, clients, code, expected, seconds, warm_up):
    """Runs a second, milliseconds of each, and how many went wrong."""
    request = request_bytes(code)
    selector = selectors.DefaultSelector()
    for _ in range(clients):
        its = socket.socket(socket.AF_UNIX)
        its.connect(path)
        its.sendall(request)
        selector.register(its, selectors.EVENT_READ, [b'', time.perf_counter()])
    begin = time.perf_counter() + warm_up
    end = begin + seconds
    took, wrong = [], 0
    while (now := time.perf_counter()) < end:
        for key, _ in selector.select(end - now):
            state = key.data
            state[0] += key.fileobj.recv(1 << 20)
            size = answer_size(state[0])
            if size is None or len(state[0]) < size:
                continue
            now = time.perf_counter()
            if now >= begin:
                if expected in state[0]:
                    took.append((now - state[1]) * 1e3)
                else:
                    wrong += 1
            state[0], state[1] = b'', now
            key.fileobj.sendall(request)
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    selector.close()
    return len(took) / seconds, took, wrong
