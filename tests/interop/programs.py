"""What weft and siw are made to do with each other. A case is a function of the world and of the side that serves."""

import re
import time

from sides import Failed, ports

SERVERS = ("siw", "weft")
JUMBO = 9000  # a sixth of the FPDUs, which cost an emulated machine the most where much is moved


def other(side):
    return SERVERS[1 - SERVERS.index(side)]


class Case:
    def __init__(self, name, run, options=None, crc=("on", "off"), servers=SERVERS, cpus=(1, 2), seconds=120,
                 traced=False, mtu=1500):
        self.name = name
        self.run = run
        self.options = options or {}
        self.crc = crc
        self.servers = servers
        self.cpus = cpus
        self.seconds = seconds
        self.mtu = mtu  # of the link
        self.traced = traced  # a failure shows the frames as weft saw them


def wants(pattern):
    return lambda text: None if re.search(pattern, text) else f"the client's output has nothing like /{pattern}/"


def pair(server, client, good=None):
    """The server, then the client, and both must end well. {addr} is the server's address, {port} a free port."""

    def run(world, serving):
        port = next(ports)
        fill = lambda text: text.format(addr=world.address(serving), port=port).split()
        passive = world.serve(serving, fill(server), port)
        active = world.start(other(serving), fill(client))
        world.succeed(active)
        world.succeed(passive)
        if good and (complaint := good(active.text())):
            raise Failed(complaint)

    return run


def both_at_once(server, client):
    """As pair(), of two pairs: each side serves one. Their pauses do not add up."""

    def run(world, _serving):
        processes = []
        for serving in SERVERS:
            port = next(ports)
            fill = lambda text: text.format(addr=world.address(serving), port=port).split()
            processes.append(world.serve(serving, fill(server), port))
            processes.append(world.start(other(serving), fill(client)))
        for process in processes:
            world.succeed(process)

    return run


def rping():
    def case(name, size, count, make=pair, **where):
        both = f"-a {{addr}} -p {{port}} -V -C {count} -S {size}"
        return Case(f"rping.{name}", make(f"rping -s {both}", f"rping -c {both}"), **where)

    each = {"make": both_at_once, "servers": ("each",)}
    yield case("23", 23, 1000, **each)  # its least
    yield case("4k", 4096, 1000, crc=("on",), cpus=(2,), **each)
    yield case("64k", 65535, 1000, crc=("on",), cpus=(2,), mtu=JUMBO, **each)  # its most
    yield case("64k_fewer", 65535, 200, crc=("off",))


def perftest():
    """Sizes to 8 MB, of few messages: an emulated machine moves some ten megabytes in a second, without CRC, and with it
    far fewer; five are perftest's least."""
    for verb in ("write", "read", "send"):
        # Its messages say which protocol to use by the transport of the device.
        options = {"WEFT_IDENTITY": "iwarp"} if verb == "send" else {}
        for kind in ("bw", "lat"):
            # What goes both ways anyhow takes one role.
            at_most = {"servers": ("weft" if verb == "send" else "siw",)} if kind == "lat" and verb != "read" else {}
            sizes = [
                ("7", 7, 100, {"crc": ("on",)}),
                ("64k", 65521, 20, {}),
                ("8m", 8388608, 5, {"crc": ("off",), "cpus": (2,), "mtu": JUMBO, **at_most}),
            ]
            if kind == "bw":
                # With CRC weft sends the Writes and answers the Reads, siw sends the Sends.
                serves = "siw" if verb == "write" else "weft"
                sizes.append(("8m_crc", 8388608, 5, {"crc": ("on",), "cpus": (2,), "servers": (serves,)}))
            if (verb, kind) == ("write", "bw"):
                sizes.append(("8m_1_cpu", 8388608, 5, {"cpus": (1,), "crc": ("off",), "servers": ("siw",)}))
            for name, size, count, where in sizes:
                both = f"ib_{verb}_{kind} -R -F -p {{port}} -s {size} -n {count}"
                yield Case(f"ib_{verb}_{kind}.{name}", pair(both, f"{both} {{addr}}", wants(rf"\n *{size} +{count} ")),
                           options=options, **where)


def cut_anywhere(run):
    """The link gets TCP's segments as they would be on a cable: the kernel does not leave it to the guest to cut them."""

    def with_short_packets(world, serving):
        world.cut_segments(True)
        try:
            run(world, serving)
        finally:
            world.cut_segments(False)

    return with_short_packets


def connections():
    both = "ib_send_bw -R -F -p {port} -s 10 -n 5000"
    yield Case("ib_send_bw.padded_in_segments", cut_anywhere(pair(both, both + " {addr}", wants(r"\n *10 +5000 "))),
               options={"WEFT_IDENTITY": "iwarp"}, crc=("on",), servers=("siw",))
    yield Case("ucmatose", pair("ucmatose -p {port}", "ucmatose -s {addr} -p {port}", wants("return status 0")))
    many = "-c 16 -C 10 -S 4000 -p {port}"
    yield Case("ucmatose.many", pair(f"ucmatose {many}", f"ucmatose -s {{addr}} {many}", wants("return status 0")),
               crc=("on",))
    yield Case("rdma_client", pair("rdma_server -p {port}", "rdma_client -s {addr} -p {port}",
                                       wants("rdma_client: end 0")))
    yield Case("ucmatose.both_kinds_at_once", serve_both_kinds, crc=("on",))
    for victim in ("server", "client"):
        yield Case(f"rping.killed_{victim}", kill_rping(victim), crc=("on",))
    yield Case("rping.persistent", persistent_rping, crc=("on",))


def serve_both_kinds(world, serving):
    """One server with two connections, one from each kind, and traffic on both."""
    port = next(ports)
    passive = world.serve(serving, f"ucmatose -c 2 -C 100 -S 20000 -p {port}".split(), port)
    client = f"ucmatose -s {world.address(serving)} -C 100 -S 20000 -p {port}".split()
    for process in [*(world.start(side, client) for side in SERVERS), passive]:
        world.succeed(process)


def kill_rping(victim):
    """In the middle of its traffic. The other one hears of it and, on weft, ends by itself, with an error or without, but not by
    a signal; on siw rping may sleep over its own end."""

    def run(world, serving):
        port = next(ports)
        both = f"-a {world.address(serving)} -p {port} -C 1000000 -S 50000"
        passive = world.serve(serving, f"rping -s {both}".split(), port)
        active = world.start(other(serving), f"rping -c {both}".split())
        time.sleep(1)
        dies, lives = (passive, active) if victim == "server" else (active, passive)
        if lives.poll(0) is not None:
            raise Failed(f"it ended too early: {' '.join(lives.command)}")
        dies.end()
        while lives.name == "weft" or "DISCONNECT EVENT" not in lives.text():
            lives.poll(time.monotonic() + 0.1)
            if world.no_crash(lives) is not None:
                return
            if time.monotonic() > world.until:
                raise Failed(f"it never hears of the end: {' '.join(lives.command)}")

    return run


def persistent_rping(world, serving):
    """A server that stays, with a client that is killed and others that are not."""
    port = next(ports)
    address = world.address(serving)
    server = world.serve(serving, f"rping -s -P -a {address} -p {port}".split(), port)
    dies = world.start(other(serving), f"rping -c -a {address} -p {port} -C 1000000 -S 50000".split())
    time.sleep(1)
    clients = [world.start(side, f"rping -c -a {address} -p {port} -C 200 -V".split()) for side in SERVERS]
    dies.end()
    for client in clients:
        world.succeed(client)
    # The others may be served before the server hears of the one that died.
    server.poll(time.monotonic() + 0.5)
    if (status := world.no_crash(server)) is not None:
        raise Failed(f"it does not stay, exit status {status}: {' '.join(server.command)}")


def all_programs():
    return [*rping(), *connections(), *perftest()]
