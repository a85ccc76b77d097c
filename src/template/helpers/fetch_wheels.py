# fetch_wheels.py - fetches the wheels that a recipe lists, from inside the new root: fetch_wheels.py REQUEST FOLDER. The
# pip of the root knows for which Python and C library they must be. Follows pip_resolution.py, which resolves what is needed
# if there is no lock. FOLDER is kept from build to build: wheels in it are not fetched again.

import threading
import time

BATCH = 8    # wheels that one pip fetches
AT_ONCE = 3  # of these
def read_lock(text, wanted):
    """Rows as pip has them, NAME==VERSION ; MARKER --hash=sha256:...; None if it was made for another list."""
    if head_of(wanted) not in text.splitlines():
        return None
    rows = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        head, *hashes = line.split(" --hash=sha256:")
        pinned, _, marker = head.partition(";")
        need = requirement_of(pinned.strip(), "the lock")
        exact = re.fullmatch(r"==([^,*]+)", str(need.specifier))
        if need.url or not exact or not hashes or any(not re.fullmatch(r"[0-9a-f]{64}", one.strip()) for one in hashes):
            give_up(f"the lock has a line that pins nothing: {plain(line)}; remove the lock, and the next build writes it anew")
        if not marker.strip() or markers.Marker(marker).evaluate({"extra": ""}):
            rows.append((same(need.name), str(utils.Version(exact.group(1))), {one.strip() for one in hashes}))
    return rows


def in_folder(folder):
    """Wheels that were fetched before: {(name, version): file}."""
    found = {}
    for name in os.listdir(folder):
        try:
            project, version = utils.parse_wheel_filename(name)[:2]
            found[project, str(version)] = name
        except utils.InvalidWheelFilename:
            os.unlink(os.path.join(folder, name))
    return found


class Fetching:
    def __init__(self, folder, bytes_most):
        self.folder, self.bytes_most, self.began, self.failure = folder, bytes_most, time.monotonic(), ""
        self.batches, self.lock, self.had = [], threading.Lock(), self.bytes_in()

    def bytes_in(self):
        sizes = []
        for name in os.listdir(self.folder):
            try:
                sizes.append(os.path.getsize(os.path.join(self.folder, name)))
            except FileNotFoundError:
                pass  # pip has moved it
        return sum(sizes)

    def tell(self):
        have = self.bytes_in()
        text = f"wheels, {have >> 20} MiB"
        if self.bytes_most:
            text += f" of {self.bytes_most >> 20}"
            if have > self.had:
                left = (time.monotonic() - self.began) / (have - self.had) * max(0, self.bytes_most - have)
                text += f", {left:.0f} s left"
        print(text, file=sys.stderr, flush=True)

    def fetch(self, number, rows):
        listed = f"/tmp/wheels-{number}.txt"
        with open(listed, "w", encoding="utf-8") as file:
            for name, version, hashes in rows:
                file.write(f"{name}=={version} " + " ".join(f"--hash=sha256:{one}" for one in sorted(hashes)) + "\n")
        status, out, err = run_pip("download", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps",
                                   "--only-binary=:all:", "--require-hashes", "--retries=2", "--timeout=20",
                                   "--progress-bar=off", "--dest", self.folder, "-r", listed)
        if status == 0:
            return ""
        said = out + err
        if "DO NOT MATCH THE HASHES" in said:
            found = re.search(r"^\s{4}(\S+==\S+|\S+) from ", said, re.MULTILINE)
            return (f"the index has other archives than the lock names: {plain(found.group(1)) if found else 'see pip'}; "
                    f"remove the lock to have it written anew, if you trust the index")
        missing = re.search(r"No matching distribution found for (\S+)", said)
        wanted = plain(missing.group(1)) if missing else "one of them"
        no_answer = why_no_answer(said, wanted)
        return f"{no_answer}; or build a template that needs none of it, as python-small" if no_answer else why_not(said, wanted)

    def work(self):
        while True:
            with self.lock:
                if self.failure or not self.batches:
                    return
                number = len(self.batches)
                rows = self.batches.pop()
            failure = self.fetch(number, rows)
            with self.lock:
                self.failure = self.failure or failure
                self.tell()

    def run(self, rows):
        self.tell()
        self.batches = [rows[at:at + BATCH] for at in range(0, len(rows), BATCH)]
        workers = [threading.Thread(target=self.work) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.failure:
            give_up(self.failure)


def fetch_locked(rows, folder, request, bytes_most):
    """Gives {file: sha256} of the rows' wheels."""
    have = in_folder(folder)
    right = {(name, version) for name, version, hashes in rows if (name, version) in have
             and digest_of(os.path.join(folder, have[name, version])) in hashes}
    for key, name in have.items():
        if key not in right:
            os.unlink(os.path.join(folder, name))
    missing = [row for row in rows if row[:2] not in right]
    if missing and request["offline"]:
        give_up(f"{len(missing)} of {len(rows)} wheels are not in the cache, {missing[0][0]} {missing[0][1]} is one of them; "
                f"build it once without --offline")
    if missing:
        Fetching(folder, bytes_most).run(missing)
    have, files = in_folder(folder), {}
    for name, version, hashes in rows:
        file = have.get((name, version))
        digest = digest_of(os.path.join(folder, file)) if file else ""
        if digest not in hashes:
            give_up(f"the archive of {name} {version} is not one of those that the lock names")
        files[file] = digest
    return files


def resolve(wanted, known, folder):
    """Returns {file: sha256} and the text of a lock. `known` has the digests of a project's own lock."""
    version = ".".join(str(part) for part in sys.version_info[:2])
    resolution = Resolution(folder, version, {})
    for text in wanted:
        need = requirement_of(text, "the recipe")
        if not need.marker or need.marker.evaluate({"extra": ""}):
            resolution.resolve(need)
        print(f"wheels, {len(resolution.fetched)} found", file=sys.stderr, flush=True)
    rows, files, total = [], {}, 0
    for name, (path, version) in sorted(resolution.fetched.items()):
        digest = digest_of(path)
        if digest not in (known.get((name, version)) or {digest}):
            give_up(f"the index has another archive of {name} {version} than the project's lock names")
        files[os.path.basename(path)] = digest
        total += os.path.getsize(path)
        rows.append(f"{name}=={version} --hash=sha256:{digest}")
    return files, lock_text("Wheels, pinned by version and digest", wanted, total, rows)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    folder, wanted, known = sys.argv[2], request["wanted"], {}
    if request.get("project"):
        needs, known = read_project(request["project"]["name"], request["project"]["text"])
        wanted = wanted + [need for need in needs if need not in wanted]
    for need in wanted:
        requirement_of(need, "the recipe")
    rows = read_lock(request["lock"], wanted)
    if rows is not None:
        files, lock = fetch_locked(rows, folder, request, lock_size(request["lock"])), ""
    elif request["offline"]:
        give_up("there is no lock for this list, and without the index it cannot be resolved; build it once without --offline")
    else:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        files, lock = resolve(wanted, known, folder)
    print(json.dumps({"lock": lock, "files": files}))


main()
