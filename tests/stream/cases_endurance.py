"""Cases about time: memory stays what it was, no rate drifts, and what is lost is known. Some seconds of small packets, or as many of
LOFAR's streams as `stream.py --seconds` says."""

import collections

from scene import PACKET, check, equal, total

Load = collections.namedtuple("Load", "words streams packet_bytes per_second seconds ring_words faults most_growth")
SLICES_PER_SECOND = 200e6 / 1024  # of LOFAR's clock, 16 of them in a packet
MIB = 1 << 20
SLACK = 0.25  # seconds that a rate may be off, beyond what late_us says


def load(transport, seconds):
    """What is sent. Small packets go round a small ring many times in seven seconds; those of LOFAR are what one has for an hour."""
    if seconds is not None:
        return Load((), 4, PACKET, SLICES_PER_SECOND / 16, seconds, (), None, 4 * MIB)
    return Load(("--format", "raw", "--payload", 300), 1, 308, 100e6 / 8 / 308, 7, ("--block", 64, "--blocks", 16),
                "loss:0.01,way:out,seed:2" if transport in ("udp", "uc") else None, MIB)


def gone(document):
    """Packets that a sender is done with: they left, or were too old to leave."""
    return total(document, "sent") + total(document, "skipped")


def thirds(documents, count):
    """For each third of the lines that a side wrote while packets flowed: how long it took, what count() rose by, and the resident bytes
    at its end. The first line may come before all memory was touched, the last one behind the last packet."""
    seen = [d for d in documents if "resident" in d and not d.get("final") and count(d) > 0]
    check(len(seen) >= 4, f"too few reports: {len(seen)}")
    marks = [seen[round(i * (len(seen) - 1) / 3)] for i in range(4)]
    return [(end["seconds"] - begin["seconds"], count(end) - count(begin), end["resident"]) for begin, end in zip(marks, marks[1:])]


def account(sender, receiver, plan, last, got):
    """The lines for people."""
    for name, process, count in (("send", sender, gone), ("recv", receiver, lambda d: total(d, "received"))):
        for i, (took, packets, resident) in enumerate(thirds(process.documents(), count)):
            print(f"{name}, third {i + 1}: {took:7.1f} s, {packets * plan.packet_bytes * 8e-9 / took:.5f} Gb/s, {resident / 1e6:.1f} MB resident")
    late = last["late_us"]
    print(f"late: p50 {late['p50']:.0f} us, p99 {late['p99']:.0f} us, at most {late['max']:.0f} us")
    names = ("received", "missing", "late", "duplicate", "overrun", "invalid")
    print(f"sent {total(last, 'sent')}, skipped {total(last, 'skipped')}; " + ", ".join(f"{name} {total(got, name)}" for name in names) +
          f"; kernel_drops {got['kernel_drops']}, lost on purpose {last['faults']['lost']}")


def no_growth(process, count, plan):
    resident = [third[2] for third in thirds(process.documents(), count)]
    check(max(resident[1:]) <= resident[0] + plan.most_growth, f"resident bytes of {process.words[2]} grow: {resident}")


def no_drift(sender, plan, last):
    """All of it, and each third, takes as long as the packets' clock does, but for what was late."""
    late = last["late_us"]["max"] * 1e-6
    per_second = plan.streams * plan.per_second
    ahead = gone(last) / per_second - last["sending_s"]
    check(-late - SLACK < ahead < late + 0.01 + plan.streams / per_second, f"{gone(last)} packets in {last['sending_s']} s, late {last['late_us']}")
    for took, packets, _ in thirds(sender.documents(), gone):
        check(abs(packets / per_second - took) < late + SLACK, f"{packets} packets in {took} s of a third, late {last['late_us']}")
    # One that falls behind is later and later: half of the packets are on time.
    check(last["late_us"]["p50"] < 50_000, f"the rate drifts: late {last['late_us']}")


def endurance(transport):
    def case(scene):
        plan = load(transport, scene.seconds)
        packets = round(plan.seconds * plan.per_second)
        receiver = scene.receive(transport, *plan.words, "--streams", plan.streams, *plan.ring_words, "--once")
        pace = ("--rate", 100) if scene.seconds is None else ("--max-late", 1000)
        sender = scene.send(transport, *plan.words, "--streams", plan.streams, "--packets", packets, "--delay", 1, *pace,
                            environment=plan.faults and {"WEFT_FAULT": plan.faults})
        last = sender.end(within=plan.seconds + 60)
        got = receiver.end()
        if scene.seconds is not None:
            account(sender, receiver, plan, last, got)
        no_growth(sender, gone, plan)
        no_growth(receiver, lambda d: total(d, "received"), plan)
        no_drift(sender, plan, last)
        equal(gone(last), plan.streams * packets, "sent and skipped")
        equal(sum(total(got, name) for name in ("received", "missing", "overrun")), gone(last), "received, missing and overrun")
        equal((total(got, "invalid"), total(got, "duplicate"), total(got, "late")), (0, 0, 0), "invalid, duplicate, late")
        if scene.seconds is None:
            equal(total(last, "skipped"), 0, "skipped")
            check(total(got, "blocks") > 1000, "too few blocks")
        if transport in ("tcp", "rc"):
            equal((total(got, "missing"), total(got, "overrun")), (total(last, "skipped"), 0), "missing, overrun")
        elif plan.faults is None:
            lost = total(got, "missing") - total(last, "skipped") - got["kernel_drops"]
            check(lost <= 0, f"{lost} packets are missing for which there is no reason")
    return case


CASES = {f"endurance_{transport}": endurance(transport) for transport in ("uc", "udp", "tcp", "rc")}
