"""Results of `weft bench sdp` with known figures: where in place and copies cross is as in the paper."""

from example import line

SIZES = [4096 << i for i in range(9)]
ROUND_TRIPS = (1, 64, 4096, 65536)
CROSSOVER = {1: 262144, 2: 65536, 4: 32768, 8: 16384}
CHEAPER = 8192
# By path: what the ways are called there.
WAYS = {"loopback": {"tcp": "tcp", "copied": "sdp-copied", "in-place": "sdp-in-place", "cost": "sdp"},
        "veth": {"tcp": "tcp", "copied": "sdp-wire-copied", "in-place": "sdp-wire-in-place", "cost": "sdp-wire"}}


def stream(path, way, size, connections, repetition=0):
    """8 Gb/s by copies, in place as much at the crossover; a quarter of a second of each side's for a GB, in place less from 8 KB on."""
    gbps = {"tcp": 4, "copied": 8, "in-place": 8 * size / CROSSOVER[connections], "cost": 9}[way]
    cost = {"tcp": 1.0, "copied": 0.5, "in-place": 0.5 * CHEAPER / size, "cost": 0.4}[way]
    figures = {"gbps": gbps * (1 + (repetition - 1) / 10), "s_per_gb": cost, "tx_s_per_gb": cost / 2, "rx_s_per_gb": cost / 2}
    return line("sdp", f"{WAYS[path][way]}/{size}/{connections}", figures, repetition, path, group="bandwidth", sockets=WAYS[path][way], size=size,
                connections=connections, mtu=None)


def round_trip(path, way, size, repetition=0):
    rtt = (10 + size / 4096) * {"tcp": 4, "copied": 1.5, "in-place": 2, "cost": 1}[way]
    return line("sdp", f"{WAYS[path][way]}-ping-pong/{size}", {"rtt_us": rtt + repetition}, repetition, path, group="latency", sockets=WAYS[path][way],
                size=size, connections=1, mtu=None)


def everything():
    """Lines for all figures."""
    lines = []
    for repetition in range(3):
        for path, ways in WAYS.items():
            for way in ways:
                lines += [stream(path, way, size, connections, repetition) for size in SIZES for connections in CROSSOVER]
                lines += [round_trip(path, way, size, repetition) for size in ROUND_TRIPS]
    return lines
