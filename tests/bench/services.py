"""Services that are compared with each other: each has a state, a log and a socket of its own, and may have a part that is
built otherwise (tests/bench/*.c), an ordinary user or one processor."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import load

STATE = os.environ.get('GLOVEBOX_STATE') or '/var/lib/glovebox'
PARTS = ('gloveboxd', 'glovebox-spawner', 'glovebox-init', 'glovebox-egress', 'glovebox-notify')
USER = 4243  # owns nothing on any machine


def parts(build, folder, replaced):
    """A folder in which `glovebox` finds its parts, some of them replaced: {part: program of the build}."""
    os.mkdir(folder)
    for part in PARTS:
        shutil.copy(f'{build}/{replaced.get(part, part)}', f'{folder}/{part}')
    return folder


def connect(path):
    for _ in range(100):
        with contextlib.suppress(OSError):
            return load.Client(path)
        time.sleep(0.1)
    raise RuntimeError(f'{path} does not answer')


@contextlib.contextmanager
def service(build, scratch, name, replaced, user=None, processors=None, slots=32, config=None, state=None):
    """Gives its process and a client."""
    folder = f'{scratch}/{name}'
    os.mkdir(folder)
    os.mkdir(f'{folder}/state')
    os.symlink(f'{state or STATE}/templates', f'{folder}/state/templates')
    environment = os.environ | {'GLOVEBOX_LIBEXEC': parts(build, f'{folder}/parts', replaced),
                                'GLOVEBOX_RUNTIME': folder, 'GLOVEBOX_MEASURE_TEMPLATES': 'false'}
    how = {}
    if user is not None:
        os.chown(folder, user, user)
        os.chown(f'{folder}/state', user, user)
        environment['HOME'] = folder
        how = {'user': user, 'group': user, 'extra_groups': []} if os.geteuid() == 0 else {}
    before = os.sched_getaffinity(0)
    with open(f'{folder}/log', 'w', encoding='utf-8') as log:
        os.sched_setaffinity(0, processors or before)  # inherited
        try:
            process = subprocess.Popen([f'{build}/glovebox', 'serve', '--state', f'{folder}/state', '--socket', f'{folder}/socket',
                                        '--slots', str(slots), *(['--config', config] if config else [])],
                                       env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd='/', **how)
        finally:
            os.sched_setaffinity(0, before)
    try:
        yield process, connect(f'{folder}/socket')
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
