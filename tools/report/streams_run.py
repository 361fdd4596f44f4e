"""Runs of `weft stream` over one transport, and the figures that are kept of them."""

import json
import subprocess
import tempfile
import time
import pathlib

import ladder
import places
import results as kept

PACKET_BYTES = 7824   # of LOFAR's packets
LOFAR_MBPS = 764      # of a stream at the pace of LOFAR's clock
DELAY = 1.2           # seconds at rest before the first packet: what the receiver had used by then, a line a second, is not the streams'
START_LIMIT = 20      # seconds for a receiver to listen
INTERVAL_MS = 250     # between two looks: the kernel counts CPU in ticks of 10 ms
STOP_LIMIT = 10       # seconds for a receiver to end that was told to
END_LIMIT = 40        # seconds for both sides to end, beyond the streams' own time


class StreamFailed(Exception):
    """A sentence."""


def last_document(text):
    documents = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    finals = [document for document in documents if document.get("final")]
    if not finals:
        raise StreamFailed("a side of weft stream ended without its account")
    return documents, finals[-1]


def while_packets_left(looks, begun, ended):
    """Those of the meter's looks that cover nothing else: not connecting, nor the goodbye."""
    return [look for look in looks if begun + INTERVAL_MS / 1000 <= look["time"] <= ended]


def figures_of(sent, documents, received, looks, streams, offered_gbps):
    """What a repetition's figures are; `documents` are the receiver's, one a second."""
    at_rest = [document for document in documents if document.get("bytes") == 0 and "cpu_s" in document]
    cpu_s = received["cpu_s"] - (at_rest[-1]["cpu_s"] if at_rest else 0)
    gigabytes = received["bytes"] * 1e-9
    seconds = sent["sending_s"]
    skipped = sum(stream.get("skipped", 0) for stream in sent["streams"])
    due = sum(stream["sent"] for stream in sent["streams"]) + skipped
    arrived = sum(stream["received"] for stream in received["streams"])
    figures = {"gbps": gigabytes * 8 / seconds,
               "offered_gbps": offered_gbps if offered_gbps > 0 else sent["bytes"] * 8e-9 / seconds,
               "lost_percent": 100 * max(0.0, 1 - arrived / due) if due else 0.0,
               "skipped_percent": 100 * skipped / due if due else 0.0,
               "rx_cpus": cpu_s / seconds,
               "tx_cpus": sent["cpu_s"] / seconds,
               "streams": streams}
    machine = [look["machine_cpus"] for look in looks if look.get("machine_cpus") is not None]
    if machine:
        figures["machine_cpus"] = sum(machine) / len(machine)  # what the network does counts for neither side
    if gigabytes > 0:
        figures["rx_s_per_gb"] = cpu_s / gigabytes
    if sent["bytes"] > 0:
        figures["tx_s_per_gb"] = sent["cpu_s"] / (sent["bytes"] * 1e-9)  # what is lost on the way was work, too
    watts = [look["watts"] for look in looks if look.get("watts") is not None]
    if watts:
        figures["watts"] = sum(watts) / len(watts)
        figures["gbps_per_w"] = figures["gbps"] / figures["watts"]
    return figures


def samples_of(looks, documents, begun, ended):
    """The meter's looks while packets flowed, and the goodput that the receiver saw, a value a second."""
    # The last look comes when the receiver ends; one right behind another divides a tick by next to nothing.
    looks = [look for place, look in enumerate(looks) if place == 0 or look["t"] - looks[place - 1]["t"] > INTERVAL_MS / 2000]
    samples = [{"t": look["t"], "cpus": look["cpus"], "machine_cpus": look["machine_cpus"], "watts": look["watts"], "gbps": None}
               for look in looks if begun - 0.3 <= look["time"] <= ended + 0.3]
    if not looks:
        return samples
    start = looks[0]["time"] - looks[0]["t"]
    flowing = [document for document in documents
               if "gbps" in document and not document.get("final") and begun - 0.3 <= start + document["seconds"] <= ended + 0.3]
    samples += [{"t": document["seconds"], "cpus": None, "machine_cpus": None, "watts": None, "gbps": document["gbps"]} for document in flowing]
    return sorted(samples, key=lambda sample: sample["t"])


def end(process):
    """`weft measure` passes the signal on to its command; killed at once it would leave it behind."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(weft, transport, streams, mbps, seconds, group=1, place=places.Loopback()):
    """(figures, samples, energy). `mbps` of each stream, 0 for as fast as it goes; `group`: packets of an RDMA Write."""
    with tempfile.TemporaryDirectory(prefix="weft-paper-") as folder:
        looks_path, report_path = pathlib.Path(folder, "looks.jsonl"), pathlib.Path(folder, "measure.json")
        said_path = pathlib.Path(folder, "recv.jsonl")
        receiver_words = [*place.receiver(), weft, "measure", "--samples", str(looks_path), "--interval", str(INTERVAL_MS), "--json",
                          "-o", str(report_path), "--", weft, "stream", "recv", "--bind", place.receiver_address, "--port", "0", "--transport", transport,
                          "--streams", str(streams), "--once", "--json",
                          # Whatever becomes of its sender and of this program, it ends.
                          "--duration", str(seconds + DELAY + START_LIMIT + END_LIMIT)]
        with open(said_path, "w+", encoding="utf-8") as said:
            receiver = subprocess.Popen(receiver_words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.PIPE, text=True)
            try:
                port = await_port(receiver, said_path)
                sender_words = [*place.sender(), weft, "stream", "send", f"{place.receiver_address}:{port}", "--transport", transport, "--streams", str(streams),
                                "--rate", str(mbps), "--duration", str(seconds + DELAY), "--delay", str(DELAY), "--json",
                                "--packets-per-write", str(group)]
                before = time.time()
                sent_text = send(receiver, sender_words, seconds + DELAY + END_LIMIT)
            finally:
                end(receiver)
                receiver.stderr.close()
        documents, received = last_document(said_path.read_text(encoding="utf-8"))
        _, sent = last_document(sent_text)
        looks = [json.loads(line) for line in looks_path.read_text(encoding="utf-8").splitlines()]
        energy = json.loads(report_path.read_text(encoding="utf-8"))["energy"]
    if "sending_s" not in sent:
        raise StreamFailed("weft stream send never said goodbye to its receiver")
    begun = before + sent["began_s"]
    ended = begun + sent["sending_s"]
    samples = samples_of(looks, documents, begun, ended)
    figures = figures_of(sent, documents, received, while_packets_left(looks, begun, ended), streams, streams * mbps * 1e-3)
    energy.pop("sources", None)
    if "watts" in figures:
        energy = {"source": energy.get("source"), "of": energy.get("of"), "watts": figures["watts"]}
    return figures, samples, energy


def exchange(weft, transport, receiver_words, sender_words, limit):
    """The last documents of receiver and sender of one stream on loopback, without a meter."""
    with tempfile.NamedTemporaryFile("w+", prefix="weft-paper-", encoding="utf-8") as said:
        receiver = subprocess.Popen([weft, "stream", "recv", "--bind", "127.0.0.1", "--port", "0", "--transport", transport, "--once", "--json",
                                     "--duration", str(limit), *receiver_words], stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.PIPE, text=True)
        try:
            port = await_port(receiver, pathlib.Path(said.name))
            sent = send(receiver, [weft, "stream", "send", f"127.0.0.1:{port}", "--transport", transport, "--json", *sender_words], limit)
        finally:
            end(receiver)
            receiver.stderr.close()
        said.seek(0)
        return last_document(said.read())[1], last_document(sent)[1]


def send(receiver, sender_words, limit):
    """What the sender said. Both have ended then, and well."""
    try:
        sender = subprocess.run(sender_words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit)
        if sender.returncode != 0:
            raise StreamFailed(sender.stderr.strip() or f"weft stream send ended with {sender.returncode}")
        _, errors = receiver.communicate(timeout=END_LIMIT)
    except subprocess.TimeoutExpired:
        raise StreamFailed("weft stream did not end in time") from None
    if receiver.returncode != 0:
        raise StreamFailed(errors.strip() or f"weft stream recv ended with {receiver.returncode}")
    return sender.stdout


def await_port(receiver, said_path):
    until = time.monotonic() + START_LIMIT
    while time.monotonic() < until:
        for line in said_path.read_text(encoding="utf-8").splitlines():
            try:
                document = json.loads(line)
            except ValueError:
                continue  # still being written
            if document.get("event") == "listening":
                return document["port"]
        if receiver.poll() is not None:
            raise StreamFailed(receiver.stderr.read().strip() or "weft stream recv did not start")
        time.sleep(0.05)
    raise StreamFailed("weft stream recv does not listen")


class Fastest:
    """The highest rate at which one stream loses nothing: as fast as it goes where that loses nothing, else the highest rung of a
    ladder of rates. The next repetition begins where the last one ended."""

    def __init__(self, run_at, runs=ladder.RUNS):
        self.run_at = run_at  # (figures, samples, energy) at so many Mb/s, 0 for as fast as it goes
        self.runs = runs      # on the ladder, of one repetition
        self.rung = None      # where the last search ended

    def attempt(self, mbps, tried):
        """What run_at() gave, and whether that was without loss."""
        try:
            result = self.run_at(mbps)
        except StreamFailed as failure:
            tried.append({"mbps": mbps, "error": str(failure).splitlines()[-1]})
            return None, False
        figures = result[0]
        holds = kept.is_sustained([{"figures": figures}])
        tried.append({"mbps": mbps, "gbps": figures["gbps"], "lost_percent": figures["lost_percent"], "sustained": holds})
        return result, holds

    def search(self, tried):
        """As run(); each run is noted in `tried`."""
        start, stride = self.rung, 1
        if start is None:
            result, holds = self.attempt(0, tried)
            if holds:
                return result
            start, stride = ladder.rung_below(1000 * result[0]["gbps"] if result else 0), ladder.STRIDE

        def on_rung(rung):
            result, holds = self.attempt(ladder.mbps_of(rung), tried)
            return result if holds else None

        rung, found = ladder.climb(on_rung, start, stride, self.runs)
        if found is None:
            errors = [attempt["error"] for attempt in tried if "error" in attempt]
            raise StreamFailed(errors[-1] if errors else f"it lost packets even at {tried[-1]['mbps']:.0f} Mb/s")
        self.rung = rung
        return found
