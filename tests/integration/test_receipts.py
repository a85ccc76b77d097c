"""Receipts and their log: what they say, that nothing in them can change unseen, that no death of a writer
leaves a gap; checked by the program itself and by libraries that nobody here wrote."""

import base64
import hashlib
import importlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import jsonschema
import pytest
from conftest import BUILD, STATE, TOP, Glovebox
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
from serving import Serving

WRITER = BUILD / "receipt_writer"
REFERENCE = TOP / "docs" / "reference"


@pytest.fixture
def own_state(glovebox):
    """A state folder with a log of its own, and the templates of the suite; where a holder may come to."""
    with tempfile.TemporaryDirectory(prefix="glovebox-state-") as folder:
        state = pathlib.Path(folder)
        state.chmod(0o755)
        os.symlink(STATE / "templates", state / "templates")
        glovebox.state = state
        yield state


@pytest.fixture
def written(glovebox, tmp_path):
    """A small log, without any daemon."""
    folder = tmp_path / "log"
    folder.mkdir()
    subprocess.run([WRITER, folder, "5", "0"], check=True, stdout=subprocess.DEVNULL)
    return folder


def payload_of(envelope):
    return json.loads(base64.b64decode(json.loads(envelope)["payload"]))


def frames(data):
    """Index and place of each record of a segment."""
    at = 0
    while at < len(data):
        assert data[at:at + 4] == b"GBR1"
        size, index = int.from_bytes(data[at + 4:at + 8], "little"), int.from_bytes(data[at + 8:at + 16], "little")
        yield index, at, at + 24 + size
        at += 24 + size


def records(folder):
    for segment in sorted(folder.glob("*.log")):
        data = segment.read_bytes()
        for index, start, end in frames(data):
            yield index, data[start + 24:end]


def receipts(folder):
    """What receipts say; the log has events too, as of streamed runs that begin."""
    return [said for said in (payload_of(record) for _, record in records(folder)) if "predicate" in said]


def verify(glovebox, folder, *more):
    done = glovebox("log", "verify", "--json", "--log", folder, *more)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert report["verified"] == (done.returncode == 0)
    return report


def dsse_library():
    """The folder of a release that knows DSSE: Debian's does not, so it is taken from where pip finds it, into the
    build folder, once; its signatures are checked by Debian's python3-cryptography."""
    folder = BUILD / "securesystemslib"
    if not (folder / "securesystemslib" / "dsse.py").exists():
        done = subprocess.run([sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--retries",
                               "1", "--timeout", "10", "--target", folder, "securesystemslib==0.31.0"],
                              capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            pytest.skip(f"no DSSE library is installed, and pip cannot get one here: {done.stderr.strip()[-200:]}")
    return str(folder)


def mac(key, text):
    return hashlib.blake2b(text.encode(), key=key, digest_size=32).digest()


def commitment(secret, execution, item, content):
    """As docs/receipts.md says it."""
    nonce = mac(secret, execution)
    mask = mac(mac(nonce, item), "commitment")
    return bytes(a ^ b for a, b in zip(mask, hashlib.sha256(content).digest(), strict=True)).hex()


def names(report):
    return " | ".join(f"{problem['what']}: {problem['why']}" for problem in report["problems"])


# --- what a receipt says -------------------------------------------------------------------------------

@pytest.mark.usefixtures("python_template")
class TestContents:
    def test_a_run_leaves_its_receipt(self, glovebox, own_state):
        code = "import sys; print('out'); print('err', file=sys.stderr); open('made.txt', 'w').write('made')"
        receipt = glovebox.folder / "receipt.json"
        result = json.loads(glovebox.run("--json", "--receipt", receipt, "--wall", "9s", "-c", code).stdout)
        payload = payload_of(receipt.read_bytes())
        said = payload["predicate"]
        assert said["id"] == result["receipt"] and said["execution"]["id"] == result["id"]
        secret = (own_state / "daemon" / "opening.key").read_bytes()
        for name, one, content in (("inputs/code", said["inputs"][0], code.encode()),
                                   ("outputs/stdout", said["outputs"]["stdout"], b"out\n"),
                                   ("outputs/stderr", said["outputs"]["stderr"], b"err\n"),
                                   ("artifacts/made.txt", said["artifacts"][0], b"made")):
            assert one["commitment"] == commitment(secret, said["execution"]["id"], name, content), name
            assert hashlib.sha256(content).hexdigest() not in json.dumps(payload), name
        subjects = {one["name"]: one["digest"]["commitment"] for one in payload["subject"]}
        assert subjects == {"code": said["inputs"][0]["commitment"], "artifact/0": said["artifacts"][0]["commitment"],
                            "stdout": said["outputs"]["stdout"]["commitment"],
                            "stderr": said["outputs"]["stderr"]["commitment"]}
        assert said["limits"]["granted"]["wall"] == 9000
        assert said["outcome"] == {"status": "ok", "fault": None, "exit_code": 0, "signal": None}
        assert said["isolation"]["walls"] == result["isolation"]["walls"]
        assert said["isolation"]["seccomp"][0]["digest"] == "sha256:" + hashlib.sha256(
            (BUILD / "seccomp" / "default.bpf").read_bytes()).hexdigest()
        assert said["policy"] == result["policy"] and said["template"] == result["template"]
        assert said["leftovers"]["processes"] in (0, None)
        assert {row["counter"] for row in said["limits"]["evidence"]} <= {
            "cpu_us", "memory_peak_bytes", "memory_kills", "memory_full", "processes_peak", "processes_refused",
            "throttled", "throttled_us"}
        jsonschema.validate(payload, json.loads((REFERENCE / "receipt.schema.json").read_text()))
        jsonschema.validate(json.loads(receipt.read_bytes()),
                            json.loads((REFERENCE / "envelope.schema.json").read_text()))

    def test_the_walls_that_were_tried_are_named(self, glovebox, own_state):
        def run():
            """What its receipt says of the walls."""
            done = glovebox.run("--json", "-c", "print(1)")
            receipt = json.loads(done.stdout)["receipt"]
            said = [payload_of(record) for _, record in records(own_state / "daemon" / "log")]
            return next(one["predicate"] for one in said if one.get("predicate", {}).get("id") == receipt)["isolation"]

        assert run()["self_test"] is None
        done = glovebox("doctor", "--json")
        assert done.returncode in (0, 1), done
        kept = (own_state / "daemon" / "self-test.json").read_bytes()
        assert kept == done.stdout
        tested = run()["self_test"]
        assert tested["sha256"] == hashlib.sha256(kept).hexdigest()
        assert tested["failed"] == sum(check["health"] != "ok" for check in json.loads(kept)["checks"])

    def test_no_secret_is_kept(self, glovebox, own_state):
        planted = {name: f"planted-{name}-{os.urandom(8).hex()}" for name in ("code", "env", "stdin", "file", "output")}
        source = glovebox.folder / "given.txt"
        source.write_text(planted["file"])
        done = glovebox.run("--json", "--stdin", "--file", source, "--env", f"TOKEN={planted['env']}", "-c",
                            f"import os, sys\nx = '{planted['code']}'\nprint('{planted['output'][:9]}' + "
                            f"'{planted['output'][9:]}', sys.stdin.read(), os.environ['TOKEN'])\nraise ValueError(x)",
                            stdin=planted["stdin"].encode())
        assert planted["env"] in json.loads(done.stdout)["stdout"], "the planted values were not used"
        said = [payload_of(record) for _, record in records(own_state / "daemon" / "log")]
        assert said[-1]["predicate"]["environment_names"] == ["TOKEN"]
        looked_at = 0
        for path in (own_state / "daemon").rglob("*"):
            if not path.is_file():
                continue
            data = path.read_bytes()
            for index, record in records(own_state / "daemon" / "log"):
                data += base64.b64decode(json.loads(record)["payload"])
            looked_at += 1
            for name, value in planted.items():
                assert value.encode() not in data, f"{name} stands in {path}"
        assert looked_at >= 5

    def test_the_same_comes_out_again(self, glovebox, own_state):
        script = glovebox.folder / "script.py"
        script.write_text("import sys; print('same', sys.argv[1]); open('x', 'w').write('y')")
        receipt = glovebox.folder / "receipt.json"
        glovebox.run("--receipt", receipt, script, "one")
        again = glovebox("replay", receipt, "--private", "--json", "--code", script, "--", "one")
        assert again.returncode == 0 and json.loads(again.stdout)["same"], again.stdout + again.stderr
        other = glovebox("replay", receipt, "--private", "--code", script, "--", "two")
        assert other.returncode == 125 and b"arguments" in other.stderr
        script.write_text("print('changed')")
        changed = glovebox("replay", receipt, "--private", "--code", script, "--", "one")
        assert changed.returncode == 125 and b"not the 'code'" in changed.stderr

    def test_what_differs_is_named(self, glovebox, own_state):
        receipt = glovebox.folder / "receipt.json"
        script = glovebox.folder / "script.py"
        script.write_text("import os; print(os.urandom(8).hex())")
        glovebox.run("--receipt", receipt, script)
        again = glovebox("replay", receipt, "--private", "--json", "--code", script)
        assert again.returncode == 1
        assert [row["what"] for row in json.loads(again.stdout)["differences"]][:1] == ["stdout"]

    def test_a_daemon_that_is_killed_leaves_a_lost_receipt(self, glovebox, own_state):
        with glovebox.start("run", "--private", "-c", "import time; time.sleep(30)", stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL) as running:
            opened = own_state / "daemon" / "log" / "open"
            end = time.monotonic() + 20
            while not any(path.read_bytes().strip(b"\0") for path in (opened.glob("*") if opened.exists() else [])):
                assert time.monotonic() < end, "nothing was noted"
                time.sleep(0.01)
            for child in pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split():
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "gloveboxd":
                    os.kill(int(child), signal.SIGKILL)
            running.wait(timeout=30)
        result = glovebox.result("-c", "print(1)")
        said = [one["predicate"] for one in receipts(own_state / "daemon" / "log")]
        assert [one["outcome"]["status"] for one in said] == ["lost", "ok"]
        assert said[0]["opened"]["inputs"][0]["name"] == "code" and said[1]["id"] == result["receipt"]
        for one in receipts(own_state / "daemon" / "log"):
            jsonschema.validate(one, json.loads((REFERENCE / "receipt.schema.json").read_text()))
        assert verify(glovebox, own_state / "daemon" / "log", "--signatures")["verified"]
        assert not list(opened.glob("*"))

    def test_several_daemons_at_once_write_one_log(self, glovebox, own_state):
        calls = [glovebox.start("run", "--private", "--json", "-c", f"print({i})", stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL) for i in range(6)]
        ids = {json.loads(call.communicate(timeout=60)[0])["receipt"] for call in calls}
        report = verify(glovebox, own_state / "daemon" / "log", "--signatures")
        assert len(ids) == 6 and report["size"] == report["covered"] >= 6 and report["verified"]
        assert {one["predicate"]["id"] for one in receipts(own_state / "daemon" / "log")} == ids


# --- nothing changes unseen ----------------------------------------------------------------------------

class TestFlips:
    def test_a_second_implementation_agrees(self, glovebox, written):
        pem = glovebox("log", "key", "--pem", "--log", written).stdout
        key = load_pem_public_key(pem)
        for _, record in records(written):
            envelope = json.loads(record)
            body, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"].encode()
            form = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)
            key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), form)
            with pytest.raises(InvalidSignature):
                key.verify(base64.b64decode(envelope["signatures"][0]["sig"]), form + b" ")
        note = (written / "checkpoint").read_text()
        text, signature = note.split("\n\n")
        key.verify(base64.b64decode(signature.split(" ")[2])[4:], (text + "\n").encode())

    def test_a_dsse_library_agrees(self, glovebox, written, monkeypatch):
        """securesystemslib, which in-toto and TUF stand on; 0.31 knows DSSE and goes with Debian's cryptography."""
        monkeypatch.syspath_prepend(dsse_library())
        library = importlib.import_module("securesystemslib.dsse")
        signer = importlib.import_module("securesystemslib.signer")
        pem = glovebox("log", "key", "--pem", "--log", written).stdout
        public = load_pem_public_key(pem).public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        for _, record in records(written):
            as_json = json.loads(record)
            key = signer.SSlibKey.from_dict(as_json["signatures"][0]["keyid"], {
                "keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": public}})
            envelope = library.Envelope.from_dict(as_json)
            assert envelope.verify([key], 1)
            envelope.payload += b" "
            with pytest.raises(Exception, match="threshold"):
                envelope.verify([key], 1)

    def test_the_tree_is_that_of_the_rfc(self, written):
        def root(leaves):
            if len(leaves) == 1:
                return hashlib.sha256(b"\0" + leaves[0]).digest()
            half = 1 << ((len(leaves) - 1).bit_length() - 1)
            return hashlib.sha256(b"\1" + root(leaves[:half]) + root(leaves[half:])).digest()
        _, size, signed = (written / "checkpoint").read_text().split("\n")[:3]
        leaves = [record for _, record in records(written)]
        assert int(size) == len(leaves) == 5 and base64.b64decode(signed) == root(leaves)

    def test_every_byte_of_the_log_counts(self, glovebox, written):
        """Bytes of each file, one after another; the record is named. (Each and every one: ledger_test.c.)"""
        kept = glovebox.folder / "kept.pub"
        shutil.copy(written / "key.pub", kept)
        dice = random.Random(7)
        for name in ("00000000000000000000.log", "checkpoint", "tree"):
            path = written / name
            good = path.read_bytes()
            owner = {}
            if name.endswith(".log"):
                owner = {at: index for index, start, end in frames(good) for at in range(start, end)}
            places = range(0, len(good), 5) if not owner else sorted(
                {at for index, start, end in list(frames(good))[2:4] for at in range(start, start + 24)} |
                set(dice.sample(range(len(good)), 60)) | {len(good) - 1})
            with open(path, "r+b", buffering=0) as file:
                for at in places:
                    os.pwrite(file.fileno(), bytes([good[at] ^ (1 << dice.randrange(8))]), at)
                    report = verify(glovebox, written, "--key", kept)
                    assert not report["verified"], f"byte {at} of {name} may change"
                    wanted = f"record {owner[at]}" if owner else name
                    assert wanted in names(report), f"byte {at}: {wanted} is not named: {names(report)}"
                    os.pwrite(file.fileno(), good[at:at + 1], at)
        assert verify(glovebox, written, "--key", kept, "--signatures")["verified"]

    def test_every_byte_of_a_receipt_counts(self, glovebox, written):
        kept = glovebox.folder / "kept.pub"
        shutil.copy(written / "key.pub", kept)
        receipt = glovebox.folder / "receipt.json"
        _, good = next(iter(records(written)))
        dice = random.Random(8)
        for at in [0, 1, len(good) - 1, *dice.sample(range(len(good)), 100)]:
            receipt.write_bytes(good[:at] + bytes([good[at] ^ (1 << dice.randrange(8))]) + good[at + 1:])
            done = glovebox("receipt", "verify", receipt, "--public-key", kept)
            assert done.returncode == 1 and b"DOES NOT VERIFY" in done.stdout, f"byte {at} may change"
        receipt.write_bytes(good)
        assert glovebox("receipt", "verify", receipt, "--key", kept).returncode == 0

    def test_every_byte_of_a_proof_counts(self, glovebox, written):
        kept = glovebox.folder / "kept.pub"
        shutil.copy(written / "key.pub", kept)
        receipt = payload_of(list(records(written))[3][1])["predicate"]["id"]
        bundle = glovebox.folder / "bundle.json"
        assert glovebox("receipt", "export", receipt, "--log", written, "--bundle", "--out", bundle).returncode == 0
        done = glovebox("receipt", "verify", bundle, "--key", kept)
        assert done.returncode == 0 and b"record 3 of 5" in done.stdout
        good = bundle.read_bytes()
        dice = random.Random(9)
        end = good.index(b'"envelope"')
        for at in [*range(0, end, 7), *range(good.index(b'"inclusion"'), len(good), 9)]:
            bundle.write_bytes(good[:at] + bytes([good[at] ^ (1 << dice.randrange(5))]) + good[at + 1:])
            done = glovebox("receipt", "verify", bundle, "--key", kept)
            assert done.returncode == 1, f"byte {at} of the proof may change: {good[at - 5:at + 5]}"

    @pytest.mark.parametrize("what, named", [
        ("delete a record", "record 2"), ("delete the last", "record 4"), ("swap two", "record 1"),
        ("truncate", "record 4"), ("delete the segment", "records 0 to 4"), ("delete the checkpoint", "checkpoint"),
        ("delete, and count anew", "record 2"), ("a record twice", "record 5"), ("delete the tree", "tree"),
    ])
    def test_what_is_removed_or_moved_is_named(self, glovebox, written, what, named):
        path = written / "00000000000000000000.log"
        data = path.read_bytes()
        parts = [data[start:end] for _, start, end in frames(data)]
        def at(index, part):
            return part[:8] + index.to_bytes(8, "little") + part[16:]
        if what == "delete a record":
            path.write_bytes(b"".join(parts[:2] + parts[3:]))
        elif what == "delete the last":
            path.write_bytes(b"".join(parts[:4]))
        elif what == "swap two":
            path.write_bytes(b"".join([parts[0], at(1, parts[2]), at(2, parts[1]), *parts[3:]]))
        elif what == "truncate":
            path.write_bytes(data[:-3])
        elif what == "delete the segment":
            path.unlink()
        elif what == "delete the checkpoint":
            (written / "checkpoint").unlink()
        elif what == "delete, and count anew":
            path.write_bytes(b"".join(parts[:2] + [at(2, parts[3]), at(3, parts[4])]))
        elif what == "a record twice":
            path.write_bytes(data + at(5, parts[4]))
        elif what == "delete the tree":
            (written / "tree").unlink()
        report = verify(glovebox, written)
        assert not report["verified"] and named in names(report), names(report)

    def test_an_older_copy_of_the_log_is_detected_by_a_kept_checkpoint(self, glovebox, written, tmp_path):
        older = tmp_path / "older"
        shutil.copytree(written, older)
        subprocess.run([WRITER, written, "3", "0"], check=True, stdout=subprocess.DEVNULL)
        kept = written / "checkpoint"
        assert verify(glovebox, older)["verified"], "by itself an older log is a good one"
        report = verify(glovebox, older, "--checkpoint", kept)
        assert not report["verified"] and "records 5 to 7" in names(report)
        assert verify(glovebox, written, "--checkpoint", older / "checkpoint")["verified"]

    def test_another_key_is_no_good(self, glovebox, written, tmp_path):
        other = tmp_path / "other"
        other.mkdir()
        subprocess.run([WRITER, other, "5", "0"], check=True, stdout=subprocess.DEVNULL)
        report = verify(glovebox, written, "--key", other / "key.pub")
        assert not report["verified"] and "checkpoint" in names(report) and "record 0" in names(report)

    def test_a_copy_verifies_by_itself(self, glovebox, written, tmp_path):
        copy = tmp_path / "copy"
        assert glovebox("log", "export", "--log", written, "--out", copy).returncode == 0
        assert verify(glovebox, copy)["size"] == 5
        assert not (copy / "key").exists(), "the secret key was exported"
        assert glovebox("log", "search", "--log", copy, "kind:run", "status:ok").stdout.count(b"\n") == 5
        assert glovebox("log", "tail", "-n", "2", "--log", copy).stdout.count(b"\n") == 2


# --- the command line ----------------------------------------------------------------------------------

SEE_LIST = b"; see glovebox receipt list, or name another log: --log FOLDER\n"


class TestWords:
    def test_a_log_that_is_named_is_compared(self, glovebox, written, tmp_path):
        (tmp_path / "one").write_bytes(dict(records(written))[2])
        words = ["receipt", "verify", tmp_path / "one", "--public-key", written / "key.pub", "--log"]
        whole = glovebox(*words, written).stdout.decode()
        assert whole.startswith("VERIFIED") and "it stands in the log, as record 2 of 5 under" in whole, whole
        for folder, says in (("gone", "there is no log at 'gone'"), (tmp_path, "is no log: open its file key.pub")):
            done = glovebox(*words, folder)
            assert (done.returncode, done.stdout) == (125, b"") and says in done.stderr.decode(), done

    def test_what_cannot_be_read_is_not_a_receipt_that_does_not_verify(self, glovebox, written, tmp_path):
        (tmp_path / "none").write_text("{}")
        cases = {"gone.json": (125, b"cannot read 'gone.json': No such file or directory; check the name"),
                 str(tmp_path): (125, b"is a folder; give a file"), "rcp_" + 32 * "0": (125, SEE_LIST), "rcp_" + 32 * "f": (125, SEE_LIST),
                 str(tmp_path / "none"): (1, b"")}
        for name, (status, says) in cases.items():
            done = glovebox("receipt", "verify", name, "--log", written)
            assert done.returncode == status and says in done.stderr, done
            assert (b"DOES NOT VERIFY" in done.stdout) == (status == 1), done

    def test_out_writes_a_file_and_nothing_else(self, glovebox, written, tmp_path):
        for words in (("key",), ("key", "--pem"), ("checkpoint",)):
            plain = glovebox("log", *words, "--log", written).stdout
            done = glovebox("log", *words, "--log", written, "--out", tmp_path / "out")
            assert (done.returncode, done.stdout) == (0, b"") and (tmp_path / "out").read_bytes() == plain != b"", words
        refused = glovebox("log", "key", "--log", written, "--out", tmp_path / "no" / "out")
        assert refused.returncode == 125 and b"No such file or directory" in refused.stderr

    @pytest.mark.parametrize("words, says", [
        (("log", "tail", "--signatures"), "log tail takes no --signatures; leave it out, or see glovebox log --help"),
        (("log", "search", "--out", "f", "x"), "log search takes no --out; leave it out, or see glovebox log --help"),
        (("log", "verify", "x"), "log verify takes no 'x'; see glovebox help log"),
        (("log", "tail", "--count", "1x"), "--count takes a whole number such as 20, not '1x'"),
        (("log", "verfy"), "there is no 'log verfy'; did you mean glovebox log verify"),
        (("log", "rotate-key"), "log rotate-key takes no --log: it changes the log of a state, and no copy; "
                                "say which: --state FOLDER"),
        (("receipt", "frob"), "there is no 'receipt frob'; it is list, show, verify or export"),
        (("receipt", "show"), "which receipt? give its id, or a file"),
        (("receipt", "show", "--pem", "x"), "there is no option --pem; see glovebox receipt --help"),
        (("receipt", "list", "x"), "receipt list takes no 'x'; see glovebox help receipt")])
    def test_slips_are_answered_in_one_line(self, glovebox, written, words, says):
        done = glovebox(*words[:2], *(("--log", written) if len(words) > 1 else ()), *words[2:])
        assert done.returncode == 125 and done.stdout == b"" and done.stderr.decode() == f"glovebox: {says}\n"

    def test_a_proof_waits_for_its_checkpoint(self, glovebox, written, tmp_path):
        """A daemon signs a checkpoint for many records at once, a moment after they are written."""
        older = (written / "checkpoint").read_bytes()
        subprocess.run([WRITER, written, "3", "0"], check=True, stdout=subprocess.DEVNULL)
        newer = (written / "checkpoint").read_bytes()
        (written / "checkpoint").write_bytes(older)
        receipt = payload_of(list(records(written))[7][1])["predicate"]["id"]
        bundle = tmp_path / "bundle.json"
        export = glovebox.start("receipt", "export", receipt, "--log", written, "--bundle", "--out", bundle)
        (tmp_path / "new").write_bytes(newer)
        os.rename(tmp_path / "new", written / "checkpoint")
        assert export.wait(30) == 0
        assert b"record 7 of 8" in glovebox("receipt", "verify", bundle, "--key", written / "key.pub").stdout


# --- a writer that dies --------------------------------------------------------------------------------

def test_a_thousand_kills_leave_no_gap_and_no_double(glovebox, tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    dice = random.Random(11)
    noted, answered = [], {}
    said = tmp_path / "said"
    for number in range(1000):
        with open(said, "wb") as out:
            writer = subprocess.Popen([WRITER, folder, "100000", "7"], stdout=out, stderr=subprocess.PIPE)
            time.sleep(dice.random() * 0.012)
            writer.kill()
            complaint = writer.communicate()[1]
        assert complaint == b"", f"start {number}: {complaint}"
        for line in said.read_text().split("\n")[:-1]:
            word, run, index = line.split(" ")
            if word == "noted":
                noted.append(run)
            elif word == "answered":
                answered[run] = int(index)
    subprocess.run([WRITER, folder, "1", "0"], check=True, stdout=subprocess.DEVNULL)
    report = verify(glovebox, folder)
    assert report["verified"], names(report)
    told = {}
    for position, (index, record) in enumerate(records(folder)):
        assert index == position, "a gap"
        predicate = payload_of(record)["predicate"]
        run = predicate.get("execution", predicate.get("opened", {}).get("execution"))["id"]
        assert run not in told, f"{run} has two records"
        told[run] = (index, predicate["outcome"]["status"])
    assert len(answered) > 200, "the writer was killed too early to have written anything"
    for run, index in answered.items():
        assert told[run] == (index, "ok"), f"{run} was answered as {index}, and is {told.get(run)}"
    assert set(noted) <= set(told), "what had begun is not told"
    assert any(status == "lost" for _, status in told.values())


# --- a disk that is full -------------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path):
    """6 MiB that can be made larger."""
    if os.geteuid() != 0:
        pytest.skip("only root makes a file system")
    with tempfile.TemporaryDirectory(prefix="glovebox-disk-") as folder:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=755", "tmpfs", folder], check=True)
        yield pathlib.Path(folder)
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_harms_nothing_that_was_written(glovebox, small_disk):
    folder = small_disk / "log"
    folder.mkdir()
    done = subprocess.run([WRITER, folder, "100000", "50"], capture_output=True, check=False)
    assert done.returncode == 1 and b"No space left" in done.stderr
    answered = [line for line in done.stdout.split(b"\n") if line.startswith(b"answered")]
    report = verify(glovebox, folder)
    assert report["verified"] and report["size"] == len(answered) > 500, names(report)
    subprocess.run(["mount", "-o", "remount,size=12m", small_disk], check=True)
    subprocess.run([WRITER, folder, "10", "1"], check=True, stdout=subprocess.DEVNULL)
    report = verify(glovebox, folder)
    assert report["verified"] and report["size"] in (len(answered) + 10, len(answered) + 11), names(report)


@pytest.mark.usefixtures("python_template")
def test_nothing_new_is_run_when_the_disk_is_full(glovebox, small_disk):
    os.symlink(STATE / "templates", small_disk / "templates")
    glovebox.state = small_disk
    assert glovebox.run("-c", "print(1)").stdout == b"1\n"
    (small_disk / "daemon" / "log" / "reserve").unlink()
    filler = small_disk / "filler"
    filler.write_bytes(bytes(4 << 20))
    refused = glovebox.run("-c", "print(2)")
    assert refused.returncode == 125 and b"the disk of the log of receipts is full" in refused.stderr
    filler.unlink()
    assert glovebox.run("-c", "print(3)").stdout == b"3\n"
    assert verify(glovebox, small_disk / "daemon" / "log")["verified"]
    assert len(receipts(small_disk / "daemon" / "log")) == 2


@pytest.fixture
def rotated(glovebox, own_state, tmp_path):
    """A log with two changes of its key, the first while a service writes it: keys, a receipt of each, a kept checkpoint."""
    log = own_state / "daemon" / "log"
    keys, receipts = [], []

    def note(server):
        answer = server.run("print(1)").json
        receipts.append(tmp_path / f"receipt{len(receipts)}.json")
        receipts[-1].write_bytes(server.call("GET", f"/v1/receipts/{answer['receipt']}").body)
        keys.append(tmp_path / f"key{len(keys)}.pub")
        keys[-1].write_bytes(glovebox("log", "key").stdout)

    with Serving(glovebox, tcp=False) as server:
        note(server)
        (tmp_path / "kept.txt").write_bytes(glovebox("log", "checkpoint").stdout)
        shutil.copy2(log / "key", tmp_path / "first.key")
        for _ in range(2):
            done = glovebox("log", "rotate-key")
            assert done.returncode == 0, done.stderr
            note(server)
        assert json.loads(server.call("GET", "/v1/log/key").body)["keyid"] in receipts[2].read_text()
    return log, keys, receipts


def test_a_log_verifies_across_changes_of_its_key(glovebox, rotated, tmp_path):
    """With the first key or with any, offline; each receipt names the key that signed it."""
    log, keys, receipts = rotated
    assert len({key.read_text() for key in keys}) == 3
    names = [json.loads(receipt.read_text())["signatures"][0]["keyid"] for receipt in receipts]
    assert names == [hashlib.sha256(base64.b64decode(key.read_text().split("+", 2)[2])[1:]).hexdigest() for key in keys]
    copy = tmp_path / "copy"
    assert glovebox("log", "export", "--out", str(copy)).returncode == 0
    assert b"is there already; --out makes a new folder" in glovebox("log", "export", "--out", str(copy)).stderr
    for folder in (log, copy):
        for options in ([], *(["--key", str(key)] for key in keys)):
            done = glovebox("log", "verify", "--log", str(folder), "--signatures", "--checkpoint", str(tmp_path / "kept.txt"),
                            *options)
            assert done.returncode == 0 and b"VERIFIED" in done.stdout, (options, done.stdout)
    for number, receipt in enumerate(receipts):
        for given, key in enumerate(keys):
            done = glovebox("receipt", "verify", str(receipt), "--key", str(key))
            assert (done.returncode == 0) == (given <= number), "a key leads to those after it, never back"
    assert b"an earlier one of this log" in glovebox("receipt", "verify", str(receipts[2]), "--key", str(keys[0])).stdout
    event = json.loads(glovebox("log", "search", "--json", "event:log.key_rotated").stdout.splitlines()[0])
    jsonschema.validate(event, json.loads((REFERENCE / "event.schema.json").read_text()))
    assert event["facts"] == {"old_key": keys[0].read_text().strip(), "new_key": keys[1].read_text().strip()}


def test_rotating_the_key_takes_no_log_option(glovebox, own_state, rotated, tmp_path):
    """--log names a folder to be read; the change is of a state's log, and says of which, and what it was."""
    log, keys, _ = rotated
    copy = tmp_path / "copy"
    shutil.copytree(log, copy)

    def files():
        return {file: file.read_bytes() for folder in (log, copy) for file in folder.iterdir() if file.is_file()}

    before = files()
    done = glovebox("log", "rotate-key", "--log", str(copy))
    assert done.returncode == 125 and done.stdout == b"" and b"takes no --log" in done.stderr and b"--state" in done.stderr
    assert files() == before
    done = glovebox("log", "rotate-key")
    fresh = glovebox("log", "key").stdout.decode()
    old, new = ("key " + hashlib.sha256(base64.b64decode(key.split("+", 2)[2])[1:]).hexdigest()[:16]
                for key in (keys[2].read_text(), fresh))
    said = done.stdout.decode()
    assert done.returncode == 0 and f"'{own_state}/daemon/log'" in said and f"{old} → {new}" in said


def signed(seed, receipt, index=None, word=None):
    """A receipt with another index and another word in it, signed with a stolen seed."""
    envelope = json.loads(receipt)
    payload = base64.b64decode(envelope["payload"]).decode()
    place = json.loads(payload)["predicate"]["log"]["index"]
    if index is not None:
        payload = payload.replace(f'"log":{{"index":{place},', f'"log":{{"index":{index},')
    if word:
        payload = payload.replace(*word)
    kind = envelope["payloadType"]
    said = f"DSSEv1 {len(kind)} {kind} {len(payload.encode())} {payload}".encode()
    key = Ed25519PrivateKey.from_private_bytes(seed)
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    envelope["payload"] = base64.b64encode(payload.encode()).decode()
    envelope["signatures"] = [{"keyid": hashlib.sha256(raw).hexdigest(), "sig": base64.b64encode(key.sign(said)).decode()}]
    return json.dumps(envelope, separators=(",", ":"))


def signed_checkpoint(seed, public, size, root):
    name, note, _ = public.split("+", 2)
    body = f"{name}\n{size}\n{base64.b64encode(root).decode()}\n"
    signature = Ed25519PrivateKey.from_private_bytes(seed).sign(body.encode())
    return f"{body}\n\u2014 {name} {base64.b64encode(bytes.fromhex(note) + signature).decode()}\n"


def changes(log):
    """Where each key ended."""
    return [payload_of(line)["log"]["index"] for line in (log / "key.chain").read_bytes().splitlines()]


def test_a_retired_key_signs_nothing_that_comes_later(glovebox, rotated, tmp_path):
    """A stolen retired key still signs, but its signature is rejected at an index of a later key."""
    log, keys, receipts = rotated
    seed, end = bytes.fromhex((tmp_path / "first.key").read_text()), changes(log)[0]
    receipt = receipts[0].read_text().strip()
    assert signed(seed, receipt) == receipt, "this is how it is done"
    forged = tmp_path / "forged.json"
    for index in (end + 1, end + 2, 10**9):
        forged.write_text(signed(seed, receipt, index))
        for options in ([], ["--key", str(keys[0])]):
            done = glovebox("receipt", "verify", str(forged), *options)
            assert done.returncode == 1 and f"was retired with record {end}".encode() in done.stdout, done.stdout
    forged.write_text(signed(bytes.fromhex((log / "key").read_text()), receipt, end))
    done = glovebox("receipt", "verify", str(forged))
    assert done.returncode == 1 and b"came into force after record" in done.stdout, done.stdout
    # The change itself is the last of the old key's, and verifies as that.
    event = tmp_path / "event.json"
    event.write_bytes((log / "key.chain").read_bytes().splitlines()[0])
    for options in ([], ["--key", str(keys[0])]):
        done = glovebox("receipt", "verify", str(event), *options)
        assert done.returncode == 0 and b"not proved: that it was signed before" not in done.stdout, done.stdout


def test_a_place_of_its_time_is_looked_up(glovebox, rotated, tmp_path):
    """A stolen key that was retired can name a place of before: the log knows what stands there, or a bundle does."""
    log, keys, receipts = rotated
    seed = bytes.fromhex((tmp_path / "first.key").read_text())
    receipt = receipts[0].read_text().strip()
    copy, chain_alone, forged, bundle = (tmp_path / name for name in ("copy", "chain", "forged.json", "bundle.json"))
    shutil.copytree(log, copy)
    chain_alone.mkdir()
    for name in ("key.chain", "key.pub"):
        shutil.copy2(log / name, chain_alone)
    forged.write_text(signed(seed, receipt, word=('"tenant":null', '"tenant":"it"')))
    assert forged.read_text() != receipt

    def told(file, *options):
        done = glovebox("receipt", "verify", str(file), *options)
        report = json.loads(glovebox("receipt", "verify", "--json", str(file), *options).stdout)
        assert report["verified"] == (done.returncode == 0), done
        return done.returncode, done.stdout.decode(), report.get("retired_key_alone")

    alone = "not proved: that it was signed before that"
    for options in ([], ["--log", str(copy)], ["--key", str(keys[0])]):
        code, words, is_alone = told(receipts[0], *options)
        assert code == 0 and alone not in words and is_alone is False and "it stands in the log" in words
        assert f"retired with record {changes(log)[0]}" in words and "the key that you gave" not in words
        code, words, _ = told(forged, *options)
        assert code == 1 and "of the log is another one" in words, words
        for later in receipts[2:]:
            code, words, is_alone = told(later, *options)
            assert code == 0 and "retired" not in words and is_alone is False
            assert ("the key that you gave" in words) == ("--key" in options)
    for file in (receipts[0], forged):
        code, words, is_alone = told(file, "--log", str(chain_alone))
        assert code == 0 and alone in words and "--bundle" in words and is_alone is True
    assert glovebox("receipt", "export", str(receipts[0]), "--bundle", "--out", str(bundle)).returncode == 0
    code, words, is_alone = told(bundle, "--log", str(chain_alone))
    assert code == 0 and alone not in words and is_alone is False
    # A checkpoint can be forged by that key as well: behind its end it is refused, before it proves nothing.
    own = signed(seed, receipt, 1, ('"tenant":null', '"tenant":"it"'))
    leaf = hashlib.sha256(b"\0" + own.encode()).digest()
    root = hashlib.sha256(b"\1" + bytes(32) + leaf).digest()

    def bundle_of(size):
        head = json.dumps(signed_checkpoint(seed, keys[0].read_text().strip(), size, root))
        bundle.write_text(f'{{"checkpoint":{head},"envelope":{own},"inclusion":["{"0" * 64}"],"index":1}}')

    bundle_of(2)
    code, words, is_alone = told(bundle, "--log", str(chain_alone))
    assert code == 0 and alone in words and is_alone is True, words
    assert told(bundle)[0] == 1, "the log knows better"
    for size in (changes(log)[0] + 2, 10**9):
        bundle_of(size)
        code, words, _ = told(bundle, "--log", str(chain_alone))
        assert code == 1 and "checkpoint" in words and "another key" in words, words


def test_a_change_of_key_cannot_be_forged(glovebox, rotated, tmp_path, written):
    log, keys, _ = rotated
    chain = (log / "key.chain").read_bytes()
    lines = chain.splitlines(keepends=True)
    assert len(lines) == 2
    middle = len(lines[0]) // 2
    other = (lines[0][:middle] + (b"A" if lines[0][middle:middle + 1] != b"A" else b"B") + lines[0][middle + 1:])
    for name, said in (("none", None), ("cut", lines[0]), ("turned", lines[1] + lines[0]), ("twice", chain + lines[1]),
                       ("flipped", other + lines[1]), ("second", lines[1])):
        copy = tmp_path / name
        shutil.copytree(log, copy)
        (copy / "key.chain").unlink()
        if said is not None:
            (copy / "key.chain").write_bytes(said)
        done = glovebox("log", "verify", "--log", str(copy), "--key", str(keys[0]))
        assert done.returncode == 1 and b"WRONG" in done.stdout, (name, done.stdout)
    # A stranger's log does not become ours by naming our key, nor ours a stranger's.
    stranger = tmp_path / "stranger.pub"
    stranger.write_bytes((written / "key.pub").read_bytes())
    refused = glovebox("log", "verify", "--log", str(log), "--key", str(stranger))
    assert refused.returncode == 1
    # One cause is reported once, with the number of wrong records and what to do; each record on demand.
    said = refused.stdout.decode()
    counted = re.search(r"^WRONG  record 0 to record (\d+), (\d+) in all: was changed, or signed by another key$", said, re.M)
    assert counted and int(counted[2]) == int(counted[1]) + 1 > 2 and len(said.splitlines()) < 8, said
    assert re.search(r"^DOES NOT VERIFY: \d+ things are wrong; one by one: --all$", said, re.M) and "\nnext: no record here is signed by" in said
    each = glovebox("log", "verify", "--all", "--log", str(log), "--key", str(stranger)).stdout.decode()
    assert each.count("was changed, or signed by another key") >= int(counted[2]) and "--all" not in each
    shutil.copy(log / "key.chain", written / "key.chain")
    for key in (*keys, stranger):
        assert glovebox("log", "verify", "--log", str(written), "--key", str(key)).returncode == 1, key


def test_a_kill_during_key_rotation_leaves_one_key(glovebox, own_state, rotated, tmp_path):
    """Before the log tells of it the old key stays; after it the next writer puts the new one in its place."""
    log, keys, _ = rotated
    owner = (log / "key").stat()

    def put(source, name):
        shutil.copy2(source, log / name)
        os.chown(log / name, owner.st_uid, owner.st_gid)

    put(tmp_path / "first.key", "key.next")  # a key that the log never told of
    assert glovebox("key", "create").returncode == 0
    assert not (log / "key.next").exists() and glovebox("log", "key").stdout == keys[2].read_bytes()
    shutil.copy2(log / "key", tmp_path / "third.key")
    assert glovebox("log", "rotate-key").returncode == 0
    fresh = glovebox("log", "key").stdout
    lines = (log / "key.chain").read_bytes().splitlines(keepends=True)
    (log / "key").rename(log / "key.next")  # the record was written, and nothing after it
    put(tmp_path / "third.key", "key")
    (log / "key.chain").write_bytes(b"".join(lines[:2]))
    (log / "checkpoint").unlink()
    assert glovebox("key", "create").returncode == 0
    assert not (log / "key.next").exists() and glovebox("log", "key").stdout == fresh
    assert (log / "key.chain").read_bytes().splitlines(keepends=True) == lines
    done = glovebox("log", "verify", "--key", str(keys[0]), "--signatures")
    assert done.returncode == 0, done.stdout
