"""Which programs are run, with which options, and what makes a run good."""

import platform
import re

import middleware
from case import Case, all_of, wants


def perftest_result(_server, client):
    """The last line of figures must be there and hold no zero rate or time."""
    rows = [line.split() for line in client.splitlines() if re.match(r"^\s*\d+\s+\d+\s+[\d.]+", line)]
    if not rows:
        return "no line of figures"
    if not any(float(x) > 0 for x in rows[-1][2:]):
        return "all figures are zero"
    return None


def perftest():
    for verb in ("write", "read", "send", "atomic"):
        for kind in ("bw", "lat"):
            program = f"ib_{verb}_{kind}"
            options = {"plain": "", "cm": "-R", "duration": "-D 2"}
            if not (verb == "write" or (verb == "atomic" and kind == "lat")):
                options["events"] = "-e"
            if verb != "atomic":
                # Fewer rounds than the programs' own: 23 sizes up to 8 MB, twice, on a machine that may be busy.
                options["sizes"] = "-a -n 50"
            if kind == "bw":
                options["qps"] = "-q 8"
                options["both_ways"] = "-b"
            for name, option in options.items():
                # One program goes by the clock for all, and latencies of all sizes take long where CPUs are few.
                full = (name == "duration" and program != "ib_write_bw") or (name == "sizes" and kind == "lat")
                yield Case(f"{program}.{name}", f"{program} -p {{port}} {option}",
                           f"{program} -p {{port}} {option} {{addr}}", good=perftest_result, full=full)
    yield Case("ib_write_bw.ten_seconds", "ib_write_bw -p {port} -D 10", "ib_write_bw -p {port} -D 10 {addr}",
               good=perftest_result, full=True)
    yield Case("ib_send_bw.cm_many", "ib_send_bw -p {port} -R -q 8 -b", "ib_send_bw -p {port} -R -q 8 -b {addr}",
               good=perftest_result)


def pingpongs():
    for name, option in {"plain": "", "gid": "-g 0", "events": "-e", "large": "-s 1000000 -n 100"}.items():
        yield Case(f"ibv_rc_pingpong.{name}", f"ibv_rc_pingpong -p {{port}} {option}",
                   f"ibv_rc_pingpong -p {{port}} {option} {{addr}}", good=wants(r"usec/iter"))
    yield Case("ibv_srq_pingpong.plain", "ibv_srq_pingpong -p {port}", "ibv_srq_pingpong -p {port} {addr}",
               good=wants(r"usec/iter"))


def datagrams():
    """UC and UD. Neither keeps a fast sender from losing messages, so what counts them sends few."""
    for kind in ("uc", "ud"):
        for name, option in {"plain": "", "gid": "-g 0", "events": "-e"}.items():
            program = f"ibv_{kind}_pingpong -p {{port}} {option}"
            yield Case(f"ibv_{kind}_pingpong.{name}", program, program + " {addr}", good=wants(r"usec/iter"))
    for program, service, name, option in (
            ("ib_send_lat", "UD", "plain", ""), ("ib_send_lat", "UC", "plain", ""), ("ib_write_lat", "UC", "plain", ""),
            ("ib_send_bw", "UD", "plain", "-n 500 -t 16"), ("ib_send_bw", "UD", "srq", "-n 500 -t 16 --use-srq"),
            ("ib_send_bw", "UC", "plain", ""), ("ib_send_bw", "UC", "srq", "--use-srq"), ("ib_send_bw", "UC", "small", "-s 64"),
            ("ib_write_bw", "UC", "plain", "")):
        command = f"{program} -c {service} -p {{port}} {option}"
        yield Case(f"{program}.{service.lower()}_{name}", command, command + " {addr}", good=perftest_result)


def connections():
    rping = "rping -s -a {addr} -p {port} -V"
    ring = "rping -c -a {addr} -p {port} -V"
    yield Case("rping.plain", rping + " -C 10", ring + " -C 10 -v", good=wants(r"rdma-ping-9:"))
    yield Case("rping.large", rping + " -C 200 -S 65535", ring + " -C 200 -S 65535")
    yield Case("rping.ten_thousand", rping + " -C 10000", ring + " -C 10000")
    # Its server keeps one request at a time, so that clients that come in the same moment trip over each other.
    yield Case("rping.persistent", rping + " -P", ring + " -C 2000", clients=5, stagger=0.3, server_is_killed=True)
    yield Case("ucmatose.plain", "ucmatose -p {port}", "ucmatose -s {addr} -p {port}", good=wants(r"return status 0"))
    yield Case("ucmatose.many", "ucmatose -c 50 -C 100 -S 4000 -p {port}",
               "ucmatose -s {addr} -c 50 -C 100 -S 4000 -p {port}", good=wants(r"return status 0"))
    yield Case("ucmatose.migrate", "ucmatose -m -p {port}", "ucmatose -m -s {addr} -p {port}", good=wants(r"return status 0"))
    yield Case("cmtime.plain", "cmtime -p {port} -c 100", "cmtime -s {addr} -p {port} -c 100", good=wants(r"connect"),
               server_is_killed=True)
    yield Case("rdma_client.plain", "rdma_server -p {port}", "rdma_client -s {addr} -p {port}",
               good=wants(r"rdma_client: end 0"))
    yield Case("rdma_xclient.rc", "rdma_xserver -p {port} -c r", "rdma_xclient -s {addr} -p {port} -c r",
               good=wants(r"end 0"))


def rsockets():
    """rsocket(7). Each program compares what comes; `-T v` says so. Few messages: both sides poll, on a machine that may be busy."""
    stream = "rstream -p {port} -f ip -I 50 -C 10"
    for name, option in {"plain": "-S 4096 -T v", "large": "-S 3000000 -C 1 -T v", "small_buffers": "-B 8192 -i 0 -S 20000 -T v",
                         "async": "-S 4096 -T a -T v", "blocking": "-S 4096 -T b -T v", "resolved": "-S 4096 -T r -T v"}.items():
        yield Case(f"rstream.{name}", f"{stream} {option}", f"{stream} {option} -s {{addr}}", good=wants(r"custom +\S+"))
    mapped = "riostream -p {port} -f ip -I 20 -C 5 -S 10000 -T v"
    yield Case("riostream.plain", mapped, mapped + " -s {addr}", good=wants(r"custom +\S+"))
    yield Case("rcopy.plain", "rcopy -p {port}", "rcopy /usr/bin/rstream {addr}:{folder}/rcopy.{port} -p {port}",
               good=wants(r"bytes in"), server_is_killed=True)
    # Of datagrams. Without -b the server takes an address of IPv6 alone.
    for name, option in {"plain": "", "blocking": "-T b", "async": "-T a", "nonblocking": "-T n", "echo": "-T e"}.items():
        pong = f"udpong -p {{port}} {option}".strip()
        yield Case(f"udpong.{name}", f"{pong} -b {{addr}}", f"{pong} -C 200 -S 1000 -s {{addr}}", good=wants(r"custom +\S+"), server_is_killed=True)
    # A program on sockets that knows nothing of it.
    preload = f"LD_PRELOAD=/usr/lib/{platform.machine()}-linux-gnu/rsocket/librspreload.so"
    yield Case("iperf3.preloaded", "iperf3 -s -1 -p {port}", "iperf3 -c {addr} -p {port} -n 50M", good=wants(r"50\.[0-9] MBytes.*sender[^?]*receiver"),
               environment=(preload,))
    # Its datagrams go to the number at which it listens for streams.
    yield Case("iperf3.preloaded_datagrams", "iperf3 -s -1 -p {port}", "iperf3 -c {addr} -p {port} -u -b 50M -n 5M",
               good=wants(r"5\.[0-9]+ MBytes.*sender[^?]*receiver"), environment=(preload,))


def udapl():
    """uDAPL: Writes, Sends and Reads by both of DAPL's providers; dtestx has immediate data and atomics."""
    programs = {"dtest.plain": "dtest -P weft -b 65536", "dtest.burst": "dtest -P weft -w -B 100 -b 65536", "dtestx.plain": "dtestx -P weft"}
    for provider in ("oscm", "ofa"):
        for name, program in programs.items():
            if provider == "oscm" and "dtestx" in program:
                # Its client may connect before the server listens, half of the time here. DAPL tries again then, over TCP, with two
                # bytes too many, and takes the answer for a refusal.
                continue
            words = f"{{folder}}/over_dapl.sh {provider} {{own}} {program}"
            yield Case(f"{name}_{provider}", words, words + " -h {addr}", good=wants(r"PASSED"), needs=(program.split()[0],))


def with_faults():
    """The same programs under WEFT_FAULT (docs/faults.md): TCP that moves odd parts, late, changes nothing of what they get."""
    rping = "rping -s -a {addr} -p {port} -V -C"
    ring = "rping -c -a {addr} -p {port} -V -C"
    for name, fault, rounds in (("split", "split:0.9,seed:3", "300 -S 30000"), ("delay", "delay:2ms,jitter:1ms,seed:4", "50"),
                                ("both", "split:0.7,jitter:500us,seed:5", "100 -S 30000")):
        yield Case(f"rping.fault_{name}", f"{rping} {rounds}", f"{ring} {rounds}", environment=(f"WEFT_FAULT={fault}",))
    fault = ("WEFT_FAULT=split:0.5,jitter:200us,seed:6",)
    for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
        yield Case(f"{program}.fault", f"{program} -p {{port}} -n 300 -s 100000", f"{program} -p {{port}} -n 300 -s 100000 {{addr}}",
                   good=perftest_result, environment=fault)
    # The side that has all leaves while the other one waits to hear so.
    yield Case("ibv_rc_pingpong.fault", "ibv_rc_pingpong -p {port} -n 100 -s 30000", "ibv_rc_pingpong -p {port} -n 100 -s 30000 {addr}",
               good=wants(r"100 iters in"), environment=("WEFT_FAULT=split:0.9,jitter:500us,seed:8",))
    yield Case("ib_send_lat.fault", "ib_send_lat -p {port} -R -n 100", "ib_send_lat -p {port} -R -n 100 {addr}", good=perftest_result,
               environment=fault)
    # UC takes no datagram twice; UD would. The peer's goodbye may overtake the last message.
    for name, faults in (("uc_pingpong.fault", "duplicate:0.3"), ("uc_pingpong.reorder", "reorder:0.3,jitter:300us"),
                         ("ud_pingpong.fault", "reorder:0.1,jitter:300us")):
        program = "ibv_" + name.split(".")[0]
        yield Case(f"ibv_{name}", f"{program} -p {{port}} -n 300", f"{program} -p {{port}} -n 300 {{addr}}",
                   good=wants(r"300 iters in"), environment=(f"WEFT_FAULT={faults},seed:9",))
    # The last message is still held back when its sender has no more to do and exits.
    for kind in ("uc", "ud"):
        yield Case(f"ibv_{kind}_pingpong.late", f"ibv_{kind}_pingpong -p {{port}} -n 5", f"ibv_{kind}_pingpong -p {{port}} -n 5 {{addr}}",
                   good=wants(r"5 iters in"), environment=("WEFT_FAULT=delay:100ms,way:out",))
    yield Case("ucmatose.fault", "ucmatose -c 20 -C 20 -S 4000 -p {port}", "ucmatose -s {addr} -c 20 -C 20 -S 4000 -p {port}",
               good=wants(r"return status 0"), environment=fault)


def reliable():
    """UD with WEFT_UD=reliable: what no UD does, it gets through a network that loses; and a sender may be as fast as it likes."""
    lossy = "loss:0.05,duplicate:0.02,reorder:0.05,jitter:200us,seed:11"
    for name, fault in (("", ()), ("_lossy", (f"WEFT_FAULT={lossy}",))):
        environment = ("WEFT_UD=reliable", *fault)
        yield Case(f"ibv_ud_pingpong.reliable{name}", "ibv_ud_pingpong -p {port} -n 500", "ibv_ud_pingpong -p {port} -n 500 {addr}",
                   good=wants(r"500 iters in"), environment=environment)
        for program in ("ib_send_bw", "ib_send_lat"):
            command = f"{program} -c UD -p {{port}} -n 1000"
            yield Case(f"{program}.reliable{name}", command, command + " {addr}", good=perftest_result, environment=environment)


def by_udp():
    """RC with WEFT_RC=udp: every kind of request, bring-up by number and by rdma_cm, and through a network that loses; and a peer that wants TCP."""
    lossy = "loss:0.02,duplicate:0.02,reorder:0.05,jitter:200us,seed:11"
    for name, fault in (("", ()), ("_lossy", (f"WEFT_FAULT={lossy}",))):
        environment = ("WEFT_RC=udp", *fault)
        yield Case(f"ibv_rc_pingpong.by_udp{name}", "ibv_rc_pingpong -p {port} -n 500", "ibv_rc_pingpong -p {port} -n 500 {addr}",
                   good=wants(r"500 iters in"), environment=environment)
        for program in ("ib_send_lat", "ib_write_bw", "ib_read_bw", "ib_atomic_bw"):
            command = f"{program} -p {{port}} -n 300"
            yield Case(f"{program}.by_udp{name}", command, command + " {addr}", good=perftest_result, environment=environment)
        yield Case(f"rping.by_udp{name}", "rping -s -a {addr} -p {port} -C 20", "rping -c -a {addr} -p {port} -C 20", environment=environment)


# perftest wants the group and the peer's address to be of one family, and its own group, ff01:0:2:c985::, is none of IPv4.
PERFTEST_GROUP = "-g -M 0:0:0:0:0:0:0:0:0:0:255:255:239:193:7:2"


def by_rdma_cm():
    """UD and multicast by rdma_cm."""
    for name, option in {"plain": "", "many": "-c 50 -C 20 -S 900"}.items():
        yield Case(f"udaddy.{name}", f"udaddy {option}", f"udaddy -s {{addr}} {option}",
                   good=wants(r"return status 0"))
    # The receivers leave when they have all; datagrams that came before they had joined would be missed.
    for name, option in {"plain": "", "send_only": "-o"}.items():
        yield Case(f"mckey.{name}", "mckey -m 239.193.7.1 -b {addr} -C 10",
                   f"mckey -m 239.193.7.1 -b {{own}} -C 10 -s {option}", good=wants(r"return status 0"), servers=3)
    for kind, few in {"bw": "-n 500 -t 16", "lat": ""}.items():
        program = f"ib_send_{kind} -p {{port}} -c UD {few}"
        for name, option in {"ud_cm": "-R", "multicast": PERFTEST_GROUP, "multicast_own": "-g --ipv6"}.items():
            yield Case(f"ib_send_{kind}.{name}", f"{program} {option}", f"{program} {option} {{addr}}", good=perftest_result,
                       ipv6="--ipv6" in option)


def jumbo():
    """On a link whose MTU is 9000 the port's is 4096, and messages that no Ethernet packet of 1500 bytes holds are one datagram."""
    for kind, size in {"uc": "-c -s 20000 -m 4096", "ud": "-c -s 4096"}.items():
        for name, option in {"mtu_9000": "", "gid_mtu_9000": " -g 0"}.items():
            program = f"ibv_{kind}_pingpong -p {{port}} {size}{option}"
            yield Case(f"ibv_{kind}_pingpong.{name}", program, program + " {addr}", good=wants(r"usec/iter"), mtu=9000)
    yield Case("udaddy.mtu_9000", "udaddy -C 20 -S 4000", "udaddy -s {addr} -C 20 -S 4000",
               good=wants(r"return status 0"), mtu=9000)
    group = "mckey -m 239.193.7.3 -C 10 -S 4000"
    yield Case("mckey.mtu_9000", group + " -b {addr}", group + " -b {own} -s", good=wants(r"return status 0"), servers=3, mtu=9000)
    for program, service, name, option in (
            ("ib_send_bw", "UD", "ud", "-n 500 -t 16"), ("ib_send_bw", "UC", "uc", "-n 500 -t 16 -s 8000"), ("ib_write_bw", "UC", "uc", ""),
            ("ib_send_lat", "UD", "ud", ""), ("ib_send_lat", "UC", "uc", "-s 8000"), ("ib_write_lat", "UC", "uc", ""),
            ("ib_send_bw", "UD", "multicast", f"-n 500 -t 16 {PERFTEST_GROUP}")):
        command = f"{program} -c {service} -p {{port}} {option}"
        yield Case(f"{program}.{name}_mtu_9000", command, command + " {addr}", mtu=9000,
                   good=all_of(perftest_result, wants(r"Mtu +: 4096\[B\]")))


def alone():
    yield Case("ibv_devices", "ibv_devices", good=lambda s, _: None if "weft0" in s else "no weft0")
    yield Case("ibv_devinfo", "ibv_devinfo -v",
               good=lambda s, _: None if "PORT_ACTIVE" in s and "GID[  0]" in s else "no active port or no GID")


def under_sanitizers():
    """What runs in sanitizers' builds, where all of it takes many times as long: one of each kind, with few messages."""
    whole = {c.name: c for c in all_cases()}
    for name in ("ibv_rc_pingpong.plain", "ibv_srq_pingpong.plain", "ibv_uc_pingpong.plain", "ibv_ud_pingpong.plain",
                 "mckey.plain", "rping.plain", "ucmatose.plain", "rdma_client.plain", "ib_write_bw.cm", "ib_read_lat.plain",
                 "ib_send_bw.events", "ib_atomic_bw.plain", "ibv_rc_pingpong.fault",
                 "ibv_rc_pingpong.by_udp_lossy", "rping.by_udp", "rstream.plain"):
        yield whole[name]
    few = "ib_send_bw -p {port} -R -q 4 -b -n 50 -s 20000"
    yield Case("ib_send_bw.cm_few", few, few + " {addr}", good=perftest_result)


def all_cases():
    return [*alone(), *pingpongs(), *datagrams(), *by_rdma_cm(), *jumbo(), *connections(), *rsockets(), *udapl(), *perftest(), *with_faults(), *reliable(), *by_udp(), *middleware.cases()]
