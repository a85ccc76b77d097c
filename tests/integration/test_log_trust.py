"""Trust in receipts and their log: a forged receipt is not replayed, signatures of other keys are ignored, and a log
that was replaced by an older copy is refused if a witness has seen more."""

import base64
import json
import os
import shutil
import subprocess

import pytest
from conftest import BUILD
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from serving import Serving, state_of_its_own

WRITER = BUILD / "receipt_writer"

pytestmark = pytest.mark.usefixtures("python_template")


@pytest.fixture
def written(tmp_path):
    """A small log, without any daemon."""
    folder = tmp_path / "log"
    folder.mkdir()
    subprocess.run([WRITER, folder, "5", "0"], check=True, stdout=subprocess.DEVNULL)
    return folder


def verify(glovebox, folder, *more):
    done = glovebox("log", "verify", "--json", "--log", folder, *more)
    report = json.loads(done.stdout)
    assert report["verified"] == (done.returncode == 0), done
    return report


def forged(receipt):
    """The same receipt with another word in it, its signature as it was."""
    envelope = json.loads(receipt)
    payload = base64.b64decode(envelope["payload"]).decode()
    changed = payload.replace('"tenant":null', '"tenant":"it"')
    assert changed != payload
    envelope["payload"] = base64.b64encode(changed.encode()).decode()
    return json.dumps(envelope, separators=(",", ":"))


# --- replay --------------------------------------------------------------------------------------------

class TestReplay:
    @pytest.fixture
    def ran(self, glovebox):
        """A log of its own, a script, and the receipt of its run."""
        state_of_its_own(glovebox)
        script, receipt = glovebox.folder / "script.py", glovebox.folder / "receipt.json"
        script.write_text("print('the same')")
        assert glovebox.run("--receipt", receipt, script).returncode == 0
        return script, receipt

    def test_a_forged_receipt_is_refused(self, glovebox, ran):
        script, receipt = ran
        other = glovebox.folder / "forged.json"
        other.write_text(forged(receipt.read_text().strip()))
        done = glovebox("replay", other, "--private", "--code", script)
        assert done.returncode == 1 and b"DOES NOT VERIFY" in done.stdout and b"signature" in done.stdout, done
        done = glovebox("replay", other, "--private", "--json", "--code", script)
        said = json.loads(done.stdout)
        assert done.returncode == 1 and said["verified"] is False and "signature" in said["why"], done

    def test_a_good_one_says_which_key_counted(self, glovebox, ran, written):
        script, receipt = ran
        kept = glovebox.folder / "kept.pub"
        kept.write_bytes(glovebox("log", "key").stdout)
        done = glovebox("replay", receipt, "--private", "--code", script)
        assert done.returncode == 0 and b"THE SAME" in done.stdout and b"not proved: who signed" in done.stdout, done
        done = glovebox("replay", receipt, "--private", "--key", kept, "--code", script)
        assert done.returncode == 0 and b"THE SAME" in done.stdout and b"not proved" not in done.stdout, done
        said = json.loads(glovebox("replay", receipt, "--private", "--json", "--key", kept, "--code", script).stdout)
        assert said["verified"] and said["same"] and said["key_from_the_log"] is False
        done = glovebox("replay", receipt, "--private", "--key", written / "key.pub", "--code", script)
        assert done.returncode == 1 and b"DOES NOT VERIFY" in done.stdout, done

    def test_it_has_to_stand_in_the_log_that_is_given(self, glovebox, ran):
        """Signed by the right key, but another record stands at its place."""
        script, receipt = ran
        log = glovebox.state / "daemon" / "log"
        copy = glovebox.folder / "copy"
        shutil.copytree(log, copy)
        tree = bytearray((copy / "tree").read_bytes())
        for hash_begins in range(0, len(tree), 32):
            tree[hash_begins] ^= 1
        (copy / "tree").write_bytes(tree)
        for verb in (("replay", receipt, "--private", "--code", script), ("receipt", "verify", receipt)):
            assert glovebox(*verb, "--log", log).returncode == 0
            done = glovebox(*verb, "--log", copy)
            assert done.returncode == 1 and b"of the log is another one" in done.stdout, done


# --- checkpoints ---------------------------------------------------------------------------------------

def cosigned(note, name="witness.example/a", kind=4, size=72):
    """With the line of a witness whose key nobody here knows."""
    line = base64.b64encode(b"\1\2\3\4" + bytes([kind]) * size).decode()
    return f"{note}\u2014 {name} {line}\n"


class TestCheckpoints:
    def test_signatures_of_others_are_passed_over(self, glovebox, written, tmp_path):
        note = (written / "checkpoint").read_text()
        name, ours = note.split("\n")[0], note.split("\n\n")[1]
        body = note.split("\n\n")[0]
        kept = tmp_path / "kept.txt"
        good = {"a witness": cosigned(note), "two": cosigned(cosigned(note), "other.example"),
                "before ours": f"{body}\n\n{cosigned('')}{ours}",
                "another key of our name": cosigned(note, name, 1, 64)}
        for what, text in good.items():
            kept.write_text(text)
            assert verify(glovebox, written, "--checkpoint", kept)["verified"], what
        for what, text in {"only others": f"{body}\n\n{cosigned('')}", "no signature": f"{body}\n\n",
                           "no line of a signature": f"{note}witness\n", "not ended": cosigned(note)[:-1],
                           "an extension that we did not sign": f"{body}\nextension\n\n{ours}"}.items():
            kept.write_text(text)
            assert not verify(glovebox, written, "--checkpoint", kept)["verified"], what

    def test_lines_that_extend_it_are_signed_with_it(self, glovebox, written, tmp_path):
        name, hashed, _ = (written / "key.pub").read_text().strip().split("+", 2)
        key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex((written / "key").read_text()))
        body = (written / "checkpoint").read_text().split("\n\n")[0] + "\nextension of some kind\nand another\n"
        line = base64.b64encode(bytes.fromhex(hashed) + key.sign(body.encode())).decode()
        kept = tmp_path / "kept.txt"
        kept.write_text(f"{body}\n\u2014 {name} {line}\n")
        assert verify(glovebox, written, "--checkpoint", kept)["verified"]
        pem = tmp_path / "kept.pem"
        pem.write_bytes(glovebox("log", "key", "--pem", "--log", written).stdout)
        assert verify(glovebox, written, "--checkpoint", kept, "--key", pem)["verified"]
        kept.write_text(kept.read_text().replace("some kind", "same kind"))
        assert not verify(glovebox, written, "--checkpoint", kept)["verified"]

    def test_one_origin_over_changes_of_the_key(self, glovebox):
        """A witness takes a log by its origin: it stays, whichever key signs and whichever program opens the log."""
        state = state_of_its_own(glovebox)
        log = state / "daemon" / "log"
        assert glovebox("key", "create").returncode == 0
        first = (log / "key.pub").read_text()
        kept, pem = glovebox.folder / "kept.txt", glovebox.folder / "pem"
        kept.write_bytes(glovebox("log", "checkpoint").stdout)
        origin = first.split("+")[0]
        for _ in range(2):
            assert glovebox("log", "rotate-key").returncode == 0
            assert glovebox("key", "create").returncode == 0
            public = (log / "key.pub").read_text()
            assert public != first and public.split("+")[0] == origin
            assert (log / "checkpoint").read_text().split("\n")[0] == origin
        os.unlink(log / "key.pub")
        assert glovebox("key", "create").returncode == 0
        assert (log / "key.pub").read_text() == public, "the origin was lost with the file"
        pem.write_bytes(glovebox("log", "key", "--pem").stdout)
        (glovebox.folder / "first.pub").write_text(first)
        for key in (glovebox.folder / "first.pub", pem, log / "key.pub"):
            report = verify(glovebox, log, "--key", key, "--checkpoint", kept)
            assert report["verified"] and report["origin"] == origin, (key, report)


# --- a witness -----------------------------------------------------------------------------------------

@pytest.fixture
def witnessed(glovebox):
    """A state, a witness of its log, and a copy of the state from between two runs."""
    state = state_of_its_own(glovebox)
    witness = glovebox.folder / "witness.txt"
    older = glovebox.folder / "older"
    assert glovebox("key", "create").returncode == 0
    owner = (state / "daemon").stat()
    witness.touch()
    os.chown(witness, owner.st_uid, owner.st_gid)
    with Serving(glovebox, "--log-witness", witness, tcp=False) as server:
        assert server.run("print(1)").status == 200
    shutil.copytree(state / "daemon", older)
    with Serving(glovebox, "--log-witness", witness, tcp=False) as server:
        for number in range(3):
            assert server.run(f"print({number})").status == 200

    def put_back():
        shutil.rmtree(state / "daemon")
        shutil.copytree(older, state / "daemon")
        for path in (state / "daemon", *(state / "daemon").rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid)

    return state / "daemon" / "log", witness, put_back


def test_a_log_that_was_put_back_is_refused_at_the_start(glovebox, witnessed):
    log, witness, put_back = witnessed
    assert verify(glovebox, log, "--witness", witness)["witnessed"] >= 2
    put_back()
    with pytest.raises(AssertionError, match="has seen"):
        Serving(glovebox, "--log-witness", witness, tcp=False)
    assert "an older copy of it was put back" in (glovebox.folder / "serve.log").read_text()
    # Without the witness it goes on, and even if it grows beyond what was seen it is not the same.
    with Serving(glovebox, tcp=False) as server:
        for number in range(9):
            assert server.run(f"print({number})").status == 200
    with pytest.raises(AssertionError, match="are others than those"):
        Serving(glovebox, "--log-witness", witness, tcp=False)
    report = verify(glovebox, log, "--witness", witness)
    assert not report["verified"] and "witness" in report["problems"][0]["what"], report


def test_a_witness_that_cannot_be_opened_ends_the_start_at_once(glovebox):
    state_of_its_own(glovebox)
    done = glovebox("serve", "--socket", glovebox.folder / "s", "--log-witness", glovebox.folder / "none/w", env={"GLOVEBOX_POOL_MIN": "0"})
    said = done.stderr.decode()
    assert done.returncode == 125 and said.count("daemon.cannot_start") == 1 and "starting both again" not in said, said
    assert f"log_witness: the file '{glovebox.folder}/none/w' cannot be opened" in said, said


def test_a_witness_is_read_as_it_is(glovebox, witnessed):
    """What is torn or of another log is passed over; what is ours and forged is not."""
    log, witness, _ = witnessed
    text = witness.read_text()
    notes = text.count("\n\n")
    other = text.replace("glovebox/", "elsewhere/")
    for what, said in {"torn": text[:-7], "of another log too": other + text, "cosigned": cosigned(text),
                       "torn in between": text[:-7] + " was torn off\n\n" + text, "lines of somebody": "seen\n\n" + text + "bye\n"}.items():
        witness.write_text(said)
        assert verify(glovebox, log, "--witness", witness)["verified"], what
    assert notes >= 2
    (glovebox.folder / "no").write_text("hello\n")
    witness.write_text("")
    for option, file, says in (("--witness", witness, "the file is empty"), ("--witness", glovebox.folder / "no", "no checkpoint of this log"),
                               ("--checkpoint", glovebox.folder / "no", "no signed checkpoint")):
        done = glovebox("log", "verify", "--log", log, option, file)
        assert done.returncode == 1 and says in done.stdout.decode() and "not that of the file: give what" in done.stdout.decode(), done
    size = text.rstrip().split("\n")[-4]
    for what, said in {"of another log": other, "empty": "", "grown": text.replace(f"\n{size}\n", f"\n{size}9\n")}.items():
        witness.write_text(said)
        assert not verify(glovebox, log, "--witness", witness)["verified"], what
    witness.write_text(text.replace(f"\n{size}\n", f"\n{size}9\n"))
    with pytest.raises(AssertionError, match="contradicts the log"):
        Serving(glovebox, "--log-witness", witness, tcp=False)
    note = text[text.rindex("glovebox/", 0, text.rindex("\n\n")):]
    for cut in (3, len(note) // 2, *(at for at, letter in enumerate(note) if letter == "\n"), len(note)):
        witness.write_text(text + note[:cut])  # a death in the middle of a write
        with Serving(glovebox, "--log-witness", witness, tcp=False) as server:
            assert server.run("print(1)").status == 200
        report = verify(glovebox, log, "--witness", witness)
        assert report["verified"] and report["witnessed"] > notes, (cut, report)
