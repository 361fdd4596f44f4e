"""Cases about the files of `recv --as` and `--rotate`: what other programs of the field read, each byte of it; which name a file has before it
is whole and afterwards; what is left of a receiver that was killed."""

import os
import signal
import struct
import time

from cases_circuits import free_port
from cases_data import knows_direct
from cases_files import mounted
from cases_recordings import FORM, SECOND, SMALL, utc, write
from lofar import ns_of, number_at, rsp
from scene import ROOMY, SECONDS, blocks, check, equal, total

BLOCK = 32
BEAMLETS = 12
SLICES = 16
SAMPLE = 4  # bytes of a beamlet's slice: X and Y, real and imaginary, of 8 bits
PAYLOAD = BEAMLETS * SLICES * SAMPLE


def lane(stream, first=None, count=600):
    """Packets by their numbers, with holes, across a second's boundary."""
    first = number_at(SECOND) - 300 + 5 * stream if first is None else first
    gone = {first + 50, first + 51, first + 127, *range(first + 200, first + 200 + 3 * BLOCK)}
    return {n: rsp(n, stream=stream, **FORM) for n in range(first, first + count) if n not in gone}


def recorded(scene, name, packets):
    return write(f"{scene.folder}/{name}", b"".join(packets.values()))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def keywords(header):
    """Of a DADA file."""
    lines = header.rstrip(b"\0").decode("ascii").splitlines()
    equal(lines[-1], "# end of header", "the last line")
    return dict(line.split(None, 1) for line in lines)


def by_time(packet):
    """The samples of a packet in the order of slices and beamlets."""
    data = packet[16:]
    return b"".join(data[(b * SLICES + s) * SAMPLE:][:SAMPLE] for s in range(SLICES) for b in range(BEAMLETS))


def check_dada(path, packets, stream):
    data = read(path)
    k = keywords(data[:4096])
    first, last = min(packets), max(packets)
    begin = ns_of(first)
    equal(k["UTC_START"], time.strftime("%Y-%m-%d-%H:%M:%S", time.gmtime(begin // 10**9)), "UTC_START")
    equal(int(k["PICOSECONDS"]), begin % 10**9 * 1000, "PICOSECONDS")
    for name, value in (("HDR_SIZE", 4096), ("OBS_OFFSET", 0), ("FILE_SIZE", len(data) - 4096), ("NBIT", 8), ("NPOL", 2), ("NDIM", 2), ("NCHAN", BEAMLETS),
                        ("STREAM", stream), ("STATION_ID", 6848), ("PACKETS_MISSING", last - first + 1 - len(packets))):
        equal(k[name], str(value), name)
    equal((k["SOURCE"], k["TELESCOPE"]), ("B0329+54", "LOFAR"), "SOURCE and TELESCOPE")
    expected = b"".join(by_time(packets[n]) if n in packets else bytes(PAYLOAD) for n in range(first, last + 1))
    check(data[4096:] == expected, f"samples of {path}")


def check_packets(path, packets, stream):
    del stream
    check(read(path) == b"".join(packets.values()), f"packets of {path}")


def check_guppi(path, packets, stream):
    data, at = read(path), 0
    first_block = min(packets) // BLOCK
    seen = set()
    while at < len(data):
        end = data.index(b"END" + b" " * 77, at)
        cards = {data[i:i + 8].decode().strip(): data[i + 10:i + 80].decode().strip().strip("'").strip() for i in range(at, end, 80)}
        at = end + 80
        equal(at % 512, 0 if cards["DIRECTIO"] == "1" else at % 512, "bytes behind a multiple of 512")
        size = int(cards["BLOCSIZE"])
        equal(size, BLOCK * PAYLOAD, "BLOCSIZE")
        equal((cards["OBSNCHAN"], cards["NPOL"], cards["NBITS"], cards["STREAM"], cards["SRC_NAME"]), (str(BEAMLETS), "4", "8", str(stream), "B0329+54"), "a header")
        numbers = range(first_block * BLOCK + int(cards["PKTIDX"]), first_block * BLOCK + int(cards["PKTIDX"]) + BLOCK)
        here = [packets.get(n) for n in numbers]
        equal(int(cards["NDROP"]), here.count(None), "NDROP")
        run = SLICES * SAMPLE
        expected = b"".join(p[16 + c * run:][:run] if p else bytes(run) for c in range(BEAMLETS) for p in here)
        check(data[at:at + size] == expected, f"samples of packets {numbers}")
        seen |= set(numbers)
        at += size
    check(set(packets) <= seen, "packets that are in no block")


def check_vdif(path, packets, stream):
    data = read(path)
    first, last = min(packets), max(packets)
    frame = 32 + SLICES * 16 * SAMPLE  # 12 beamlets become 16
    equal(len(data), (last - first + 1) * frame, "bytes of VDIF")
    numbers = iter(range(first, last + 1))
    second_before, frame_before = None, None
    for at in range(0, len(data), frame):
        n = next(numbers)
        words = struct.unpack_from("<8I", data, at)
        equal(words[0] >> 31, int(n not in packets), f"invalid of {n}")
        second, count = words[0] & (1 << 30) - 1, words[1] & 0xFFFFFF
        check(second_before is None or (second, count) == (second_before, frame_before + 1) or
              (count == 0 and second == second_before + 1 and frame_before in (12206, 12207)), f"frame {count} of second {second}")
        second_before, frame_before = second, count
        equal((words[2], words[3]), (1 << 29 | 5 << 24 | frame // 8, 1 << 31 | 7 << 26 | stream << 16 | 6848), f"words of {n}")
        if n in packets:
            samples = by_time(packets[n])
            row = BEAMLETS * SAMPLE
            expected = b"".join(bytes(x ^ 0x80 for x in samples[s * row:][:row]) + b"\x80" * 4 * SAMPLE for s in range(SLICES))
        else:
            expected = bytes(frame - 32)
        check(data[at + 32:at + frame] == expected, f"samples of {n}")


CHECKS = {"dada": check_dada, "packets": check_packets, "guppi": check_guppi, "vdif": check_vdif}


def layout(kind, transport):
    """Two streams with holes, each in its file; the receiver tells of each."""
    def case(scene):
        lanes = [lane(s) for s in range(2)]
        header = write(f"{scene.folder}/sky.hdr", b"SOURCE B0329+54  # of PSRDADA\nSRC_NAME B0329+54\n")
        words = ("--header", header) if kind in ("dada", "guppi") else ()
        receiver = scene.receive(transport, *SMALL, "--streams", 2, "--block", BLOCK, *ROOMY, "--as", kind, "--file", f"{scene.folder}/{{stream}}.{kind}", "--once", *words)
        scene.send(transport, *SMALL, "--recording", *(recorded(scene, f"lane{s}", packets) for s, packets in enumerate(lanes))).end()
        got = receiver.end()
        equal([s["received"] for s in got["streams"]], [len(packets) for packets in lanes], "received")
        told = {d["stream"]: d for d in receiver.documents() if d.get("event") == "file"}
        equal(sorted(told), [0, 1], "streams whose file is told of")
        for s, packets in enumerate(lanes):
            path = f"{scene.folder}/{s}.{kind}"
            CHECKS[kind](path, packets, s)
            equal((told[s]["path"], told[s]["packets"], told[s]["bytes"]), (path, len(packets), os.path.getsize(path)), "what was told")
            check(not os.path.exists(f"{path}.part"), f"{path}.part is left")
        equal(got["written"], sum(t["bytes"] for t in told.values()), "written")
    return case


def frames(transport):
    """VDIF in, behind VTP's numbers, and VDIF out: frames as they came, and invalid ones for those that did not."""
    def case(scene):
        def frame(n):
            second, count = divmod(n, 1000)
            header = struct.pack("<8I", second, 40 << 24 | count, 1 << 29 | 3 << 24 | (32 + 512) // 8, 1 << 26 | 77 << 16 | 0x4566, n & 0xFFFFFF, n * 7 & 0xFFFF, 0, 9)
            return header + bytes((n * 37 + i * 11 + (i >> 8)) & 255 for i in range(512))
        first = 12_345_000 - 150
        numbers = [n for n in range(first, first + 400) if n not in (first + 3, first + 149, first + 150, first + 151)]
        lane_ = write(f"{scene.folder}/lane", b"".join(n.to_bytes(8, "little") + frame(n) for n in numbers))
        words = ("--format", "vdif", "--payload", 512, "--bits", 2, "--frames-per-second", 1000, "--vtp")
        receiver = scene.receive(transport, *words, "--block", BLOCK, *ROOMY, "--as", "vdif", "--file", f"{scene.folder}/out.vdif", "--once")
        sent = scene.send(transport, *words, "--recording", lane_).end()
        check(sent["sending_s"] >= 0.399 - 1e-6, f"400 frames, 1000 a second, left within {sent['sending_s']} s")
        equal(receiver.end()["streams"][0]["received"], len(numbers), "received")
        data = read(f"{scene.folder}/out.vdif")
        equal(len(data), 400 * 544, "bytes")
        for n in range(first, first + 400):
            got = data[(n - first) * 544:][:544]
            if n in numbers:
                check(got == frame(n), f"frame {n}")
                continue
            second, count = divmod(n, 1000)
            equal(struct.unpack_from("<4I", got), (1 << 31 | second, 40 << 24 | count, 1 << 29 | 3 << 24 | 544 // 8, 1 << 26 | 77 << 16 | 0x4566), f"header of {n}")
            check(not any(got[32:]), f"data of {n}")
    return case


def again(scene):
    """What was received as a recording can be sent as one."""
    packets = lane(0)
    receiver = scene.receive("tcp", *SMALL, "--as", "packets", "--file", f"{scene.folder}/copy", "--once")
    scene.send("tcp", *SMALL, "--recording", recorded(scene, "lane", packets)).end()
    receiver.end()
    receiver = scene.receive("uc", *SMALL, "--as", "packets", "--file", f"{scene.folder}/copy2", "--once")
    scene.send("uc", *SMALL, "--recording", f"{scene.folder}/copy").end()
    receiver.end()
    check(read(f"{scene.folder}/copy2") == b"".join(packets.values()), "the second copy")


def watch(folder, receiver):
    """Files that had their names while a receiver ran, and what was in them then."""
    seen = {}
    while True:
        ended = receiver.process.poll() is not None
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".part") and name not in seen:
                seen[name] = read(f"{folder}/{name}")
        if ended:
            return seen
        time.sleep(0.01)


def rotated(kind, rotate):
    """A file that has its name is whole: nothing comes to it any more. All of them together have all packets."""
    def case(scene):
        first = number_at(SECOND) // BLOCK * BLOCK
        packets = lane(0, first, 1800)
        out = f"{scene.folder}/out"
        os.mkdir(out)
        receiver = scene.receive("tcp", *SMALL, "--block", BLOCK, "--as", kind, "--rotate", rotate, "--file", f"{out}/{{number}}_{{time}}", "--once")
        sender = scene.send("tcp", *SMALL, "--recording", recorded(scene, "lane", packets), "--rate", 40)
        early = watch(out, receiver)
        sender.end()
        got = receiver.end()
        equal(got.get("direct"), knows_direct(f"{scene.folder}/lane") if kind == "blocks" else None, "past the page cache")
        names = sorted(os.listdir(out))
        check(len(names) > 3 and early, f"{names} at the end, {sorted(early)} before")
        for name, data in early.items():
            check(read(f"{out}/{name}") == data, f"{name} was not whole")
        told = [d["path"] for d in receiver.documents() if d.get("event") == "file"]
        equal(told, [f"{out}/{name}" for name in names], "files that were told of")
        if kind == "dada":
            data, offset = b"", 0
            for name in names:
                file = read(f"{out}/{name}")
                equal(int(keywords(file[:4096])["OBS_OFFSET"]), offset, "OBS_OFFSET")
                offset += len(file) - 4096
                data += file[4096:]
            expected = b"".join(by_time(packets[n]) if n in packets else bytes(PAYLOAD) for n in range(first, max(packets) + 1))
            check(data == expected, "samples of all files")
        else:
            found = [b.first + i for name in names for b in blocks(f"{out}/{name}") for i in filter(b.has, range(BLOCK))]
            equal(found, list(packets), "numbers in all files")
        for name in names:
            size = os.path.getsize(f"{out}/{name}")
            check(rotate.endswith("s") or size <= 250_000, f"{name} has {size} bytes")
    return case


def killed(kind):
    """What a receiver that was killed had written can be read, under its name with .part; its successor begins the next file."""
    def case(scene):
        first = number_at(SECOND) // BLOCK * BLOCK
        packets = {n: rsp(n, **FORM) for n in range(first, first + 6000)}
        out = f"{scene.folder}/out"
        os.mkdir(out)
        words = (*SMALL, "--block", BLOCK, "--as", kind, "--rotate", "700kB", "--file", f"{out}/{{number}}")
        receiver = scene.receive("tcp", *words)
        sender = scene.send("tcp", *SMALL, "--recording", recorded(scene, "lane", packets), "--rate", 20)
        receiver.wait_for("a file", lambda d: d.get("event") == "file")
        receiver.kill()
        receiver.process.wait()
        sender.kill()
        names = sorted(os.listdir(out))
        equal([name.endswith(".part") for name in names], [False] * (len(names) - 1) + [True], f"the last one alone is no whole one, of {names}")
        number = first
        for name in names:
            path = f"{out}/{name}"
            if kind == "blocks":
                for b in blocks(path):
                    # Of three writers, one may not have come to its end.
                    check(b.first == number or (b.first > number and name.endswith(".part")), f"block of {b.first} behind {number}")
                    for i in range(BLOCK):
                        check(bytes(b.packet(i)) == packets[b.first + i], f"packet {b.first + i}")
                    number = b.first + BLOCK
                continue
            data = read(path)
            if name.endswith(".part") and len(data) < 4096:
                continue  # killed within its header
            equal(keywords(data[:4096])["HDR_VERSION"], "1.0", "HDR_VERSION")
            for at in range(4096, len(data), PAYLOAD):
                piece = data[at:at + PAYLOAD]
                check(piece == by_time(packets[number])[:len(piece)], f"samples of {number}")
                number += len(piece) == PAYLOAD
        check(number > first, "nothing is there")
        receiver = scene.receive("tcp", *words, "--once")
        scene.send("tcp", *SMALL, "--recording", f"{scene.folder}/lane", "--packets", 64).end()
        receiver.end()
        added = sorted(set(os.listdir(out)) - set(names))
        equal(added, [f"{len(names):04}"], "files of the successor")
    return case


def rotate_ended(scene):
    """The last file of blocks is whole when the last of all senders has ended, though the receiver goes on; what comes then is in the next one."""
    first = number_at(SECOND) // BLOCK * BLOCK
    packets = {n: rsp(n, **FORM) for n in range(first, first + 4 * BLOCK)}
    path = recorded(scene, "lane", packets)
    out = f"{scene.folder}/out"
    os.mkdir(out)
    receiver = scene.receive("tcp", *SMALL, "--streams", 2, "--block", BLOCK, "--rotate", "1GB", "--file", f"{out}/{{number}}")
    lasting = scene.send("tcp", *SMALL, "--recording", path, "--loop", "--rate", 5)
    receiver.wait_for("packets", lambda d: "streams" in d and total(d, "received") > 0)
    scene.send("tcp", *SMALL, "--recording", path, "--first-stream", 1).end()
    equal(os.listdir(out), ["0000.part"], "files while a sender goes on")
    lasting.kill(signal.SIGINT)
    lasting.end()
    told = receiver.wait_for("a file", lambda d: d.get("event") == "file")
    equal((told["path"], os.listdir(out)), (f"{out}/0000", ["0000"]), "files when all have ended")
    scene.send("tcp", *SMALL, "--recording", path, "--first-stream", 1).end()
    receiver.wait_for("another file", lambda d: d.get("event") == "file" and d["path"] == f"{out}/0001")
    receiver.kill(signal.SIGTERM)
    equal(sum(d["blocks"] for d in receiver.end()["streams"]), sum(1 for name in ("0000", "0001") for _ in blocks(f"{out}/{name}")), "blocks")


def start(kind):
    """Nothing is kept that was taken before: of blocks, the whole one that has the moment is."""
    def case(scene):
        first = number_at(SECOND) // BLOCK * BLOCK
        packets = {n: rsp(n, **FORM) for n in range(first, first + 600)}
        moment = first + 10 * BLOCK + 7
        path = f"{scene.folder}/out"
        receiver = scene.receive("tcp", *SMALL, "--block", BLOCK, "--as", kind, "--file", path, "--start", utc(ns_of(moment)), "--once")
        scene.send("tcp", *SMALL, "--recording", recorded(scene, "lane", packets)).end()
        equal(receiver.end()["streams"][0]["received"], 600, "received")
        if kind == "blocks":
            equal([b.first for b in blocks(path)], list(range(first + 10 * BLOCK, first + 600, BLOCK)), "blocks")
        else:
            check_packets(path, {n: p for n, p in packets.items() if n >= moment}, 0)
    return case


def refused(scene):
    """Options that go together with no file, and files that are there."""
    there = write(f"{scene.folder}/there", b"of last night")
    receive = [f"{scene.build}/bin/weft", "stream", "recv", "--transport", "tcp", "--bind", "127.0.0.1", "--port", 0]
    for words, part in ((("--as", "dada", "--file", there, "--streams", 2), "{stream} has to be in the name"),
                        (("--file", "a{number}"), "{number} and {time} are for"),
                        (("--file", "a", "--rotate", "10s"), "{number} or {time} has to be in the name"),
                        (("--file", "a{time}", "--rotate", "10"), "a time as 10s"),
                        (("--file", "a{lane}", "--as", "dada"), "{lane} is none of"),
                        (("--file", "a{stream}{time}", "--rotate", "1s"), "{stream} is for --as"),
                        (("--file", "a", "--header", there), "--header is for"),
                        (("--file", "a", "--start", "now"), "a time is as"),
                        (("--as", "guppi", "--file", "a", "--format", "raw"), "order of the samples")):
        receiver = scene.start([*receive, *words])
        receiver.end(status=2)
        check(any(part in line for line in receiver.errors), f"{words}: {receiver.errors}")
    write(f"{scene.folder}/half.part", b"of last night")
    # Before anything has come.
    for words, part in ((("--as", "packets", "--file", there), "there is there already"),
                        (("--as", "packets", "--file", f"{scene.folder}/half"), "half.part is what a receiver left"),
                        (("--as", "dada", "--file", f"{scene.folder}/none/{{time}}"), "none: No such file"),
                        (("--rotate", "1s", "--file", f"{scene.folder}/none/{{number}}"), "none: No such file"),
                        (("--as", "dada", "--file", f"{scene.folder}/a", "--header", f"{scene.folder}/none"), "none: No such file")):
        receiver = scene.start([*receive, *words])
        receiver.end(status=1)
        check(any(part in line for line in receiver.errors), f"{words}: {receiver.errors}")
    equal(read(there), b"of last night", "the file that was there")


def ends(transport):
    """Where a sender ends, the receiver goes on, and the file is whole; the next sender's is another observation. A station that knows nothing
    of weft ends by its silence."""
    def case(scene):
        nights = [lane(0), lane(0, number_at(SECOND + 5))]
        plain = transport == "plain"
        port = free_port()
        words = ("--udp-port", port, "--idle", 300) if plain else ()
        receiver = scene.receive("udp" if plain else transport, *SMALL, "--block", BLOCK, *ROOMY, *words, "--as", "dada", "--file", f"{scene.folder}/{{number}}",
                                 "--header", write(f"{scene.folder}/sky.hdr", b"SOURCE B0329+54\n"))
        for i, packets in enumerate(nights):
            path = recorded(scene, f"lane{i}", packets)
            if plain:
                scene.start([f"{scene.build}/bin/weft", "stream", "send", "--plain-udp", f"127.0.0.1:{port}", "--max-late", 0, "--json", *SMALL,
                             "--recording", path]).end()
            else:
                scene.send(transport, *SMALL, "--recording", path).end()
            told = receiver.wait_for("a whole file", lambda d, i=i: d.get("event") == "file" and d["path"].endswith(f"{i:04}"))
            equal(told["packets"], len(packets), "packets of the file")
            check_dada(told["path"], packets, 0)
        receiver.kill(signal.SIGTERM)
        receiver.end()
        equal(sorted(name for name in os.listdir(scene.folder) if name.startswith("0")), ["0000", "0001"], "files")
    return case


def disk_full(scene):
    """The receiver ends with status 1 and says why; what came before is in NAME.part."""
    packets = lane(0)
    with mounted(scene, "-t", "tmpfs", "-o", "size=300k", "none") as folder:
        receiver = scene.receive("tcp", *SMALL, "--block", BLOCK, "--as", "dada", "--file", f"{folder}/sky.dada")
        sender = scene.send("tcp", *SMALL, "--recording", recorded(scene, "lane", packets))
        last = receiver.end(status=1)
        sender.kill()
        check(last.get("final") and "No space left" in last.get("error", ""), f"it said last {last}")
        equal(os.listdir(folder), ["sky.dada.part"], "files")
        data = read(f"{folder}/sky.dada.part")
        first = min(packets)
        expected = b"".join(by_time(packets[n]) if n in packets else bytes(PAYLOAD) for n in range(first, max(packets) + 1))
        check(len(data) > 200_000 and expected.startswith(data[4096:]), f"samples in {len(data)} bytes")


CASES = {
    **{f"output_dada_{t}": layout("dada", t) for t in ("udp", "tcp", "rc", "uc")},
    **{f"output_{kind}_{t}": layout(kind, t) for kind in ("packets", "guppi", "vdif") for t in ("tcp", "uc")},
    **{f"output_vdif_of_vdif_{t}": frames(t) for t in ("tcp", "uc")},
    "output_again": again,
    "rotate_dada_size": rotated("dada", "250kB"),
    "rotate_dada_time": rotated("dada", "0.03s"),
    "rotate_blocks_size": rotated("blocks", "250kB"),
    "rotate_blocks_time": rotated("blocks", "0.03s"),
    "rotate_ended": rotate_ended,
    "rotate_killed_dada": killed("dada"),
    "rotate_killed_blocks": killed("blocks"),
    "output_start_blocks": start("blocks"),
    "output_start_packets": start("packets"),
    "output_refused": refused,
    "output_disk_full": disk_full,
    **{f"output_ends_{t}": ends(t) for t in ("tcp", "uc")},
    "output_ends_plain_udp": ends("plain"),
}
