"""What a case is, and what it may do with the peer."""

import socket
import time
from dataclasses import dataclass, field
from typing import Callable

import wire
from connection import Raw
from peer import PeerError

REGISTRY = []
PATIENCE_MS = 15_000


@dataclass
class Difference:
    """What one of the peers does instead, and why that is known. Not `always`: it is a race, and may go well. Not `asked`: the peer
    does not survive it, so that it is not asked again; what it did then is `sees`."""
    sees: str
    why: str
    always: bool = True
    asked: bool = True


@dataclass
class Case:
    """`run` returns what is seen from outside, in words; `expects` are the words for what the RFC wants, or several of them
    where it leaves a choice. `weft` are those that weft has to choose from, and `siw` the one that siw does choose. `options` are
    weft's, and so is what it `counts` (counted.py). `differs` and `skips` are by the peer's name."""
    name: str
    rfc: str
    sentence: str
    run: Callable
    expects: tuple
    differs: dict = field(default_factory=dict)
    skips: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    weft: tuple = ()
    siw: tuple = ()
    counts: str = ""

    def wanted(self, name):
        """What is right for the peer of that name."""
        return self.weft if name == "weft" else self.siw


@dataclass
class Result:
    """verdict: conforms, differs (as is known), skipped, FAILED."""
    case: Case
    verdict: str
    observed: str
    seconds: float = 0.0
    why: str = ""


def not_asked(sees, why):
    """For `siw` of case()."""
    return sees, why, True, False


def case(name, rfc, sentence, expects, *, differs=None, skips=None, options=None, siw=None, weft=None,
         counts=""):
    """Decorates the function that runs the case. `siw`: what it chooses of `expects`, where these are several; or short for its
    difference, (what is seen, why[, always[, asked]])."""
    expects = (expects,) if isinstance(expects, str) else tuple(expects)
    if weft is None and len(expects) == 1:
        weft = expects[0]
    weft = (weft,) if isinstance(weft, str) else tuple(weft or ())
    if not weft or not set(weft) <= set(expects):
        raise ValueError(f"{name}: weft has to show one of {expects}, and not {weft}")
    known = {k: Difference(*v) for k, v in (differs or {}).items()}
    chosen = expects
    if isinstance(siw, str):
        chosen = (siw,)
    elif siw:
        known["siw"] = Difference(*siw)
    elif len(expects) > 1 and "siw" not in {**known, **(skips or {})}:
        raise ValueError(f"{name}: which of {expects} does siw show?")
    if not set(chosen) <= set(expects):
        raise ValueError(f"{name}: siw differs if it does not show one of {expects}")

    def register(run):
        REGISTRY.append(Case(name, rfc, sentence, run, expects, known, skips or {}, options or {}, weft, chosen, counts))
        return run

    return register


class Talk:
    """What a case has to work with. Everything is the case's own and ends with it."""

    def __init__(self, peer):
        self.peer = peer
        self.keys = peer.keys
        self.open = []
        self.asked = ""  # the Request as the program saw it
        self.reply = None
        self.request = None

    def end(self):
        for c in self.open:
            c.close()

    def ask(self, *words):
        return self.peer.ask(*words)

    def raw(self, sock):
        c = Raw(sock, self.peer.patience, self.peer.swapped)
        self.open.append(c)
        return c

    # --- the peer as Responder

    def dial(self, mss=None):
        """A connection to a listener of the program's; nothing is said yet."""
        port = int(self.ask("listen"))
        s = socket.socket()
        if mss:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
        s.settimeout(self.peer.patience)
        s.connect((self.peer.address, port))
        return self.raw(s)

    def asks(self, request, ird=8, ord=8, data=b"", receives=4, size=256, mss=None, pieces=None):
        """Sends the Request, in pieces if so; the program accepts. The connection, with the Reply in self.reply."""
        c = self.dial(mss)
        c.says(*(pieces or [request]))
        self.asked = self.ask("request", receives, size, PATIENCE_MS)
        self.ask("accept", ird, ord, data)
        self.reply = c.start()
        if self.reply:
            c.crc = bool((self.reply.flags | request[16]) & wire.C)
            c.markers = bool(request[16] & wire.M)
        return c

    def answered(self, request, **more):
        """What the Reply to such a Request looks like, or the end of the connection, in words."""
        c = self.dial()
        c.says(request)
        return self.verdict(c, **more)

    def verdict(self, c, ird=8, ord=8):
        """A Request that is good comes up to the program, which accepts; one that is not ends the connection, or nothing."""
        patience = c.socket.gettimeout()
        until = time.monotonic() + patience
        c.socket.settimeout(0.03)
        while not c.more() and not c.ended and time.monotonic() < until:
            self.asked = self.ask("request", 1, 64, 30)
            if self.asked != "none":
                self.ask("accept", ird, ord, b"")
                break
        c.socket.settimeout(patience)
        self.reply = c.start()
        if self.reply is None:
            return f"no Reply, {c.ended or 'open'}"
        return self.reply.text() + (f", {c.end()}" if self.reply.flags & wire.R else "")

    def connected(self, flags=wire.C | wire.S, opening=True, **more):
        """As plain as can be: full operation, with the CRC; both sides may send."""
        c = self.asks(wire.request(flags, **{k: more.pop(k) for k in ("data",) if k in more}), **more)
        if self.event() != "ESTABLISHED":
            raise PeerError("not established")
        c.socket.settimeout(self.peer.quick)
        if opening:
            c.says_ulpdus(wire.write(1, 0))
        return c

    # --- the peer as Initiator

    def listen(self):
        s = socket.create_server((self.peer.own_address, 0))
        s.settimeout(self.peer.patience)
        self.open.append(s)
        return s

    def called(self, ird=8, ord=8, data=b"", receives=4, size=256, listener=None):
        """The program connects; the connection, with the Request in self.request."""
        listener = listener or self.listen()
        self.ask("connect", listener.getsockname()[1], receives, size, ird, ord, data)
        c = self.raw(listener.accept()[0])
        self.request = c.start()
        return c

    def calling(self, flags=wire.C | wire.S, pieces=None, reply=None, rtr=0, kinds=0, **more):
        """Called, and answered, with a Reply of these flags unless one is given."""
        c = self.called(**more)
        frame = reply or wire.reply(flags, rtr=rtr, kinds=kinds)
        c.says(*(pieces(frame) if pieces else [frame]))
        c.crc = bool((self.request.flags | frame[16]) & wire.C)
        c.markers = bool(frame[16] & wire.M)
        return c

    def initiated(self, **more):
        """Full operation: the program has sent its first message, so that both sides may send."""
        c = self.calling(**more)
        if (event := self.event()) != "ESTABLISHED":
            raise PeerError(f"{event} and not established")
        c.socket.settimeout(self.peer.quick)
        self.ask("send", "plain", 4, 0)
        c.frame()
        self.done()
        return c

    # --- what the program sees

    def event(self):
        """The next event's name."""
        return self.ask("event").split()[0]

    def got(self, data=None):
        """The next completion of a receive. With `data`: whether it has these bytes."""
        try:
            words = self.ask("got").split()
        except PeerError as e:
            if str(e) != "no completion":
                raise
            return str(e)
        if words[0] != "success":
            # A receive that a message had begun to fill: nothing in the RFCs tells which status it has.
            general = ["general-error"] if self.peer.name == "siw" else []
            return "flushed" if words[0] in ["Work-Request-Flushed-Error", "WR-flushed", *general] else words[0]
        values = dict(w.split("=") for w in words[1:])
        text = f"got {values['length']}"
        if data is not None and values["data"] != (data.hex() or "-"):
            text += " wrong bytes"
        return text + "".join(f" {k}={v}" for k, v in values.items() if k in ("imm",)) + (" inv" if "inv" in values else "")

    def done(self):
        return self.ask("done")

    def placed(self):
        """How many bytes of memory changed; those outside the window are nobody's to change."""
        inside, outside = self.ask("changed").split()
        text = f"{inside} bytes placed" if int(inside) else "nothing placed"
        return text if outside == "0" else f"{text}, {outside} AROUND THE WINDOW"

    def window(self, offset, n):
        return bytes.fromhex(self.ask("window", offset, n))

    def original(self, offset, n):
        """What is in the window before anybody writes."""
        return wire.pattern(16384 + offset + n, 3)[16384 + offset:]

    # --- bytes that are right

    @property
    def to(self):
        return self.keys["to"]

    def write(self, offset, payload, key="rw", **more):
        return wire.write(self.keys[key], self.to + offset, payload, **more)

    def read(self, msn=1, size=64, offset=0, key="rw", sink=0x1234, sink_to=0x5000, **more):
        return wire.read_request(msn, sink, sink_to, size, self.keys[key], self.to + offset, **more)


def seen(*texts):
    return "; ".join(texts)
