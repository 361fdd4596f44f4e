"""What weft and siw really say to each other: weft's own capture (docs/tracing.md), taken apart by tshark's dissectors, and
what tcpdump hears of it at the guest's network card, with the headers of the two kernels.

Comments cite docs/spec.
"""

import os

import scenarios
import segments
import tcpdump
from programs import Case
from sides import Failed, dissect

BYTES = 100_001
PRIVATE_DATA = 12  # what interop_peer says unless told otherwise
ENHANCED_BLOCK = 4
S, C, XR, XA = 0x10, 0x40, 0x01, 0x02  # spec/mpa 2.1
RESPONDER_WAIT = 90 * 10**6  # ns; weft's are 100 ms, less what its clock and the kernel's differ by
EMSS = 1448  # of Ethernet's 1500 bytes, without the headers of IPv4 and TCP, and TCP's timestamps


def flags(bytes_of_file, key):
    return bytes_of_file[bytes_of_file.index(key) + 16]


def complaints(file, serving, crc):
    with open(file, "rb") as f:
        raw = f.read()
    request, reply = flags(raw, b"MPA ID Req Frame"), flags(raw, b"MPA ID Rep Frame")
    on = C if crc else 0
    # spec/siw 2.11: siw asks for no CRC, and takes what weft's Reply says; as Responder it copies. spec/siw 2.8: it echoes the bit XR.
    expected = {"siw": (S | on | XR, S | on | XR), "weft": (S, S | on)}[serving]
    if (request, reply) != expected:
        yield f"flags of Request and Reply {request:#x}, {reply:#x}, and not {expected[0]:#x}, {expected[1]:#x}"
    capture = dissect.Capture(file)
    yield from capture.faults
    if [s.is_request for s in capture.start_ups] != [True, False]:
        yield f"start-up frames: {capture.start_ups}"
    for s in capture.start_ups:
        # spec/siw 2.7: rdma_cm puts nothing in front of a program's private data.
        if s.revision != 2 or s.private_data != ENHANCED_BLOCK + PRIVATE_DATA:
            yield f"revision {s.revision}, {s.private_data} bytes of private data"
    directions = [(s.source, s.target) for s in capture.start_ups]
    if sorted(capture.fpdus) != sorted(directions):
        yield f"FPDUs between {list(capture.fpdus)}"
        return
    # spec/mpa 2.4, 2.5: the Initiator speaks first.
    if capture.times[directions[0]][0] > capture.times[directions[1]][0]:
        yield "the Responder spoke first"
    for direction in directions:
        fpdus = capture.fpdus[direction]
        if {f.crc_checked for f in fpdus} != {crc}:
            yield f"{direction}: FPDUs with a CRC that counts, and without"
        # spec/siw 4.4: no opcode of weft's own, nor any that it did not agree on.
        if not {f.opcode for f in fpdus} <= {0, 1, 2, 3}:
            yield f"{direction}: opcodes {sorted({f.opcode for f in fpdus})}"


def complaints_about_segments(file):
    """2.5 rule 8, 7: an FPDU fits into a segment of TCP, and one of a long message fills it (3.1)."""
    directions = segments.directions(file)
    if len(directions) != 2:
        yield f"{len(directions)} directions in {file}"
    for name, direction in directions.items():
        if direction.emss != EMSS:
            yield f"{name}: TCP's segments have {direction.emss} bytes"
        if direction.largest() > direction.emss:
            yield f"{name}: an FPDU of {direction.largest()} bytes, and segments of {direction.emss}"
    if {direction.largest() for direction in directions.values()} != {EMSS}:
        yield f"the largest FPDUs of both sides: {[direction.largest() for direction in directions.values()]}"


def frames(world, serving):
    try:
        with tcpdump.Recording("tap0", world.traces, world.guest.enter()) as wire:
            scenarios.talk(f"request recv:1 {scenarios.ACCEPT} got:1 was_written:{BYTES} send:1 done {scenarios.CLOSED}",
                           f"resolve recv:1 {scenarios.CONNECT} read:{BYTES} done was_read:{BYTES} write:{BYTES} done send:1 done "
                           f"got:1 {scenarios.CLOSE}")(world, serving)
            heard = wire.finish()
    except tcpdump.Lost as e:
        raise Failed(str(e)) from e
    files = [f"{world.traces}/{name}" for name in os.listdir(world.traces) if name.endswith(".pcapng")]
    if len(files) != 1:
        raise Failed(f"{len(files)} captures")
    found = [*complaints(files[0], serving, world.options["WEFT_CRC"] == "on"), *complaints_about_segments(heard)]
    if found:
        raise Failed("; ".join(found))


def server_first(world, serving):
    """2.5 rule 2: siw bears no FPDU that comes with the Reply. It says nothing by itself, so weft waits and then speaks."""
    try:
        with tcpdump.Recording("tap0", world.traces, world.guest.enter()) as wire:
            scenarios.talk(f"request {scenarios.ACCEPT} send:1000 done {scenarios.CLOSED}",
                           f"resolve recv:1000 {scenarios.CONNECT} got:1000 {scenarios.CLOSE}")(world, serving)
            heard = dissect.Capture(wire.finish(), on_the_wire=True)
    except tcpdump.Lost as e:
        raise Failed(str(e)) from e
    reply, replied = next((s, time) for s, time in zip(heard.start_ups, heard.start_times) if not s.is_request)
    waited = heard.times[(reply.source, reply.target)][0] - replied
    if waited < RESPONDER_WAIT:
        raise Failed(f"an FPDU {waited / 10**6} ms behind the Reply")


def all_frames():
    return [Case("frames", frames, traced=True),
            Case("frames.server_first", server_first, servers=("weft",), crc=("on",), traced=True)]
