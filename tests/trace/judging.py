"""What the captures of a case of traffic.py have to say, each for itself and all together."""

import apps
import traffic

Failed = apps.Failed


def check(right, sentence):
    if not right:
        raise Failed(sentence)


def messages_of(fpdus):
    """Messages, put together from their segments; weft's own opcodes stand between those of others and are left out."""
    messages, size, opcode = [], 0, None
    for fpdu in fpdus:
        if fpdu.opcode == traffic.DELIVERED:
            continue
        check(opcode in (None, fpdu.opcode), f"opcode {fpdu.opcode} within a message of opcode {opcode}")
        size += fpdu.payload()
        opcode = fpdu.opcode
        if fpdu.last:
            messages.append(traffic.Message(opcode, size))
            size, opcode = 0, None
    check(opcode is None, f"the last message, of opcode {opcode}, has no end")
    return messages


def without_first_empty_write(messages):
    """An Initiator may begin with an empty Write, so that the Responder may speak (spec/mpa 2.4)."""
    return messages[1:] if messages[:1] == [(traffic.WRITE, 0)] else messages


def judge_start_ups(capture, connections):
    requests = [s for s in capture.start_ups if s.is_request]
    replies = [s for s in capture.start_ups if not s.is_request]
    check(len(requests) == len(replies) == connections,
          f"{len(requests)} MPA Requests and {len(replies)} Replies, not {connections} each")
    for request, reply in zip(requests, replies):
        check((reply.source, reply.target) == (request.target, request.source), "a Reply without its Request")
        check(request.revision == reply.revision == 2 and not request.markers and not reply.markers and not reply.rejected,
              f"a start-up that weft does not make: {request}, {reply}")


def judge(capture, crc):
    """The two directions of the one connection: FPDUs from the initiator, and to it."""
    check(not capture.faults, f"{capture.file}: " + "\n  ".join(capture.faults))
    check(not capture.cut_short, f"{capture.file} is cut short")
    judge_start_ups(capture, 1)
    for start_up in capture.start_ups:
        check(start_up.crc == crc, f"the flag C is {start_up.crc}")
    (initiator, responder), = capture.connections()
    ways = (initiator, responder), (responder, initiator)
    check(set(capture.fpdus) <= set(ways), f"FPDUs of a connection without a start-up: {set(capture.fpdus) - set(ways)}")
    for way in ways:
        for fpdu in capture.fpdus.get(way, []):
            check(fpdu.crc_checked == crc, f"CRC of {fpdu} was {'' if fpdu.crc_checked else 'not '}checked")
            check(crc or fpdu.crc == 0, f"without CRC its field is 0 (spec/mpa 3.2), and not {fpdu.crc:#x}")
    return ways


def judge_messages(who, fpdus, expected):
    messages = without_first_empty_write(messages_of(fpdus))
    for number, (is_there, wanted) in enumerate(zip(messages, expected)):
        check(is_there == wanted, f"message {number} of the {who} is {is_there}, not {wanted}")
    check(len(messages) == len(expected), f"the {who} sent {len(messages)} messages, not {len(expected)}")


def same_fpdus(sender, receiver, way, at_end=0):
    """`at_end`: so many of the last FPDUs may be missing at the receiver: who closes does not read what the other one says at
    that moment."""
    a, b = sender.fpdus.get(way, []), receiver.fpdus.get(way, [])
    for number, (x, y) in enumerate(zip(a, b)):
        check(x == y, f"FPDU {number} from {way[0]} to {way[1]} differs:\n  {sender.file}: {x}\n  {receiver.file}: {y}")
    check(0 <= len(a) - len(b) <= at_end,
          f"from {way[0]} to {way[1]}: {len(a)} FPDUs in {sender.file}, {len(b)} in {receiver.file}")


def judge_case(case, server, client, wire=None):
    ways = judge(client, case.crc)
    check(judge(server, case.crc) == ways, "the two sides have recorded different connections")
    # Who sent what: the side whose file has an FPDU first has sent it.
    first, second = (client.fpdus.get(way, []) for way in ways)
    client_is_initiator = client.times[ways[0]][0] <= server.times[ways[0]][0]
    by_client, by_server = (first, second) if client_is_initiator else (second, first)
    sides = list(zip(ways, ((client, server), (server, client)) if client_is_initiator else ((server, client), (client, server))))
    for way, (sender, receiver) in sides:
        same_fpdus(sender, receiver, way, at_end=1)
        if wire:
            same_fpdus(sender, wire, way)
    if wire:
        check(not wire.faults, f"{wire.file}: " + "\n  ".join(wire.faults))
        check(wire.start_ups == client.start_ups, f"start-up frames: {wire.start_ups} on the wire, {client.start_ups} in the file")
    for way, (sender, receiver) in sides:
        for number, (sent, received) in enumerate(zip(sender.times.get(way, []), receiver.times.get(way, []))):
            check(sent <= received, f"FPDU {number} from {way[0]} came {sent - received} ns before it was sent")
    judge_messages("client", by_client, case.by_client)
    judge_messages("server", by_server, case.by_server)
    if complaint := case.good(by_client, by_server):
        raise Failed(complaint)
