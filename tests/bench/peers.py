"""The command lines of other tools: the same program from the same template, with as many of the same walls as the tool has:
own namespaces (a user namespace among them where the tool maps ids in one call), no network, read-only root, no capability, the system
calls of our own filter, bounded memory, processes, descriptors and temporary files."""
import errno
import json
import os
import re
import shutil

ENVIRONMENT = {'PATH': '/usr/local/bin:/usr/bin:/bin', 'HOME': '/home/user', 'LANG': 'C.UTF-8',
               'MPLCONFIGDIR': '/home/user/.cache/matplotlib', 'TMPDIR': '/tmp'}
# Tools that are not installed but unpacked need their libraries named.
TOOL_ENVIRONMENT = ENVIRONMENT | {name: os.environ[name] for name in ['LD_LIBRARY_PATH'] if name in os.environ}
PYTHON = '/usr/bin/python3'
SYSCALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../data/seccomp/default.syscalls')
MEMORY, PROCESSES, FILES = 512 << 20, 64, 1024
HIDDEN = ['/proc/kcore', '/proc/keys', '/proc/sysrq-trigger', '/proc/timer_list']


def allowed_calls():
    """Names that our filter lets pass, some of them only with certain arguments."""
    with open(SYSCALLS, encoding='utf-8') as file:
        rows = [re.match(r'([a-z]\w*)(?:@\d+)?\s+(\S+)', line) for line in file]
    return sorted({row[1] for row in rows if row and row[2] in ('allow', 'allow-if', 'count', 'count-if', 'refuse-if', 'fail-if')})


def bubblewrap(path, scratch, name, code):
    """It takes the very filter that sandboxes have, as descriptor 9. It has no limits."""
    return [path, '--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', '--seccomp', '9', '--unsetenv', 'LD_LIBRARY_PATH',
            '--ro-bind', f'{scratch}/root', '/', '--proc', '/proc', '--dev', '/dev', '--size', str(MEMORY), '--tmpfs', '/tmp',
            '--bind', f'{scratch}/home', '/home/user', '--chdir', '/tmp', PYTHON, '-c', code]


def bundle(scratch, name, code):
    """An OCI bundle, as crun, runc and runsc take it."""
    folder = f'{scratch}/bundles/{name}'
    os.makedirs(folder, exist_ok=True)
    quiet = ['nosuid', 'noexec', 'nodev']
    none = {kind: [] for kind in ('bounding', 'effective', 'inheritable', 'permitted', 'ambient')}
    config = {
        'ociVersion': '1.0.2',
        'process': {'terminal': False, 'user': {'uid': 1000, 'gid': 1000}, 'cwd': '/tmp',
                    'args': [PYTHON, '-c', code], 'noNewPrivileges': True, 'capabilities': none,
                    'rlimits': [{'type': 'RLIMIT_NOFILE', 'hard': FILES, 'soft': FILES},
                                {'type': 'RLIMIT_CORE', 'hard': 0, 'soft': 0}],
                    'env': [f'{key}={value}' for key, value in ENVIRONMENT.items()]},
        'root': {'path': f'{scratch}/root', 'readonly': True},
        'hostname': 'bench',
        'mounts': [
            {'destination': '/proc', 'type': 'proc', 'source': 'proc', 'options': quiet},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid']},
            {'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs',
             'options': ['nosuid', f'size={MEMORY}', 'mode=1777', 'uid=1000', 'gid=1000']},
            {'destination': '/home/user', 'type': 'bind', 'source': f'{scratch}/home',
             'options': ['bind', 'rw']}],
        'linux': {'namespaces': [{'type': kind} for kind in
                                 ('pid', 'network', 'ipc', 'uts', 'mount')],
                  'maskedPaths': HIDDEN, 'readonlyPaths': ['/proc/sys'],
                  'seccomp': {'defaultAction': 'SCMP_ACT_ERRNO', 'defaultErrnoRet': errno.ENOSYS, 'architectures': ['SCMP_ARCH_X86_64'],
                              'syscalls': [{'names': allowed_calls(), 'action': 'SCMP_ACT_ALLOW'}]},
                  'resources': {'memory': {'limit': MEMORY}, 'pids': {'limit': PROCESSES}}}}
    with open(f'{folder}/config.json', 'w', encoding='utf-8') as file:
        json.dump(config, file)
    with open(f'{folder}/seccomp.json', 'w', encoding='utf-8') as file:
        json.dump(config['linux']['seccomp'], file)
    return folder


def oci(path, scratch, name, code):
    return [path, '--root', f'{scratch}/state', 'run', '--bundle', bundle(scratch, name, code),
            f'glovebox-bench-{os.path.basename(path)}-{name}']


def runsc(path, scratch, name, code):
    return [path, '--root', f'{scratch}/state-runsc', '--network=none', 'run', '--bundle',
            bundle(scratch, name, code), f'glovebox-bench-runsc-{name}']


def podman(path, scratch, name, code):
    # The limits of files and processes are named because Debian's defaults fail without CAP_SYS_RESOURCE.
    helpers = [('--conmon', shutil.which('conmon')), ('--runtime', shutil.which('runc') or shutil.which('crun'))]
    return [path, *[word for pair in helpers if pair[1] for word in pair], '--root', f'{scratch}/podman', '--runroot', f'{scratch}/podman-run',
            '--storage-driver', 'vfs', '--cgroup-manager', 'cgroupfs', '--events-backend', 'none',
            'run', '--rm', '--network', 'none', '--read-only', '--cap-drop', 'all', '--security-opt', 'no-new-privileges',
            '--security-opt', f'seccomp={bundle(scratch, name, code)}/seccomp.json', '--memory', str(MEMORY),
            '--pids-limit', str(PROCESSES), '--ulimit', f'nofile={FILES}:{FILES}', '--ulimit', 'nproc=4096:4096',
            '-v', f'{scratch}/home:/home/user',
            *[f'--env={key}={value}' for key, value in ENVIRONMENT.items()],
            '--rootfs', f'{scratch}/layered', PYTHON, '-c', code]


# name, program to look for, command line, in every n-th round only (the slow ones)
TOOLS = [('bubblewrap', 'bwrap', bubblewrap, 1), ('crun', 'crun', oci, 1), ('runc', 'runc', oci, 1),
         ('podman', 'podman', podman, 2), ('runsc', 'runsc', runsc, 3)]


def installed():
    return [(name, shutil.which(program), command, every) for name, program, command, every in TOOLS
            if shutil.which(program)]
