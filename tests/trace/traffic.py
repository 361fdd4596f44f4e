"""Which programs are traced, and which messages their captures must show."""

from typing import NamedTuple

# Names of opcodes (spec/rdmap 1.4). tshark knows those of RFC 5040 and 7306; the last three are weft's own, to it they are
# reserved: it prints their number and what every FPDU has, and nothing of what they mean.
WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SE, SEND_SE_INVALIDATE, TERMINATE = range(8)
IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE = range(8, 12)
SEND_IMMEDIATE, SEND_SE_IMMEDIATE, DELIVERED = range(12, 15)
OF_WEFT_ALONE = {SEND_IMMEDIATE, SEND_SE_IMMEDIATE, DELIVERED}

READ_REQUEST_SIZE, IMMEDIATE_SIZE, ATOMIC_REQUEST_SIZE, ATOMIC_RESPONSE_SIZE = 28, 8, 52, 12


class Message(NamedTuple):
    opcode: int
    size: int  # of its payload


class Case:
    """A server and a client, and the messages that each of them sends. {addr} and {port} as in tests/apps."""

    def __init__(self, name, server, client, by_client=(), by_server=(), crc=True, environment=(), address=None, good=None):
        self.name = name
        self.server = server.split()
        self.client = client.split()
        self.by_client = [Message(*m) for m in by_client]
        self.by_server = [Message(*m) for m in by_server]
        self.crc = crc
        self.environment = environment
        self.address = address  # on this host alone
        self.good = good or (lambda by_client, by_server: None)  # more questions to the FPDUs


def read_sizes(size):
    def good(by_client, _by_server):
        wrong = [f.read_size for f in by_client if f.opcode == READ_REQUEST and f.read_size != size]
        return f"Read Requests for {wrong} bytes, not {size}" if wrong else None

    return good


def atomics(kind):
    def good(by_client, _by_server):
        wrong = [f.atomic for f in by_client if f.opcode == ATOMIC_REQUEST and f.atomic != kind]
        return f"Atomic Requests of the kinds {wrong}, not {kind}" if wrong else None

    return good


def both(program, more=""):
    return f"{program} -p {{port}} {more}", f"{program} -p {{port}} {more} {{addr}}"


def rping(address="{addr}", rounds=5, size=1000):
    # Each round: the client names its source, the server reads it and says go on; the client names its sink, the server
    # writes there and says go on.
    words = f"-a {address} -p {{port}} -C {rounds} -S {size} -V"
    advertisement, go_on = 16, 16
    return {"server": f"rping -s {words}", "client": f"rping -c {words}",
            "by_client": [(SEND, advertisement), (READ_RESPONSE, size), (SEND, advertisement)] * rounds,
            "by_server": [(READ_REQUEST, READ_REQUEST_SIZE), (SEND, go_on), (WRITE, size), (SEND, go_on)] * rounds}


def cases():
    write, pad = 100_000, 4099
    yield Case("ib_write_bw", *both("ib_write_bw", f"-n 20 -s {write}"), by_client=[(WRITE, write)] * 20)
    yield Case("ib_write_lat", *both("ib_write_lat", "-n 50 -s 64"), by_client=[(WRITE, 64)] * 50, by_server=[(WRITE, 64)] * 50)
    yield Case("ib_send_bw", *both("ib_send_bw", f"-n 30 -s {pad}"), by_client=[(SEND, pad)] * 30)
    yield Case("ib_send_lat", *both("ib_send_lat", "-n 30 -s 1"), by_client=[(SEND, 1)] * 30, by_server=[(SEND, 1)] * 30)
    read = 150_001
    yield Case("ib_read_bw", *both("ib_read_bw", f"-n 20 -s {read}"), by_client=[(READ_REQUEST, READ_REQUEST_SIZE)] * 20,
               by_server=[(READ_RESPONSE, read)] * 20, good=read_sizes(read))
    for name, kind, number in (("add", "FETCH_AND_ADD", 0), ("swap", "CMP_AND_SWAP", 2)):
        yield Case(f"ib_atomic_bw.{name}", *both("ib_atomic_bw", f"-n 20 -A {kind}"),
                   by_client=[(ATOMIC_REQUEST, ATOMIC_REQUEST_SIZE)] * 20,
                   by_server=[(ATOMIC_RESPONSE, ATOMIC_RESPONSE_SIZE)] * 20, good=atomics(number))
    yield Case("rping", **rping())
    yield Case("rping.ipv6", **rping(), address="::1")
    yield Case("ibv_rc_pingpong", *both("ibv_rc_pingpong", "-n 50 -s 70000"), by_client=[(SEND, 70_000)] * 50,
               by_server=[(SEND, 70_000)] * 50)
    yield Case("crc_off", *both("ib_write_bw", "-n 10 -s 65536"), by_client=[(WRITE, 65_536)] * 10, crc=False,
               environment=("WEFT_CRC=off",))
