"""How a run's cost grows: with sessions that exist, inputs, artifacts and bytes of output. Beside the time of the caller stands
gloveboxd's own processor time, which other work on the machine hardly moves."""
import contextlib
import json
import os
import random
import tempfile
import time

import memory
import services

SESSIONS = (1, 100, 300, 1000)
INPUTS = (1, 10, 100, 1000)
ARTIFACTS = (1, 10, 100, 250)
OUTPUTS = {'1 B': 1, '64 KiB': 1 << 16, '1 MiB': 1 << 20, '8 MiB': 8 << 20}
IDLE_SECONDS = 8
HELLO = "print('hello sandbox')"


def names():
    """Of all rows, in the order in which they are told."""
    return [*[f'growth, inputs {count}' for count in INPUTS], *[f'growth, artifacts {count}' for count in ARTIFACTS],
            *[f'growth, stdout {name}' for name in OUTPUTS],
            *[f'growth, sessions that exist {count}' for count in SESSIONS], *map(idle, SESSIONS)]


def idle(count):
    return f'growth, a second of {count} idle session{"s" * (count > 1)}'


def gloveboxd_of(serve):
    """The process that does the work; the one that was started holds it."""
    for pid in [serve, *memory.below(serve)]:
        with open(f'/proc/{pid}/comm', encoding='utf-8') as file:
            if file.read().strip() == 'gloveboxd':
                return pid
    raise RuntimeError('gloveboxd is not there')


def processor_ms(pid):
    """Of all threads, proc(5): the first number of schedstat, nanoseconds on a processor."""
    used = 0
    for thread in os.listdir(f'/proc/{pid}/task'):
        with contextlib.suppress(OSError), open(f'/proc/{pid}/task/{thread}/schedstat', encoding='utf-8') as file:
            used += int(file.read().split()[0])
    return used / 1e6


def request(path, body):
    content = json.dumps(body).encode()
    return b'POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        % (path.encode(), len(content)) + content


class Growth:
    """`add(name, took, used)`: milliseconds of the caller, and of gloveboxd on a processor."""

    def __init__(self, process, client, add, part):
        client.get('/healthz')  # from its answer on there is a gloveboxd
        self.pid, self.client, self.add, self.part = gloveboxd_of(process.pid), client, add, part

    def run(self, name, code, check, **more):
        asked = request('/v1/runs', {'code': code, 'policy': 'data', **more})
        time.sleep(random.uniform(0.02, 0.04))
        before = processor_ms(self.pid)
        took, result = self.client.ask(asked)
        used = processor_ms(self.pid) - before
        if result.get('status') != 'ok' or not check(result):
            raise RuntimeError(f"{name}: {str(result)[:500]}")
        self.add(name, took, used)

    def of_runs(self):
        turns = [lambda count=count: self.run(
            f'growth, inputs {count}', HELLO, lambda result: True,
            files=[{'path': f'in/{n}', 'content': 'x' * 100} for n in range(count)]) for count in INPUTS]
        turns += [lambda count=count: self.run(
            f'growth, artifacts {count}', f"for n in range({count}): open(f'out-{{n}}', 'w').write('x' * 100)",
            lambda result: len(result['artifacts']) == count) for count in ARTIFACTS]
        turns += [lambda name=name, size=size: self.run(
            f'growth, stdout {name}', f"import sys; sys.stdout.write('x' * {size})",
            lambda result: len(result['stdout']) == size, limits={'output_bytes': 8 << 20}) for name, size in OUTPUTS.items()]
        for _ in range(max(3, int(20 * self.part))):
            for turn in random.sample(turns, len(turns)):
                turn()

    def of_sessions(self):
        alive = 0
        for count in SESSIONS[:-1] if self.part < 0.5 else SESSIONS:
            for _ in range(count - alive):
                status = self.client.ask(request('/v1/sessions', {'policy': 'data'}))[1]
                if 'id' not in status:
                    raise RuntimeError(f'session: {str(status)[:500]}')
            alive = count
            time.sleep(2)  # pools are filled
            for _ in range(max(10, int(60 * self.part))):
                self.run(f'growth, sessions that exist {count}', HELLO, lambda result: True)
            before = processor_ms(self.pid)
            time.sleep(IDLE_SECONDS)
            self.add(idle(count), None, (processor_ms(self.pid) - before) / IDLE_SECONDS)


def measure(build, part, add):
    for name, what, slots in (('runs', Growth.of_runs, 32), ('sessions', Growth.of_sessions, SESSIONS[-1] + 24)):
        with tempfile.TemporaryDirectory(prefix='glovebox-growth-') as scratch:
            os.chmod(scratch, 0o755)
            with services.service(os.path.abspath(build), scratch, name, {}, slots=slots) as (process, client):
                what(Growth(process, client, add, part))
