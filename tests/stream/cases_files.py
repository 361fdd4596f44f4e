"""Cases about files that have something in them already."""

import contextlib
import os
import shutil
import subprocess
import sys

from scene import EXAMPLES, SECONDS, Skipped, blocks, check, equal, ranges

RAW = ("--format", "raw", "--payload", 1000)
BLOCK = 32  # packets


def read(scene, path):
    """What the example prints last."""
    return scene.run(sys.executable, f"{EXAMPLES}/read_blocks.py", path).splitlines()[-1]


def numbers(path):
    """Of the packets there, as they say themselves, each in the place of its number."""
    found = []
    for block in blocks(path):
        for i in filter(block.has, range(BLOCK)):
            equal(int.from_bytes(block.packet(i)[:8], "big"), block.first + i, "the number in a slot")
            found.append(block.first + i)
    return found


def added(scene):
    """A receiver that was killed is started again with its file: the blocks of both are there, and of a third that follows one that ended."""
    path = f"{scene.folder}/blocks"
    words = (*RAW, "--file", path, "--block", BLOCK)
    receiver = scene.receive("tcp", *words)
    sender = scene.send("tcp", *RAW, "--rate", 50, "--first", 0)
    receiver.wait_for("blocks in the file", lambda d: d.get("written"))
    receiver.kill()
    receiver.process.wait()
    sender.kill()
    before = numbers(path)
    check(before, "nothing was written")
    with open(path, "rb") as file:
        bytes_before = file.read(4096 + len(next(blocks(path)).data))
    expected = before
    for first in (320_000, 640_000):
        size = os.path.getsize(path) if first == 640_000 else None
        receiver = scene.receive("tcp", *words, "--once")
        scene.send("tcp", *RAW, "--packets", 10 * BLOCK, "--first", first, "--rate", 50).end()
        written = receiver.end()["written"]
        equal(written, 10 * len(bytes_before), "written by this receiver")
        if size is not None:
            equal(os.path.getsize(path), size + written, "size of the file")
        expected = [*expected, *range(first, first + 10 * BLOCK)]
        equal(ranges(numbers(path)), ranges(expected), "numbers in the file")
        check(read(scene, path).startswith(f"blocks {len(expected) // BLOCK}, packets {len(expected)}, missing 0"), read(scene, path))
    with open(path, "rb") as file:
        check(file.read(len(bytes_before)) == bytes_before, "the first block is another one")


def refused(scene, path, *words):
    """What a receiver says that does not take the file, which stays as it is."""
    with open(path, "rb") as file:
        before = file.read()
    receiver = scene.start([f"{scene.build}/bin/weft", "stream", "recv", "--transport", "tcp", "--bind", "127.0.0.1", "--port", 0, "--file", path,
                            "--duration", 20, *words])
    receiver.end(status=1)
    with open(path, "rb") as file:
        check(file.read() == before, "a file that was refused is another one")
    return "\n".join(receiver.errors)


def overwritten(scene):
    """What are no blocks of this shape is not touched without --overwrite."""
    path = f"{scene.folder}/blocks"
    with open(path, "wb") as file:
        file.write(b"an hour of sky\n" * 4096)
    said = refused(scene, path, *RAW, "--block", BLOCK)
    check(path in said and "something else" in said and "--overwrite" in said, said)
    for first in (3200, 6400):
        receiver = scene.receive("tcp", *RAW, "--file", path, "--overwrite", "--block", BLOCK, "--once")
        scene.send("tcp", *RAW, "--packets", 2 * BLOCK, "--first", first, "--rate", 50).end()
        equal(receiver.end()["written"], os.path.getsize(path), "size of the file")
        equal(ranges(numbers(path)), ranges(range(first, first + 2 * BLOCK)), "numbers in the file")
    for words in ((*RAW, "--block", 2 * BLOCK), (*RAW[:2], "--payload", 1001, "--block", BLOCK)):
        said = refused(scene, path, *words)
        check(path in said and "blocks of 32 packets of 1008 bytes" in said and "--overwrite" in said, said)


@contextlib.contextmanager
def mounted(scene, *words):
    """A folder in which a file system is mounted."""
    if os.geteuid() != 0:
        raise Skipped("needs root, for a file system")
    folder = f"{scene.folder}/mounted"
    os.mkdir(folder)
    done = subprocess.run(["mount", *words, folder], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise Skipped(f"nothing can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # A receiver may have it still, when the case has failed.
        subprocess.run(["umount", "--lazy", folder], check=True, timeout=SECONDS)


def disk_full(scene):
    """The receiver ends with status 1 and says why, and its account is whole; what it wrote can be read."""
    prometheus = f"{scene.folder}/prometheus"
    with mounted(scene, "-t", "tmpfs", "-o", "size=3000k", "none") as folder:
        path = f"{folder}/blocks"
        receiver = scene.receive("tcp", *RAW, "--file", path, "--block", BLOCK, "--prometheus", prometheus)
        sender = scene.send("tcp", *RAW, "--rate", 100, "--first", 0)
        last = receiver.end(status=1)
        sender.kill()
        check(last.get("final") and "No space left" in last.get("error", ""), f"it said last {last}")
        check(any("No space left" in line for line in receiver.errors), f"said {receiver.errors}")
        check(last["streams"][0]["received"] > 0 and last["written"] > 0, f"it said last {last}")
        with open(prometheus, encoding="ascii") as file:
            check(f"weft_stream_recv_written {last['written']}" in file.read().splitlines(), "the counters are not those of the end")
        found = numbers(path)
        check(os.path.getsize(path) >= last["written"], f"{last['written']} bytes were written, and the file has {os.path.getsize(path)}")
        check(read(scene, path).startswith(f"blocks {len(found) // BLOCK}, packets {len(found)}, missing 0"), read(scene, path))


def disk_nearly_full(scene):
    """Where there is no room to be had in advance, the file ends where its last block does."""
    image = f"{scene.folder}/image"
    with open(image, "wb") as file:
        file.truncate(24 << 20)
    mkfs = shutil.which("mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if mkfs is None:
        raise Skipped("mkfs.ext4 is not there")
    made = subprocess.run([mkfs, "-q", image], capture_output=True, text=True, timeout=SECONDS, check=False)
    equal(made.returncode, 0, f"exit status of mkfs.ext4: {made.stderr}")
    with mounted(scene, "-o", "loop", image) as folder:
        path = f"{folder}/blocks"
        receiver = scene.receive("tcp", *RAW, "--file", path, "--block", BLOCK, "--once")
        scene.send("tcp", *RAW, "--packets", 4 * BLOCK, "--first", 0, "--rate", 50).end()
        equal(receiver.end()["written"], os.path.getsize(path), "size of the file")
        equal(ranges(numbers(path)), ranges(range(4 * BLOCK)), "numbers in the file")


def cut(scene):
    """Of a file that ends within a block, or is none of blocks, the example tells what it could read and what is wrong, in a line."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("tcp", *RAW, "--file", path, "--block", BLOCK, "--once")
    scene.send("tcp", *RAW, "--packets", 3 * BLOCK, "--first", 0, "--rate", 50).end()
    receiver.end()
    size = os.path.getsize(path)
    for left, count, wrong in ((size - 1, 2, "within a block"), (size // 3 + 100, 1, "within a header"), (4, 0, "within a header")):
        os.truncate(path, left)
        done = subprocess.run([sys.executable, f"{EXAMPLES}/read_blocks.py", path], capture_output=True, text=True, timeout=SECONDS, check=False)
        equal((done.returncode, done.stderr), (1, f"{path}: the file ends {wrong}\n"), "status and errors")
        lines = done.stdout.splitlines()
        equal((len(lines), lines[-1]), (count + 1, f"blocks {count}, packets {count * BLOCK}, missing 0"), "lines and sums")


def without_header(scene):
    """A block that was not written to its end has a header of zeroes: the example passes over it, wherever it is."""
    path = f"{scene.folder}/blocks"
    receiver = scene.receive("tcp", *RAW, "--file", path, "--block", BLOCK, "--once")
    scene.send("tcp", *RAW, "--packets", 4 * BLOCK, "--first", 0, "--rate", 50).end()
    receiver.end()
    with open(path, "rb") as file:
        whole = file.read()
    for gone in (0, 1, 3):
        at = gone * (len(whole) // 4)
        with open(path, "wb") as file:
            file.write(whole[:at] + bytes(4096) + whole[at + 4096:])
        equal([block.number for block in blocks(path)], [number for number in range(4) if number != gone], f"blocks without number {gone}")


CASES = {
    "file_cut": cut,
    "file_without_header": without_header,
    "disk_full": disk_full,
    "disk_nearly_full": disk_nearly_full,
    "file_added": added,
    "file_overwritten": overwritten,
}
