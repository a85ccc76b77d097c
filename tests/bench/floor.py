#!/usr/bin/python3
"""What of a warm hello is the machine's: floor.py BUILD [ROUNDS]. By turns, as far apart as the bench's: a warm run; the
same HTTP library that only answers (echo); that and a prewarmed interpreter without any wall (run); that and a signature
and write of a receipt's size (proved): floor.c. Then the processor time of one of the last, with the fork, the print before
and the end of its interpreter: what two processors could do flat out, if nothing else were to be done."""
import os
import random
import runpy
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import load
import pairs
import services

HELLO = "print('hello sandbox')"
ALONE = 200  # of those whose processor time is counted
TICK_MS = 1000 / os.sysconf('SC_CLK_TCK')
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# One interpreter at a time waits, has printed before, and is forked while none is asked for: from one that has imported
# what ours has.
INTERPRETER = f"import {', '.join(runpy.run_path(f'{TOP}/src/interpreter/zygote.py')['STANDARD'])}\n" """
import gc, os, socket, sys
control, null = socket.socket(fileno=int(sys.argv[1])), os.open('/dev/null', os.O_WRONLY)
def run(code): exec(compile(code, 'main.py', 'exec'), {'__name__': '__main__'}); sys.stdout.flush()
gc.freeze()
while True:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    kept = os.dup(1)
    os.dup2(null, 1)
    run(b"print('prewarmed')")
    os.dup2(kept, 1)
    code = control.recv(4096)
    if code:
        run(code)
        control.send(b'.')
    else:
        os.kill(os.getppid(), 15)
    os._exit(0)
"""


class Floor:
    def __init__(self, build, scratch):
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f'{scratch}/floor')
        listening.listen()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, stdout = os.pipe()
        log = os.open(f'{scratch}/log', os.O_RDWR | os.O_CREAT, 0o600)
        self.processes = [
            subprocess.Popen(['/usr/bin/python3', '-c', INTERPRETER, str(theirs.fileno())], stdout=stdout,
                             pass_fds=[theirs.fileno()]),
            subprocess.Popen([f'{build}/bench_floor', *map(str, (listening.fileno(), ours.fileno(), output, log))],
                             pass_fds=[listening.fileno(), ours.fileno(), output, log])]
        for descriptor in (stdout, output, log):
            os.close(descriptor)
        for its in (listening, ours, theirs):
            its.close()
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.connect(f'{scratch}/floor')

    def ask(self, path):
        request = f'POST /{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(HELLO)}\r\n\r\n{HELLO}'.encode()
        began = time.perf_counter()
        self.peer.sendall(request)
        data, size = b'', None
        while size is None or len(data) < size:
            data += self.peer.recv(1 << 16)
            size = load.answer_size(data) if size is None else size
        took = (time.perf_counter() - began) * 1e3
        if b' 200 ' not in data[:20] or (path != 'echo' and b'hello sandbox' not in data):
            raise RuntimeError(f'{path}: {data[:200]}')
        return took

    def processor_ms(self):
        """Of both, and of the interpreters that have ended."""
        ticks = 0
        for process in self.processes:
            with open(f'/proc/{process.pid}/stat', encoding='utf-8') as file:
                ticks += sum(map(int, file.read().rpartition(')')[2].split()[11:15]))
        return ticks * TICK_MS

    def one_after_the_other(self):
        before = self.processor_ms()
        for _ in range(ALONE):
            self.ask('proved')
        return (self.processor_ms() - before) / ALONE

    def close(self):
        self.peer.close()
        for process in reversed(self.processes):
            process.terminate()
            process.wait(10)


def measure(build, scratch, rounds):
    took = {name: [] for name in ('warm', 'echo', 'run', 'proved')}
    floor = Floor(build, scratch)
    try:
        with services.service(build, scratch, 'service', {}) as (_, client):
            for turn in range(rounds + 20):
                for name in random.sample(sorted(took), 4):
                    time.sleep(random.uniform(0.025, 0.060))
                    if name == 'warm':
                        each, result = client.run(HELLO)
                        if result['usage']['start'] != 'parked':
                            continue
                    else:
                        each = floor.ask(name)
                    if turn >= 20:
                        took[name].append(each)
        return took, floor.one_after_the_other()
    finally:
        floor.close()


def main():
    build = os.path.abspath(sys.argv[1])
    subprocess.run(['ninja', '-C', build, '--quiet', 'bench_floor'], check=True)
    with tempfile.TemporaryDirectory(prefix='glovebox-floor-') as scratch:
        os.chmod(scratch, 0o755)
        took, processor_ms = measure(build, scratch, int(sys.argv[2]) if len(sys.argv) > 2 else 300)
    print('load average', *os.getloadavg())
    for name, each in took.items():
        low, high = pairs.interval(each)
        print(f'{name:7} {len(each)}: min {min(each):.3f} ms, p25 {statistics.quantiles(each, n=4)[0]:.3f}, '
              f'p50 {statistics.median(each):.3f} ({low:.3f} to {high:.3f})')
    print(f'processor time of one: {processor_ms:.2f} ms')


if __name__ == '__main__':
    main()
