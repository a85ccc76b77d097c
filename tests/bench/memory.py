"""What parked sandboxes cost: everything that the kernel charges to the daemon's control groups
(anonymous memory, tmpfs, page tables, kernel objects such as namespaces), while their number changes.

While a pool shrinks after a burst, one sandbox a second, the total is read again and again; the slope of a straight line
through (number parked, bytes charged) is the price of one. Shared costs (zygotes, daemon) fall out. Those that have
prewarmed go last and are heavier: the heaviest leaf is one of them."""
import os
import time


def children():
    """pid -> pids of its children, of all processes."""
    found = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{name}/stat', encoding='utf-8', errors='replace') as file:
                parent = int(file.read().rpartition(')')[2].split()[1])
        except OSError:
            continue
        found.setdefault(parent, []).append(int(name))
    return found


def below(pid):
    tree, found, todo = children(), [], [pid]
    while todo:
        todo += (its := tree.get(todo.pop(), []))
        found += its
    return found


def group_of(pid):
    """The folder of the process's memory control group, and the file that counts its bytes."""
    with open(f'/proc/{pid}/cgroup', encoding='utf-8') as file:
        rows = [line.rstrip('\n').split(':', 2) for line in file]
    for _, controllers, path in rows:
        if 'memory' in controllers.split(','):
            return f'/sys/fs/cgroup/memory{path}', 'memory.usage_in_bytes'
    for _, controllers, path in rows:
        if not controllers:
            return f'/sys/fs/cgroup{path}', 'memory.current'
    raise OSError('no memory control group')


def charged(group):
    with open(os.path.join(*group), encoding='utf-8') as file:
        return int(file.read())


def observe(serve):
    """Number of parked sandboxes of each kind, and bytes of all groups together and of each leaf."""
    leaves = {'light': [], 'data': []}
    shared = set()
    for pid in below(serve):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
            group = group_of(pid)
            if 'glovebox' not in group[0]:
                continue
            # A sandbox's interpreter stands in a group that has a number for a name.
            if os.path.basename(group[0]).isdigit():
                leaves['data' if b'pandas' in words else 'light'].append(group)
            else:
                shared.add(group)
        except OSError:
            continue
    try:
        sizes = {kind: [charged(group) for group in set(its)] for kind, its in leaves.items()}
        total = sum(sum(its) for its in sizes.values()) + sum(charged(group) for group in shared)
    except OSError:
        return None # one went meanwhile
    return {'light': len(sizes['light']), 'data': len(sizes['data']), 'total': total,
            'leaves': sizes}


def slope(points):
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None


def until_all_wait(client, seconds=30):
    """Until no sandbox is used, built or on its way out: what is left of a burst would be weighed as parked."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        health = client.get('/healthz')
        if health['in_use'] == 0 and health['queued'] == 0:
            return True
        time.sleep(0.05)
    return False


def stands_at(serve, count, use, seconds=60):
    """What is charged when so many of each set wait, and nothing is on its way out any more. `use` is called now and then: a set
    of which nothing is used for a minute is let go."""
    for turn in range(4 * seconds):
        if turn % 40 == 0:
            use()
        time.sleep(0.25)
        seen = observe(serve)
        if seen and {seen['light'], seen['data']} <= {0, count}:
            time.sleep(1.5)
            return observe(serve)
    return None


def of_one(serve, set_least, use, more=26, less=4):
    """MiB for each sandbox of all sets together that is not prewarmed (the prewarmed are in both counts): the difference of
    two totals that stand still."""
    set_least(more)
    many = stands_at(serve, more, use)
    set_least(less)
    few = stands_at(serve, less, use)
    return (many['total'] - few['total']) / (more - less) / (1 << 20) if many and few else None


def while_it_shrinks(serve, client, kind, seconds):
    """MiB for each parked sandbox of the kind: by the slope, which has what is charged elsewhere; in the leaves alone, of one
    that has not been prewarmed and of the heaviest. None if the pool did not shrink by three."""
    points, elsewhere, leaves = [], [], []
    if not until_all_wait(client):
        return None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seen = observe(serve)
        if seen:
            points.append((seen[kind], seen['total']))
            elsewhere.append((seen['light'] + seen['data'], seen['total'] - sum(map(sum, seen['leaves'].values()))))
            leaves += seen['leaves'][kind]
        time.sleep(0.25)
    counts = [count for count, _ in points]
    if not points or max(counts) - min(counts) < 3:
        return None
    price, beside = slope(points), slope(elsewhere)
    if not price or price <= 0 or not beside or beside <= 0:
        return None  # something else on the machine moved the total more than the sandboxes did
    return {'mib': price / (1 << 20), 'beside_mib': beside / (1 << 20), 'leaf_mib': sorted(leaves)[len(leaves) // 2] / (1 << 20),
            'leaf_most_mib': max(leaves) / (1 << 20), 'most': max(counts), 'least': min(counts)}
