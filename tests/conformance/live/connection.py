"""The driver's side of a connection: a bare TCP socket that says and hears bytes."""

import fcntl
import socket
import struct
import termios
import time

import wire

MARKER_EVERY = 512
TCP_CLOSE = 7  # a state in Linux's tcp_info


class Raw:
    """Both for connections that were dialled and for those that were accepted."""

    def __init__(self, sock, patience, swapped):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(patience)
        self.socket = sock
        self.swapped = swapped
        self.kept = b""
        self.ended = ""  # "closed" by a FIN, or "reset", once it is
        self.lost = False  # sending found a reset: it is told once, and reading sees an end like any other
        self.crc = True
        self.markers = False
        self.position = 0  # in the peer's stream of FPDUs
        self.bad_marks = 0

    def segment(self):
        """The EMSS, of both directions: what was asked for by TCP_MAXSEG, without TCP's timestamps."""
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)

    # --- out

    def says(self, *pieces):
        """Each piece in a segment of its own, as far as that can be had. What the peer does not want any more is lost."""
        for piece in pieces:
            try:
                self.socket.sendall(piece)
            except OSError:
                self.lost = True
                return

    def says_apart(self, *pieces):
        """Each piece is with the peer's TCP before the next one goes, so that nobody puts two of them together."""
        until = time.monotonic() + self.socket.gettimeout()
        for piece in pieces:
            self.says(piece)
            try:
                while struct.unpack("i", fcntl.ioctl(self.socket, termios.TIOCOUTQ, bytes(4)))[0] and time.monotonic() < until:
                    time.sleep(0.0005)
            except OSError:
                return

    def says_ulpdus(self, *ulpdus):
        """In one segment."""
        self.says(b"".join(wire.fpdu(u, self.crc) for u in ulpdus))

    def fin(self):
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self):
        self.socket.close()

    # --- in

    def more(self):
        """False when nothing came: the connection is over, or the peer stays silent."""
        if self.ended:
            return False
        try:
            some = self.socket.recv(1 << 16)
        except socket.timeout:
            return False
        except OSError:
            self.ended = "reset"
            return False
        self.kept += some
        if not some:
            self.ended = "reset" if self.lost else "closed"
        return bool(some)

    def taken(self):
        """Behind the peer's FIN: whether it takes all that was said, and this side's FIN. Closing over bytes that were not read
        is a reset for TCP, which may overtake what the peer said last."""
        self.fin()
        until = time.monotonic() + self.socket.gettimeout()
        while self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_CLOSE:
            if time.monotonic() > until:
                return False
            time.sleep(0.001)
        return self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0

    def hears(self, n):
        """The next `n` bytes, or fewer."""
        while len(self.kept) < n and self.more():
            pass
        some, self.kept = self.kept[:n], self.kept[n:]
        return some

    def is_silent(self, seconds):
        """Nothing comes for so long. Can only err on the side of silence."""
        patience = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        came = self.more()
        self.socket.settimeout(patience)
        return not came and not self.kept and not self.ended

    def asks_nothing(self, seconds):
        """As is_silent, in full operation: FPDUs that mean nothing may come."""
        patience = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        came = self.frame()
        self.socket.settimeout(patience)
        return came is None and not self.ended

    def start(self):
        """A start-up frame; None when there is none."""
        head = self.hears(20)
        if len(head) < 20:
            return None
        return wire.Start.parse(head + self.hears(struct.unpack(">H", head[18:])[0]))

    def words(self, n, raw):
        """So many bytes of the FPDU that begins at the mark `raw[0]`; what is read, markers too, goes behind raw[1]."""
        data = b""
        while len(data) < n:
            if self.markers and self.position % MARKER_EVERY == 0:
                mark = self.hears(4)
                if len(mark) < 4:
                    return None
                start = self.position - raw["start"] if raw["read"] else 0
                self.bad_marks += mark != struct.pack(">HH", 0, start)
                if not raw["read"]:
                    raw["start"] = self.position + 4
                raw["bytes"] += mark
                self.position += 4
            room = MARKER_EVERY - self.position % MARKER_EVERY if self.markers else n
            some = self.hears(min(room, n - len(data)))
            if not some:
                return None
            raw["bytes"] += some
            raw["read"] += len(some)
            self.position += len(some)
            data += some
        return data

    def frame(self, idle=False):
        """The next FPDU; None when none comes whole. Those that mean nothing are left out unless `idle`."""
        while True:
            raw = {"start": self.position, "bytes": b"", "read": 0}
            head = self.words(2, raw)
            if head is None:
                return None
            rest = self.words(wire.fpdu_size(struct.unpack(">H", head)[0]) - 2, raw)
            if rest is None:
                self.kept = raw["bytes"] + self.kept
                return None
            frame = wire.Frame.parse(head + rest)
            if self.markers:
                frame.crc_good = struct.unpack("<I", raw["bytes"][-4:])[0] == wire.crc32c(raw["bytes"][:-4])
            if idle or not frame.idle:
                return frame

    def frames(self, n):
        return [f for f in (self.frame() for _ in range(n)) if f]

    def describe(self, frame):
        text = frame.name
        if frame.op == wire.TERMINATE and len(frame.payload) >= 4:
            text += " {}/{}/{:02x}".format(*frame.error(self.swapped))
        if self.crc and not frame.crc_good:
            text += " with a wrong CRC"
        return text

    def end(self):
        """Everything up to the end, in words: "Terminate 1/1/00, closed"."""
        said = []
        while frame := self.frame():
            said.append(self.describe(frame))
        if self.kept:
            said.append(f"{len(self.kept)} bytes that are no FPDU")
        if self.ended == "closed" and not self.taken():
            self.ended = "reset"
        return ", ".join([*said, self.ended or "open"])
