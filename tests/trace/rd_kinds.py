"""All kinds of requests of queue pairs of type RD, by tests of `verbs_tests` in one process, decoded by weft's dissector: no fault,
nothing that a receiver would drop, and each kind is there."""

import shutil
import time

import apps
import datagrams
from datagrams import check, wireshark

# Sends with and without immediate data, Writes and Reads, atomics, requests that are refused, and such that wait for a receive.
TESTS = ("ImmediateDataAndInlineData", "SendsByPostSend", "WritesAndReads", "AWriteWithImmediateTakesAReceive", "Atomics",
         "AnErrorIsThatOfItsRequestAlone", "WithoutAReceiveARequestWaits")
CTL, RD, RDACK, BUNDLE = 0, 3, 4, 5
WRITE, READ_REQUEST, READ_RESPONSE, SEND, RESPONSE, ATOMIC_REQUEST, ATOMIC_RESPONSE = 0, 1, 2, 3, 7, 10, 11


def rd_kinds(product, started):
    if reason := wireshark.missing():
        print(f"SKIPPED rd_kinds: {reason}")
        return
    program = shutil.copy(f"{product.build}/bin/verbs_tests", product.root)
    folder = product.folder()
    process = apps.Process(product.trace([program, "--gtest_filter=" + ":".join(f"Rd.{name}" for name in TESTS)], folder))
    started.append(process)
    status = process.wait(time.monotonic() + datagrams.SECONDS)
    check(status == 0, f"verbs_tests ended with {status}: {process.text()[-1000:]}")
    scene = wireshark.Scene(None)
    try:
        judge(scene, datagrams.only_file(folder))
    except wireshark.Failed as e:
        raise apps.Failed(str(e)) from e
    finally:
        scene.close()


def judge(scene, file):
    strange = scene.tshark("-r", file, "-Y", "udp && !wdp", "-T", "fields", "-e", "frame.number").split()
    check(not strange, f"{file}: packets {strange} are not taken for WDP")
    classes, opcodes = set(), set()
    for number, packet in enumerate(scene.shown(file, "-Y", "udp"), 1):
        where = f"{file}, datagram {number}"
        wireshark.without_fault(where, packet)
        check("drop" not in packet, f"{where} would be dropped: {packet}")
        classes.add(wireshark.number(packet["class"][0]))
        # Of a bundle those of all its parts.
        opcodes.update(wireshark.number(text) for text in packet.get("rdmap.opcode", ()))
    check(classes == {CTL, RD, RDACK, BUNDLE}, f"{file}: datagrams of classes {classes}")
    wanted = {WRITE, READ_REQUEST, READ_RESPONSE, SEND, RESPONSE, ATOMIC_REQUEST, ATOMIC_RESPONSE}
    check(opcodes == wanted, f"{file}: opcodes {opcodes}, not {wanted}")
