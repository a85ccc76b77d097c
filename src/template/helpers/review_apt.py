# review_apt.py - examines a Debian package before it is installed: review_apt.py MANIFEST FOLDER NAME VERSION. Runs on the
# host with its own apt sources. It fetches the archive, which apt checks against the signed index, and reads it.

import subprocess
import tarfile

SCRIPTS = ("preinst", "postinst", "prerm", "postrm", "config", "triggers")


def run(*words, cwd=None):
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, check=False,
                          cwd=cwd, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.startswith("E: ")] or ["ended without a word"]
        give_up(f"{words[0]}: {plain(said[0].removeprefix('E: '))}; as root: apt update")
    return done.stdout


def names_of(needs):
    return [re.split(r"[ (:|]", need.strip())[0] for need in needs.split(",") if need.strip()]


def main():
    manifest_path, folder, name, version = sys.argv[1:5]
    with open(manifest_path, encoding="utf-8") as file:
        inside = {one["name"]: one["version"] for one in json.load(file)["packages"]}
    wanted = f"{name}={version}" if version else name
    text = run("apt-cache", "show", "--no-all-versions", wanted).partition("\n\n")[0]
    fields = dict(re.findall(r"^([A-Za-z0-9-]+): (.*)$", text, re.MULTILINE))
    run("apt-get", "download", f"{fields['Package']}={fields['Version']}", cwd=folder)
    archives = [entry for entry in os.listdir(folder) if entry.endswith(".deb")]
    archive = f"{name}.deb"
    path = os.path.join(folder, archive)
    os.rename(os.path.join(folder, archives[0]), path)
    with subprocess.Popen(["dpkg-deb", "--ctrl-tarfile", path], stdout=subprocess.PIPE) as control, \
            tarfile.open(fileobj=control.stdout, mode="r|") as members:
        brought = {member.name.removeprefix("./") for member in members}  # names only: nothing is unpacked here
    sources = run("apt-get", "download", "--print-uris", f"{fields['Package']}={fields['Version']}", cwd=folder)
    source = re.match(r"'(\w+://)(?:[^/@']*@)?([^/']+)", sources)
    needs = fields.get("Pre-Depends", "") + "," + fields.get("Depends", "")
    print(json.dumps({
        "source": "".join(source.groups()) if source else "the sources in /etc/apt", "for": "Debian",
        "replaces": inside.get(name, ""),
        "files": [{
            "name": plain(fields["Package"]), "version": plain(fields["Version"]), "file": archive, "bytes": os.path.getsize(path),
            "unpacked": int(fields.get("Installed-Size", "0")) << 10,
            "sha256": digest_of(path), "licence": "", "maintainer": plain(fields.get("Maintainer")),
            "about": plain(fields.get("Description") or fields.get("Description-en")),
            "needs": [plain(need) for need in names_of(needs) if need not in inside][:50], "commands": [],
            "machine_code": fields.get("Architecture") != "all",
            "runs_at_install": [one for one in SCRIPTS if one in brought], "runs_at_start": [],
        }]}))


main()
