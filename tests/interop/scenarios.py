"""Conversations of two interop_peers, written out word by word; peer/main.cc says what the words mean.

Comments cite docs/spec.
"""

from programs import Case, other
from sides import Failed, ports

ACCEPT = "accept accepted"
CONNECT = "connect established"
CLOSE = "disconnect disconnected drop"
CLOSED = "disconnected drop"
NOT_ON_PLAIN_IWARP = "is not possible on this connection: plain iWARP has none"
P2P = {"WEFT_P2P": "on"}
REVISION_1 = "trying again with MPA revision 1"
MORE_PRIVATE_DATA = {"WEFT_PRIVATE_DATA": "255", "WEFT_LOG": "info"}


def command(world, side, serving, port, script, times=1):
    return [world.peer(side), world.address(serving), str(port), "--times", str(times), *script.split()]


def begin(world, serving, server, client, times=1):
    """(passive, active), started. The server finds its request and the client its way before their words begin."""
    port = next(ports)
    passive = world.serve(serving, command(world, serving, serving, port, f"listen {server}", times), port)
    active = world.start(other(serving), command(world, other(serving), serving, port, client, times))
    return passive, active


def talk(server, client, times=1, weft_says="", never_says=None):
    """Both do what their words say, and weft's log has the sentence, if there is one, and has not the other one."""

    def run(world, serving):
        passive, active = begin(world, serving, server, client, times)
        world.succeed(active)
        world.succeed(passive)
        weft = active if serving == "siw" else passive
        if weft_says not in weft.text():
            raise Failed(f"weft does not say '{weft_says}'")
        if never_says and never_says in weft.text():
            raise Failed(f"weft says '{never_says}'")

    return run


def terminated(server, client, error, **more):
    """As talk(), and what ends the connection is weft's Terminate. siw reads it by its own layout, in which layer and type change
    places."""

    def siw_says(world):
        return [line.partition("] ")[2] for line in world.guest.steer("dmesg")[1].splitlines() if "] siw: got TERMINATE" in line]

    def run(world, serving):
        before = siw_says(world)
        talk(server, client, **more)(world, serving)
        layer, kind, code = error
        said, wanted = siw_says(world)[len(before):], [f"siw: got TERMINATE. layer {kind}, type {layer}, code {code}"]
        if said != wanted:
            raise Failed(f"siw's kernel says {said} and not {wanted}")

    return run


def before_the_reply(ends):
    """The client loses interest when the server has its Request and has not answered."""

    def run(world, serving):
        for _ in range(3):
            passive, active = begin(world, serving, f"request signalled {ACCEPT} {CLOSED}",
                                    f"resolve connect signalled {ends} sleep:0 signalled drop")
            world.says(passive, "signalled")
            active.signal("USR1")
            world.says(active, "sleep:0")
            passive.signal("USR1")
            world.succeed(passive)
            active.signal("USR1")
            world.succeed(active)

    return run


def openings():
    """Who speaks first, and who last."""
    ask, answer = "send:1000 done got:500", "got:1000 send:500 done"
    serves = f"request recv:1000 {ACCEPT} {answer} {CLOSED}"
    asks = f"resolve recv:500 {CONNECT} {ask} {CLOSE}"
    server_first = f"request recv:500 {ACCEPT} {ask} {CLOSED}", f"resolve recv:1000 {CONNECT} {answer} {CLOSE}"
    yield Case("talk.client_first", talk(serves, asks))
    # 2.4
    yield Case("talk.server_first", talk(*server_first))
    yield Case("talk.nothing_said", talk(f"request {ACCEPT} {CLOSED}", f"resolve {CONNECT} {CLOSE}"), crc=("on",))
    yield Case("talk.server_closes", talk(f"request recv:1000 {ACCEPT} {answer} {CLOSE}",
                                          f"resolve recv:500 {CONNECT} {ask} {CLOSED}"), crc=("on",))
    # spec/siw 2.5: siw may sleep over the first message.
    yield Case("talk.reconnected", talk(serves, asks, times=20), crc=("on",))
    # spec/siw 6.1: what was sent before the end arrives; receives that are left are flushed.
    # siw itself drops what its program did not wait for.
    for serving, waits in ("siw", ""), ("weft", "repeat:10:done"):
        yield Case("talk.sent_and_closed",
                   talk(f"request repeat:20:recv:5000 {ACCEPT} repeat:10:got:5000 {CLOSED.replace('drop', '')} "
                        "repeat:10:received:flushed drop", f"resolve {CONNECT} repeat:10:send:5000 {waits} {CLOSE}"),
                   servers=(serving,), crc=("on",))
    # spec/siw 2.5, 6.1: nor is a first message lost that siw sleeps over while the end comes.
    for name, ends in ("closed", CLOSE), ("dropped", "drop sleep:150"):
        yield Case(f"talk.one_message_and_{name}", talk(f"request recv:10 {ACCEPT} got:10 {CLOSED}",
                                                        f"resolve {CONNECT} send:10 done {ends}", times=10),
                   servers=("siw",), crc=("on",))
    # spec/mpa 2.4; spec/siw 2.6: a kernel with siw may die of an end right after the RTR frame.
    yield Case("p2p.client_first", talk(serves, asks), options=P2P, servers=("siw",))
    yield Case("p2p.server_first", talk(*server_first), options=P2P, servers=("siw",), crc=("on",))
    for name, script in {
        "closed_at_once": f"resolve {CONNECT} {CLOSE}",
        "dropped_at_once": f"resolve {CONNECT} drop sleep:150",
        "never_established": "resolve_bare connect:0 responded drop sleep:150",
    }.items():
        request = "request:0" if "bare" in script else "request"
        yield Case(f"p2p.{name}", talk(f"{request} {ACCEPT} {CLOSED}", script, times=5), options=P2P, servers=("siw",),
                   crc=("on",))
    for name, ends in ("failed", "fail_pair"), ("dropped", "drop"):
        yield Case(f"p2p.{name}_before_the_reply", before_the_reply(ends), options=P2P, servers=("siw",), crc=("on",))
    yield Case("p2p.exit_at_once", talk(f"request {ACCEPT} {CLOSED}", f"resolve {CONNECT} exit"), options=P2P,
               servers=("siw",), crc=("on",))


def refusals():
    yield Case("reject", talk("request reject drop", "resolve connect rejected drop"), crc=("on",))
    yield Case("reject.with_reason", talk("request reject:100 drop", "resolve connect rejected:100 drop"), crc=("on",))
    yield Case("reject.then_accept",
               talk(f"request reject:5 drop request recv:9 {ACCEPT} got:9 {CLOSED}",
                    f"resolve connect rejected:5 drop resolve {CONNECT} send:9 done {CLOSE}"), crc=("on",))

    def nobody_listens(world, serving):
        script = command(world, other(serving), serving, next(ports), "resolve connect_in_vain drop")
        world.succeed(world.start(other(serving), script))

    yield Case("nobody_listens", nobody_listens, crc=("on",))
    # spec/siw 2.7: siw takes 252 bytes next to the enhanced block, and its own programs are safe up to 251.
    # spec/siw 2.7, 2.13: beyond that siw resets the Request, and takes it in MPA revision 1, which has no block; then its listeners have no IRD.
    yield Case("private_data.253", talk(f"request:253 recv:10 {ACCEPT} got:10 disconnected drop",
                                        "resolve connect:253 established send:10 done read:50 done:remote_operation "
                                        "disconnected drop", weft_says=REVISION_1),
               servers=("siw",), crc=("on",), options=MORE_PRIVATE_DATA)
    yield Case("private_data.252", talk(f"request:252 recv:10 {ACCEPT} got:10 {CLOSED}",
                                        f"resolve connect:252 established send:10 done {CLOSE}", never_says=REVISION_1),
               servers=("siw",), crc=("on",), options=MORE_PRIVATE_DATA)
    yield Case("private_data.252", talk(f"request:251 recv:10 accept:252 accepted got:10 {CLOSED}",
                                        f"resolve connect:251 established:252 send:10 done {CLOSE}"),
               servers=("weft",), crc=("on",), options=MORE_PRIVATE_DATA)
    for n in (0, 248, 251):
        yield Case(f"private_data.{n}", talk(f"request:{n} recv:10 accept:{n} accepted got:10 {CLOSED}",
                                             f"resolve connect:{n} established:{n} send:10 done {CLOSE}"), crc=("on",),
                   options={"WEFT_PRIVATE_DATA": "251"})


def data():
    # spec/siw 3.2: siw leaves stale bytes in the pad. All remainders by four; below and above one FPDU.
    for n in (0, 1, 2, 3, 1425, 100_001, 1_048_576):
        yield Case(f"remote.{n}", talk(f"request recv:1 {ACCEPT} got:1 was_written:{n} send:1 done {CLOSED}",
                                       f"resolve recv:1 {CONNECT} read:{n} done was_read:{n} write:{n} done send:1 done "
                                       f"got:1 {CLOSE}"), crc=("on", "off") if n == 1425 else ("on",))
    # spec/mpa 2.3: reads up to the limit that was agreed on, all at once, with Writes and Sends between.
    yield Case("remote.many", talk(f"request repeat:16:recv:7 {ACCEPT} repeat:16:got:7 send:1 done {CLOSED}",
                                   f"resolve recv:1 {CONNECT} repeat:16:read:30001,send:7 repeat:32:done was_read:30001 "
                                   f"got:1 {CLOSE}"), crc=("on",))
    # spec/siw 4.3: siw reads into one place at a time; weft reads into several, at once.
    reads = "read_scattered:100001 done was_scattered:100001 send:1 done"
    for serving, server, client in (("siw", "got:1", reads), ("weft", reads, "got:1")):
        yield Case("remote.scattered", talk(f"request recv:1 {ACCEPT} {server} {CLOSED}",
                                            f"resolve recv:1 {CONNECT} {client} {CLOSE}"), servers=(serving,), crc=("on",))
    # spec/siw 2.13: an IRD of 0, with which everything is possible but a Read, to which weft says no. siw's Reply has the IRD that
    # the Request wants, whatever its program says; its Request has none where the program wants none.
    moves, hears = "write:100 done send:9 done", "got:9 was_written:100"
    refused = f"{moves} read:50 done:local_qp received:flushed disconnected drop"
    yield Case("remote.no_reads", talk(f"reads:0 request recv:9 {ACCEPT} {hears} {CLOSED}",
                                       f"resolve {CONNECT} read:50 done was_read:50 {moves} {CLOSE}"), servers=("siw",), crc=("on",))
    yield Case("remote.no_reads", talk(f"request recv:9 {ACCEPT} {refused}",
                                       f"reads:0 resolve recv:9 {CONNECT} {hears} disconnected drop",
                                       weft_says="the peer allows no inbound reads"), servers=("weft",), crc=("on",))
    yield Case("send.kinds", talk(f"request repeat:2:recv:100 {ACCEPT} got:100 got:50 {CLOSED}",
                                  f"resolve {CONNECT} send:100 send_se:50 done done {CLOSE}"), crc=("on",))
    # spec/rdmap 2.5: what a Send invalidates is gone when it is delivered; siw's program is not told of it, but who reads there is.
    # siw leaves receives alone when its own answer to a Read ends the connection.
    invalidates = "send_inv:9 done read:50 done:remote_access"
    yield Case("send.invalidate", talk(f"request recv:9 {ACCEPT} got:9 disconnected drop",
                                       f"resolve {CONNECT} read:50 done was_read:50 {invalidates} disconnected drop"),
               servers=("siw",), crc=("on",))
    yield Case("send.invalidate", talk(f"request recv:1 {ACCEPT} got:1 {invalidates} disconnected drop",
                                       f"resolve recv:9 {CONNECT} send:1 done got:9 disconnected drop"),
               servers=("weft",), crc=("on",))


def faults():
    """5.2 and 5.4: what the other side does not allow ends the connection; the request to blame says why where it can."""
    # On plain iWARP a Send or Write is done when TCP has it, so a Read behind it takes the blame; posted by itself it may come after
    # siw's Terminate on a busy machine. siw asks for a
    # receive at once, and calls a message that is too long one without a receive.
    # siw leaves receives alone when its own answer to a Read ends the connection.
    serves = f"request {ACCEPT} disconnected drop"
    for name, script in {
        "read_wrong_key": "read:50 read_bad:100 done done:remote_access",
        "read_beyond": "read_beyond read:50 done:remote_access done:flushed",
        "write_wrong_key": "together:write_bad:100,read:50 done done:remote_access",
        "write_beyond": "together:write_beyond,read:50 done done:remote_access",
    }.items():
        yield Case(f"fault.{name}", talk(serves, f"resolve recv:9 {CONNECT} {script} received:flushed disconnected drop"),
                   servers=("siw",), crc=("on",))
    # siw tells its own program, and goes on.
    yield Case("fault.invalidate_wrong_key", talk(f"request recv:9 {ACCEPT} received:remote_request {CLOSED}",
                                                  f"resolve {CONNECT} together:inv_bad:9,read:50 done done {CLOSE}"),
               servers=("siw",), crc=("on",))
    for name, receive in {"no_receive": "", "too_long": "recv:9"}.items():
        failed = "received:local_length" if receive else ""
        yield Case(f"fault.{name}", talk(f"request {receive} {ACCEPT} disconnected {failed} drop",
                                         f"resolve {CONNECT} together:send:10,read:50 done done:rnr disconnected drop"),
                   servers=("siw",), crc=("on",))
    # siw understands no Terminate of ours in detail, and flushes. How a request that was sent ends is siw's affair: the
    # Terminate may be there before siw's own thread has noticed that all its bytes are out.
    serves = f"request recv:9 {ACCEPT} disconnected received:flushed drop"
    for name, script, error in (
        ("read_wrong_key", "read_bad:100 done:flushed", (0, 1, 0)),
        ("read_beyond", "read_beyond done:flushed", (0, 1, 1)),
        ("write_wrong_key", "write_bad:100 done_anyhow", (1, 1, 0)),
        ("write_beyond", "write_beyond done_anyhow", (1, 1, 1)),
        ("invalidate_wrong_key", "inv_bad:9 done_anyhow", (0, 2, 9)),
    ):
        yield Case(f"fault.{name}", terminated(serves, f"resolve {CONNECT} {script} disconnected drop", error),
                   servers=("weft",), crc=("on",))
    yield Case("fault.too_long", terminated(f"request recv:9 {ACCEPT} received:local_length disconnected drop",
                                            f"resolve {CONNECT} send:10 done_anyhow disconnected drop", (1, 2, 5)),
               servers=("weft",), crc=("on",))
    yield Case("fault.no_receive", terminated(f"request {ACCEPT} disconnected drop",
                                              f"resolve {CONNECT} send:10 done_anyhow disconnected drop", (1, 2, 2)),
               servers=("weft",), crc=("on",), options={"WEFT_RNR_WAIT": "200"})
    # design: a message waits for its receive for a while, even though its sender cannot be told.
    yield Case("late_receive", talk(f"request {ACCEPT} sleep:300 recv:10 got:10 send:1 done {CLOSED}",
                                    f"resolve recv:1 {CONNECT} send:10 done got:1 {CLOSE}"), servers=("weft",), crc=("on",))


def not_on_plain_iwarp():
    for name, request in {"immediate": "write_imm:100", "send_immediate": "send_imm:100", "atomic": "fetch_add",
                          "compare_swap": "compare_swap"}.items():
        peer = f"request recv:9 {ACCEPT} disconnected received:flushed drop"
        yield Case(f"plain.{name}", talk(peer, f"resolve recv:9 {CONNECT} {request} send:9 done:local_qp done:flushed "
                                         "received:flushed disconnected drop", weft_says=NOT_ON_PLAIN_IWARP),
                   servers=("siw",), crc=("on",))
        peer = "resolve recv:9 connect established disconnected received:flushed drop"
        yield Case(f"plain.{name}", talk(f"request recv:9 {ACCEPT} {request} send:9 done:local_qp done:flushed "
                                         "received:flushed disconnected drop", peer, weft_says=NOT_ON_PLAIN_IWARP),
                   servers=("weft",), crc=("on",))


def killed():
    """Either side's process is killed; the other one hears of it, and what it posted is flushed."""
    stays = "disconnected received:flushed drop"

    def run(victim):
        def case(world, serving):
            ends = {True: "wait_for_end", False: stays}
            passive, active = begin(world, serving, f"request recv:9 {ACCEPT} {ends[victim == 'server']}",
                                    f"resolve recv:9 {CONNECT} {ends[victim == 'client']}")
            dies, lives = (passive, active) if victim == "server" else (active, passive)
            world.says(dies, "wait_for_end")
            world.says(lives, "disconnected")
            dies.end()
            world.succeed(lives)

        return case

    for victim in ("server", "client"):
        yield Case(f"killed.{victim}", run(victim), crc=("on",))


def all_scenarios():
    cases = [*openings(), *killed(), *refusals()]
    # How many CPUs the peer has makes no difference to these.
    for case in [*data(), *faults(), *not_on_plain_iwarp()]:
        case.cpus = (1,)
        case.traced = True
        cases.append(case)
    return cases
