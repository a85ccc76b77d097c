"""The command lines of other tools: the same program from the same template, the same walls as far as
the tool has them (own namespaces, no network, read-only root, 512 MiB, 64 processes)."""
import json
import os
import shutil

ENVIRONMENT = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': '/home/user', 'LANG': 'C.UTF-8',
               'MPLCONFIGDIR': '/home/user/.cache/matplotlib', 'TMPDIR': '/tmp'}
PYTHON = '/usr/bin/python3'


def bubblewrap(path, scratch, name, code):
    return [path, '--unshare-all', '--die-with-parent', '--ro-bind', f'{scratch}/root', '/',
            '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp',
            '--bind', f'{scratch}/home', '/home/user', '--chdir', '/tmp', PYTHON, '-c', code]


def bundle(scratch, name, code):
    """An OCI bundle, as crun, runc and runsc take it."""
    folder = f'{scratch}/bundles/{name}'
    os.makedirs(folder, exist_ok=True)
    quiet = ['nosuid', 'noexec', 'nodev']
    config = {
        'ociVersion': '1.0.2',
        'process': {'terminal': False, 'user': {'uid': 0, 'gid': 0}, 'cwd': '/tmp',
                    'args': [PYTHON, '-c', code], 'noNewPrivileges': True,
                    'env': [f'{key}={value}' for key, value in ENVIRONMENT.items()]},
        'root': {'path': f'{scratch}/root', 'readonly': True},
        'hostname': 'bench',
        'mounts': [
            {'destination': '/proc', 'type': 'proc', 'source': 'proc', 'options': quiet},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid']},
            {'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid']},
            {'destination': '/home/user', 'type': 'bind', 'source': f'{scratch}/home',
             'options': ['bind', 'rw']}],
        'linux': {'namespaces': [{'type': kind} for kind in
                                 ('pid', 'network', 'ipc', 'uts', 'mount')],
                  'resources': {'memory': {'limit': 512 << 20}, 'pids': {'limit': 64}}}}
    with open(f'{folder}/config.json', 'w', encoding='utf-8') as file:
        json.dump(config, file)
    return folder


def oci(path, scratch, name, code):
    return [path, '--root', f'{scratch}/state', 'run', '--bundle', bundle(scratch, name, code),
            f'glovebox-bench-{os.path.basename(path)}-{name}']


def runsc(path, scratch, name, code):
    return [path, '--root', f'{scratch}/state-runsc', '--network=none', 'run', '--bundle',
            bundle(scratch, name, code), f'glovebox-bench-runsc-{name}']


def podman(path, scratch, name, code):
    # The limits of files and processes are named because Debian's defaults fail without CAP_SYS_RESOURCE.
    return [path, '--root', f'{scratch}/podman', '--runroot', f'{scratch}/podman-run',
            '--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs', '--events-backend', 'none',
            'run', '--rm', '--network', 'none', '--read-only', '--memory', '512m',
            '--pids-limit', '64', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096',
            '-v', f'{scratch}/home:/home/user',
            *[f'--env={key}={value}' for key, value in ENVIRONMENT.items()],
            '--rootfs', f'{scratch}/layered', PYTHON, '-c', code]


# name, program to look for, command line, in every n-th round only (the slow ones)
TOOLS = [('bubblewrap', 'bwrap', bubblewrap, 1), ('crun', 'crun', oci, 1), ('runc', 'runc', oci, 1),
         ('podman', 'podman', podman, 2), ('runsc', 'runsc', runsc, 3)]


def installed():
    return [(name, shutil.which(program), command, every) for name, program, command, every in TOOLS
            if shutil.which(program)]
