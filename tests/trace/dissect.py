"""What tshark's dissectors for iWARP make of a capture: start-up frames, FPDUs, and everything that they did not like."""

import functools
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree
from typing import NamedTuple, Optional

# Nothing but these may look at the bytes: to a guess that comes first, random payload can be anything.
PROTOCOLS = {"frame", "eth", "ethertype", "raw", "ip", "ipv6", "tcp", "iwarp_mpa", "iwarp_ddp_rdmap", "data"}

# Of what the dissectors remark these are no faults. They know RFC 5044 alone: RFC 6581 brought revision 2 and the flag S, and
# weft asks for its extension in another reserved bit (spec/mpa 2.1). And connections begin and end.
NO_FAULTS = {
    "Rev field is NOT set to one as required by RFC 5044",
    "Res field is NOT set to zero as required by RFC 5044",
    "Reject bit set by Responder",
    "This frame initiates the connection closing",
    "This frame undergoes the connection closing",
}
NO_FAULTS_BEGIN = ("Connection establish", "Connection finish")

# Of the kernel's own traffic on the wire these say nothing about weft.
NO_FAULTS_ON_THE_WIRE = {
    "TCP window specified by the receiver is now completely full",
    "TCP Zero Window segment",
    "TCP window update",
    "Connection reset (RST)",
    # A busy machine lets timers run out.
    "This frame is a (suspected) retransmission",
    "This frame is a (suspected) fast retransmission",
    "This frame is a (suspected) spurious retransmission",
    "This frame is a (suspected) out-of-order segment",
    "D-SACK Sequence",
    # It comes later; what does not come at all is told by tcpdump, and by the FPDUs.
    "Previous segment(s) not captured (common at capture start)",
    "ACKed segment that wasn't captured (common at capture start)",
}
NO_FAULTS_BEGIN_ON_THE_WIRE = ("Duplicate ACK (#",)


class StartUp(NamedTuple):
    """An MPA Request or Reply."""

    source: str
    target: str
    is_request: bool
    revision: int
    crc: bool
    markers: bool
    rejected: bool
    private_data: int


class Fpdu(NamedTuple):
    opcode: int
    last: bool
    ulpdu: int
    stag: Optional[int] = None
    offset: Optional[int] = None
    queue: Optional[int] = None
    msn: Optional[int] = None
    message_offset: Optional[int] = None
    read_size: Optional[int] = None
    atomic: Optional[int] = None  # which one
    error: Optional[tuple] = None  # of a Terminate: layer, type, code
    crc: Optional[int] = None  # as it was sent
    crc_checked: bool = False

    def payload(self):
        return self.ulpdu - (14 if self.stag is not None else 18)


class Capture:
    """A file, decoded. `faults` is empty when tshark has nothing to say against it."""

    def __init__(self, file, on_the_wire=False):
        self.file = file
        self.start_ups = []
        self.start_times = []  # of each, in ns
        self.fpdus = {}  # (source, target): [Fpdu]
        self.times = {}  # the same for the frame in which each one is complete, in ns
        self.cut = {}  # (source, target): [ULPDU_Length] of FPDUs that the snap length has cut
        self.packets = 0
        self.faults = []
        self.cut_short = False
        self._no_faults = NO_FAULTS | (NO_FAULTS_ON_THE_WIRE if on_the_wire else set())
        self._no_faults_begin = NO_FAULTS_BEGIN + (NO_FAULTS_BEGIN_ON_THE_WIRE if on_the_wire else ())
        with tempfile.TemporaryFile() as said:
            # Segments that came out of order, or again, are put in order first.
            order = ["-o", "tcp.reassemble_out_of_order:TRUE"] if on_the_wire else []
            with subprocess.Popen(tshark(*order, "-r", file, "-T", "pdml", "-J",
                                         "frame ip ipv6 tcp iwarp_mpa iwarp_ddp_rdmap _ws.malformed _ws.short _ws.expert"),
                                  stdout=subprocess.PIPE, stderr=said, env=environment()) as process:
                for _, element in xml.etree.ElementTree.iterparse(process.stdout):
                    if element.tag == "packet":
                        self._packet(element)
                        element.clear()
            said.seek(0)
            words = said.read().decode(errors="replace")
        self.cut_short = "cut short" in words
        if process.returncode != 0 and not self.cut_short:
            self.faults.append(f"tshark ended with {process.returncode}: {words}")

    def connections(self):
        """The pairs (initiator, responder), in the order of their Requests."""
        return [(s.source, s.target) for s in self.start_ups if s.is_request]

    def _packet(self, packet):
        self.packets += 1
        number = packet.find("proto[@name='geninfo']/field[@name='num']").get("show")
        found = {}
        for field in packet.iter("field"):
            found.setdefault(field.get("name"), field)
        source, target = (f"{ip.get('show')}:{found[f'tcp.{side}port'].get('show')}" if ip is not None else "?"
                          for side, ip in (("src", found.get("ip.src", found.get("ipv6.src"))),
                                           ("dst", found.get("ip.dst", found.get("ipv6.dst")))))
        for field in packet.iter("field"):
            if field.get("name") == "_ws.expert.message":
                message = field.get("show")
                if message not in self._no_faults and not message.startswith(self._no_faults_begin):
                    self.faults.append(f"packet {number}, {source} to {target}: {message}")
        is_short = False
        for proto in packet.iter("proto"):
            if proto.get("name") == "_ws.malformed":
                self.faults.append(f"packet {number}, {source} to {target}: {proto.get('showname')}")
            is_short = is_short or proto.get("name") == "_ws.short"
        seconds, _, fraction = found["frame.time_epoch"].get("show").partition(".")
        time = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
        self._frames(packet, number, (source, target), time, is_short)

    def _frames(self, packet, number, way, time, is_short):
        protos = [p for p in packet.iter("proto") if p.get("name") in ("iwarp_mpa", "iwarp_ddp_rdmap")]
        for mpa, above in zip(protos, protos[1:] + [None]):
            if mpa.get("name") != "iwarp_mpa":
                continue
            values = {f.get("name"): f for f in mpa.iter("field")}
            number_of = functools.partial(_number, values)
            if "iwarp_mpa.fpdu" not in values:
                self.start_ups.append(StartUp(*way, "iwarp_mpa.req" in values, number_of("iwarp_mpa.rev"),
                                              bool(number_of("iwarp_mpa.crc_flag")), bool(number_of("iwarp_mpa.marker_flag")),
                                              bool(number_of("iwarp_mpa.rej_flag")), number_of("iwarp_mpa.pdlength")))
                self.start_times.append(time)
                continue
            if above is None or above.get("name") != "iwarp_ddp_rdmap":
                if is_short:
                    self.cut.setdefault(way, []).append(number_of("iwarp_mpa.ulpdulength"))
                else:
                    self.faults.append(f"packet {number}: an FPDU without a DDP segment")
                continue
            fpdu = self._fpdu(values, {f.get("name"): f for f in above.iter("field")}, number, way)
            self.fpdus.setdefault(way, []).append(fpdu)
            self.times.setdefault(way, []).append(time)

    def _fpdu(self, mpa, ddp, number, way):
        check = mpa.get("iwarp_mpa.crc_check")
        if check is not None and "Good" not in check.get("showname"):
            self.faults.append(f"packet {number}, {way[0]} to {way[1]}: {check.get('showname')}")
        of = functools.partial(_number, ddp)
        for version in ("iwarp_ddp.dv", "iwarp_rdma.version"):
            if of(version) != 1:
                self.faults.append(f"packet {number}: {version} is {of(version)}")
        if of("iwarp_ddp.rsvd") != 0:
            self.faults.append(f"packet {number}: reserved bits of DDP are {of('iwarp_ddp.rsvd'):#x}")
        tagged = of("iwarp_ddp.tagged_flag") == 1
        opcode = of("iwarp_rdma.opcode")
        error = None
        if opcode == 7:
            error = (of("iwarp_rdma.term_layer"),
                     next((of(n) for n in ddp if n.startswith("iwarp_rdma.term_etype")), None),
                     next((of(n) for n in ddp if n.startswith("iwarp_rdma.term_errcode")), None))
        crc = check if check is not None else mpa.get("iwarp_mpa.crc")
        return Fpdu(opcode, of("iwarp_ddp.last_flag") == 1, _number(mpa, "iwarp_mpa.ulpdulength"),
                    of("iwarp_ddp.stag") if tagged else None, of("iwarp_ddp.tagged_offset") if tagged else None,
                    None if tagged else of("iwarp_ddp.qn"), None if tagged else of("iwarp_ddp.msn"),
                    None if tagged else of("iwarp_ddp.mo"), of("iwarp_rdma.rdmardsz"), of("iwarp_rdma.atomic.opcode"), error,
                    int(crc.get("value"), 16), check is not None)


def _number(fields, name):
    field = fields.get(name)
    return int(field.get("show"), 0) if field is not None else None


def installed():
    return shutil.which("tshark") is not None


def tshark(*arguments):
    # A port that happens to be that of another protocol says nothing.
    return ["tshark", "-n", "-o", "tcp.try_heuristic_first:TRUE", *arguments]


@functools.cache
def environment():
    """One without the user's own settings, and with nothing but PROTOCOLS enabled."""
    folder = tempfile.TemporaryDirectory(prefix="weft-tshark-")
    settings = {**os.environ, "WIRESHARK_CONFIG_DIR": folder.name, "HOME": folder.name}
    known = subprocess.run(["tshark", "-G", "protocols"], check=True, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, env=settings).stdout
    names = [line.split("\t")[2] for line in known.splitlines()]
    with open(f"{folder.name}/disabled_protos", "w", encoding="utf-8") as f:
        f.writelines(f"{name}\n" for name in names if name not in PROTOCOLS and not name.startswith("_ws."))
    environment.folder = folder  # goes away with the process
    return settings
