"""First entries of the corpora of WDP's stateful targets, for make_seeds."""

from seed_names import enum


class Wdp:
    """Steps of a stateful target of WDP: the number of the step in the low bits of its first byte."""

    def __init__(self, source, start=None):
        self.start = enum(start or source, "Start")
        self.step = enum(source, "Step")

    def of(self, name, *rest, high=0):
        return bytes([self.step[name] | high, *rest])


def uc_receiver_seeds():
    """Start, CRC, steps. A segment: MSN and stride, PSN and flags, size, offset, region."""
    t = Wdp("wdp/uc_receiver.cc", "wdp/uc_start.h")

    def segment(step, which=0, bits=0, size=6, mo=0, region=0, high=32):
        return t.of(step, which, bits, size, mo, region, high=high)

    listen, second = t.of("listen", high=32), t.of("later", 5)
    for name, number in t.start.items():
        yield name, bytes([number, 0])
        yield f"{name}_crc", bytes([number, 1]) + segment("send") + listen
        yield f"{name}_busy", (bytes([number, 0]) + t.of("post_receive", 7) + segment("send")
                               + segment("write", bits=16) + segment("read_request", region=1) + listen + second + listen)
    begin = bytes([t.start["between_messages"], 0])
    yield "every_ctl", begin + b"".join(t.of("ctl", k, 1, 1, 0, 5) + listen for k in range(7))
    yield "every_request", begin + b"".join(t.of("post", k, 6) + listen for k in range(8)) + t.of("read_response", 0, 0)
    many = t.of("post", 0, 9) * 6
    # KAA with the XID that was asked with, and with another.
    yield "window_opens", begin + many + listen + t.of("ctl", 3, 0, 0, 0, 0) + listen + t.of("ctl", 3, 0, 0, 0, 7) + listen
    yield "window_given_up", begin + many + listen + (t.of("later", 5) + listen) * 6 + many + listen
    # PROBEA of the large probe, of the small one, of another size; or only the small one comes through.
    small = t.of("ctl", 5, 0, 1, 0, 0)
    probing = bytes([t.start["probing"], 0])
    yield "probe_answered", probing + t.of("ctl", 5, 0, 0, 0, 0) + t.of("later", 4) + listen
    yield "probe_of_another_size", probing + t.of("ctl", 5, 2, 0, 0, 0) + t.of("ctl", 5, 0, 0, 0, 1) + listen
    yield "probe_narrows", probing + (t.of("later", 4) + listen + small) * 9 + t.of("post", 0, 9) + listen
    # What the goodbye has overtaken.
    yield "goodbye_last", (bytes([t.start["peer_left"], 0]) + segment("send", 2, 7, 5, 1, high=0)
                           + segment("send", size=4, high=0) + listen + segment("write"))
    yield "goodbye_too_late", bytes([t.start["peer_left"], 0]) + t.of("later", 4) + segment("send", 2, 7, 5, 1) + listen
    # What was asked for before a request failed, and what is asked for after.
    yield "stopped_answers", (bytes([t.start["requests_stopped"], 0]) + t.of("read_response", 1, 1)
                              + segment("read_request", region=1) + listen + t.of("post", 0, 6) + listen)
    yield "resumed_goes_on", (bytes([t.start["requests_resumed"], 0]) + t.of("read_response", 1, 1)
                              + b"".join(t.of("read_response", 2, k) for k in range(4)) + t.of("post", 0, 6) + listen)
    yield "fails_again", (begin + t.of("post", 2, 6) * 2 + listen + t.of("withdraw", 1) + t.of("read_response", 1, 0)
                          + t.of("resume") + t.of("post", 0, 6, high=224) + listen + t.of("resume") + t.of("post", 0, 6)
                          + listen)
    yield "held_goes_on", bytes([t.start["requests_held"], 0]) + t.of("hold") + listen + t.of("read_response", 0, 0)
    yield "window_answered", bytes([t.start["window_asked_again"], 0]) + t.of("ctl", 3, 0, 0, 0, 0) + listen
    yield "in_two_steps", begin + segment("write", bits=64) + t.of("post_receive", 7) + segment("send", bits=64)
    yield "out_of_order", begin + t.of("post_receive", 7) * 3 + segment("send", bits=4) + segment("send", bits=6)
    yield "far_psn", begin + segment("send", bits=11) + segment("send", bits=12) + segment("send", bits=15)
    yield "errors", begin + segment("write", region=1) + segment("write", region=2) + segment("send", high=96) + listen
    yield "all_over", (begin + t.of("deregister", 0) + segment("write") + t.of("own_memory_lost")
                       + t.of("path_carries", 80) + t.of("hold", high=32) + t.of("trim") + t.of("close") + listen + t.of("abort") + listen)


def uc_listener_seeds():
    """Start, steps; the stranger in the high bits."""
    t = Wdp("wdp/uc_listener.cc", "wdp/strangers.h")
    later = t.of("later", 1)
    for name, number in t.start.items():
        yield name, bytes([number])
        yield f"{name}_goes_on", (bytes([number]) + t.of("repeat") + t.of("accept", 1) + t.of("answer", 0, 0, 0, 0)
                                  + t.of("answer", 1, 0, 0, 0) + t.of("session_ctl", 2) + t.of("data", 1, 1) + later * 3
                                  + t.of("close", 0) + later + t.of("session_ctl", 1) + t.of("remove", 0))
        yield f"{name}_answers", bytes([number]) + b"".join(t.of("answer", k, 0, 3, 3) for k in range(5))
    idle = bytes([t.start["idle"]])
    yield "services", idle + b"".join(t.of("request", k << 2, k, 1) + t.of("accept", k) for k in range(4))
    yield "cookie", (idle + t.of("flood", 0) * 4 + t.of("request", 0, 1, 1) + t.of("request", 2, 1, 1)
                     + t.of("accept", 200))
    yield "ib_style", idle + t.of("call", 1) + t.of("request", 1, 5, 1) + t.of("answer", 1, 0, 0, 0) + later
    yield "silence", idle + t.of("request", 0x80, 1, 1) + t.of("accept", 1) + t.of("later", 4) + t.of("later", 7)
    yield "called_by_number", (idle + t.of("await_call") + t.of("request", 1, 5, 1) + t.of("answer", 1, 0, 0, 0)
                               + t.of("data", 1, 1) + t.of("request", 1, 5, 1) + later)
    yield "static", idle + t.of("start_static") + t.of("data", 1, 1) + t.of("session_ctl", 2) + t.of("close", 0)
    yield "question", idle + t.of("ask") + t.of("answer", 0, 16, 0, 0) + t.of("request", 4, 1, 1) + t.of("tell", 0)


def ud_receiver_seeds():
    """Start, steps. A message: flags, size."""
    t = Wdp("wdp/ud_receiver.cc")
    for name, number in t.start.items():
        yield name, bytes([number])
        for bits in (0, 1, 2, 4, 32, 65):
            yield f"{name}_{bits}", bytes([number]) + t.of("message", bits, 5, 40) + t.of("group_message", bits, 5, 9)
    posted = bytes([t.start["receives_posted"]])
    yield "sizes", posted + b"".join(t.of("message", 0, k) + t.of("post_receive", 9) for k in range(10))
    yield "sends", posted + b"".join(t.of("post_send", k & 4, k) for k in range(6)) + t.of("send")
    yield "fails", posted + t.of("post_send", 1, 5) + t.of("send") + t.of("message", 0, 5)
    yield "memory_lost", posted + t.of("post_send", 0, 5) + t.of("own_memory_lost") + t.of("deregister", 0)
    yield "flushed", posted + t.of("message", 0, 9) + t.of("flush") + t.of("set_q_key", 1) + t.of("message", 4, 5)
    yield "held_goes_on", bytes([t.start["held"]]) + t.of("send") + t.of("hold") + t.of("send")
    again = t.of("resume") + t.of("post_send", 0, 5) + t.of("send")
    yield "fails_and_resumes", bytes([t.start["failing"]]) + t.of("send") + t.of("post_send", 0, 5) + t.of("send") + again
    yield "fails_again", bytes([t.start["resumed"]]) + t.of("post_send", 1, 5) + t.of("send") * 2 + again
    yield "train_lost", posted + t.of("post_send", 0, 5) + t.of("fill") + t.of("own_memory_lost") + again
    yield "kept_then_used", bytes([t.start["receive_kept"]]) + t.of("message", 0, 5) * 2
    message = t.of("message", 0, 5)
    yield "receives_come", bytes([t.start["out_of_receives"]]) + message + t.of("post_receive", 6) + message
    yield "own_multicast", (bytes([t.start["two_in_a_group"]]) + t.of("from_here", 1) + t.of("group_message", 8, 5)
                            + t.of("message", 8, 5))
    yield "attached", posted + t.of("attach") * 2 + t.of("group_message", 0, 5)
    yield "detached", bytes([t.start["in_a_group"]]) + t.of("group_message", 8, 5) + t.of("detach") + t.of("repeat")

def rd_stream_seeds():
    """Start, steps. A word: which session, number and offer; bytes behind it; which word. Data: the same and a length."""
    t = Wdp("wdp/rd_stream.cc")
    talk, read = t.of("exchange", 0, 0, 0, 0), t.of("read", 255)
    for name, number in t.start.items():
        begin = bytes([number])
        yield name, begin
        yield f"{name}_every_word", begin + b"".join(t.of("word", 0, 0, n) + talk for n in range(9))
        yield f"{name}_both_ways", begin + (t.of("data", 0, 200) + t.of("send", 200) + talk + read) * 4
        yield f"{name}_taken_back", begin + t.of("take_back") + talk + t.of("answer") + talk + t.of("ask") + talk
        yield f"{name}_left", begin + t.of("leave", high=128) + t.of("data", 0, 9) + talk + t.of("forsake")
    responder, asked = bytes([t.start["responder"]]), bytes([t.start["asked"]])
    yield "cancelled", responder + t.of("word", 1, 0, 7) + talk + t.of("answer")
    yield "answered_behind_a_cancel", asked + t.of("word", 1, 0, 7) + talk + t.of("answer") + talk
    yield "asked_again", responder + t.of("word", 17, 9, 0, 5) + talk + t.of("answer") + talk + t.of("data", 0, 50) + talk + read
    yield "wrong_number", responder + t.of("data", 4, 1, 0, 50) + talk + read
    yield "ends", responder + t.of("data", 0, 50) + t.of("word", 0, 0, 2) + talk + read + t.of("end") + talk
    yield "channel_ends", responder + t.of("close") + talk + t.of("later", 3) + t.of("ask") + talk


def rd_channel_seeds():
    """Start, steps."""
    t = Wdp("wdp/rd_channel.cc")
    data = t.of("data", 0, 20, 0, 0, 0)
    later = t.of("later", 2)
    for name, number in t.start.items():
        begin = bytes([number])
        yield name, begin
        yield f"{name}_goes_on", (begin + t.of("post_receives", 4) + t.of("send", 20) + t.of("peer_sends", 20)
                                  + t.of("exchange", 0, 0, 0, 5) + later + t.of("post_receives", 7) + t.of("exchange", 0, 0, 0, 0)
                                  + t.of("flush") + later)
        yield f"{name}_data", begin + data + t.of("data", 12, 20, 2, 1, 1) + t.of("data", 33, 9, 100, 0, 0) + later
        yield f"{name}_answers", begin + b"".join(t.of("acknowledgement", k, 0, 9, 1, 1, 0, 64, 0xff, 0, 0, 0) for k in (0, 0xff, 1, 0x80))
        yield f"{name}_control", begin + b"".join(t.of("control", k, 1, 1, 0, 1, 1, 1, 7) for k in range(12))
        yield f"{name}_called", begin + t.of("request", 7, 7, 0, 1, 1, 0, 0) + t.of("exchange", 0, 0, 0, 0) + later
        posts = b"".join(t.of("rd_posts", what, size) for what, size in ((0, 40), (1, 200), (2, 250), (3, 0), (0x41, 9)))
        peer = bytes([posts[0] | 0x80])  # the same step of the peer's
        yield f"{name}_rd", (begin + posts + t.of("exchange", 0, 0, 0, 9) + later + peer + bytes([4, 3]) + t.of("exchange", 0, 0, 0, 0)
                             + peer + bytes([0, 200]) + t.of("exchange", 0, 0, 0, 0) + t.of("rd_posts", 4, 3) + later + t.of("rd_goes")
                             + later)
        yield f"{name}_rd_peer_goes", (begin + posts + t.of("exchange", 0, 0, 0x80, 9) + bytes([t.of("rd_goes")[0] | 0x80]) + later
                                       + t.of("later", 7))
        yield f"{name}_rd_data", begin + t.of("rd_posts", 4, 2) + b"".join(
            t.of("rd_data", bits, 0, 0, msn, mo, mlen, opcode, 3, 1, 2) for bits, msn, mo, mlen, opcode in (
                (2, 0, 0, 40, 3), (0, 1, 0, 40, 3), (8, 2, 0, 40, 3), (8, 2, 1, 40, 3), (8, 2, 2, 40, 3), (9, 3, 0, 20, 0), (9, 3, 1, 0, 7),
                (0, 4, 0, 30, 1), (0, 5, 0, 0, 10), (4, 0, 0, 30, 2), (4, 1, 0, 0, 11), (4, 2, 0, 0, 7)))
        yield f"{name}_rd_resp", begin + posts + t.of("exchange", 0, 0, 0xff, 0xff) + b"".join(
            t.of("rd_response", k, 2, code, 1, 1, (9 - code) % 11, 0, 2) for k, code in enumerate((1, 9, 0, 3, 4, 8, 2, 10)))
        yield f"{name}_rd_bundles", (begin + t.of("rd_posts", 4, 2) + b"".join(
            t.of("rd_bundle", of) + t.of("rd_data", bits, 0, 0, msn, 0, 40, opcode, 3, 1, 2) + second for of, bits, msn, opcode, second in (
                (0, 2, 0, 3, t.of("rd_response", 0, 2, 0, 1, 1, 1, 1, 1)), (0x80, 0, 1, 3, t.of("acknowledgement", 0, 0, 9, 1, 1, 0, 64, 0, 0, 0)),
                (1, 0, 2, 0, t.of("rd_data", 0, 0, 0, 3, 0, 30, 1, 3, 1, 2)), (0, 0, 2, 0, t.of("data", 0, 20, 0, 0, 0)),
                (0, 0, 4, 3, t.of("rd_bundle", 0)))) + t.of("exchange", 0, 0, 0, 0) + later)
        # Nothing that waits for a receive: it would keep the channel busy.
        answered = t.of("rd_posts", 1, 200) + t.of("rd_posts", 2, 250)
        yield f"{name}_meets_an_idle_end", (begin + t.of("send", 20) + answered + t.of("exchange", 0xff, 0xff, 0xff, 0xff)
                                            + t.of("control", 5, 1, 1, 0, 1, 1, 1, 3) + t.of("send", 21) + t.of("exchange", 0, 0, 0, 0)
                                            + later + t.of("later", 7) + t.of("send", 22) + t.of("exchange", 0, 0, 0, 0))
        yield f"{name}_ends", begin + t.of("close") + later + t.of("send", 3) + later + t.of("drop_queue_pair") + t.of("later", 7)
