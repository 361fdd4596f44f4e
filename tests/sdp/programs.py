"""Small programs and benchmarks: nc, socat, iperf3, rsync."""

import json
import os
import subprocess

from sdp_case import case, data, digest
from world import Failed


def pour(w, name, size, seed):
    """A file as standard input."""
    return open(w.file(name, data(size, seed)), "rb")  # pylint: disable=consider-using-with


def netcat(w, size, server_plain=False, client_plain=False):
    """There, and in a second connection back; the sender closes its half behind its data. (nc's server ends when its client has closed.)"""
    port = str(w.port())
    with pour(w, "up", size, 1) as up, pour(w, "down", size // 2, 2) as down:
        server = w.serve(["nc", "-l", "-N", w.address, port], int(port), plain=server_plain)
        w.run(1, ["nc", "-N", w.address, port], stdin=up, plain=client_plain)
        w.ends(server)
        sender = w.serve(["nc", "-l", "-N", w.address, port], int(port), stdin=down, plain=server_plain)
        client = w.start(1, ["nc", "-d", w.address, port], plain=client_plain)
        w.ends(client)
        w.ends(sender)
    return {"up": digest(server.bytes()), "down": digest(client.bytes())}


@case("nc.both_ways", needs=["nc"], namespaces="check")
def nc_both_ways(w):
    return netcat(w, 3_000_000)


@case("nc.large", needs=["nc"], full=True, namespaces="check")
def nc_large(w):
    return netcat(w, 200_000_000)


@case("nc.plain_client", needs=["nc"])
def nc_plain_client(w):
    return netcat(w, 100_000, client_plain=True)


@case("nc.plain_server", needs=["nc"])
def nc_plain_server(w):
    """The client falls back."""
    w.allow_fallback()
    return netcat(w, 100_000, server_plain=True)


@case("nc.refused", needs=["nc"])
def nc_refused(w):
    w.allow_fallback()
    process = w.start(1, ["nc", "-v", w.address, str(port := w.port())])
    status = w.ends(process, None)
    return {"status": status, "said": process.error_text().replace(str(port), "PORT").splitlines()[-1:]}


@case("socat.exec", needs=["socat"], namespaces="check")
def socat_exec(w):
    """The server's children have the connection as standard input and output; the answer comes when the client has closed its half."""
    port = str(w.port())
    script = w.file("answer", "#!/bin/sh\nhead -c 1000 | sha256sum\nsha256sum\nhead -c 2000000 /dev/zero\n", 0o755)
    w.serve(["socat", "-t", "20", f"TCP-LISTEN:{port},reuseaddr,fork", f"EXEC:{script}"], int(port))
    results = []
    for seed in range(3):
        with pour(w, f"in{seed}", 1_500_000, seed) as up:
            client = w.start(1, ["socat", "-t", "20", "-", f"TCP:{w.address}:{port}"], stdin=up)
            w.ends(client)
        results.append(digest(client.bytes()))
    return results


@case("socat.echo", needs=["socat"])
def socat_echo(w):
    """Ten clients at a time, each with a child that was forked with the connection."""
    port = str(w.port())
    w.serve(["socat", "-t", "20", f"TCP-LISTEN:{port},reuseaddr,fork,backlog=20", "PIPE"], int(port))
    clients = []
    for seed in range(10):
        with pour(w, f"in{seed}", 50_000 * seed + 1, seed) as up:
            clients.append(w.start(1, ["socat", "-t", "20", "-", f"TCP:{w.address}:{port}"], stdin=up))
    for client in clients:
        w.ends(client)
    return [digest(c.bytes()) for c in clients]


def iperf3(w, *options):
    port = str(w.port())
    server = w.serve(["iperf3", "-s", "-1", "-p", port], int(port))
    client = w.start(1, ["iperf3", "-c", w.address, "-p", port, "-J", *options])
    status = w.ends(client, None)
    w.ends(server, None)
    try:
        report = json.loads(client.text()[client.text().index("{"):])
    except ValueError as e:
        raise Failed(f"no report: {e}") from e
    if "error" in report or status != 0:
        raise Failed(f"status {status}: {report.get('error')}")
    end = report["end"]
    return {"status": status, "streams": len(end["streams"]), "moved": end["sum_received"]["bytes"] > 0,
            "both": "sum_bidir_reverse" in end or "sum_sent_bidir_reverse" in end}


for _name, _options in {"plain": "", "parallel": "-P 4", "reverse": "-R", "bidir": "--bidir", "sendfile": "-Z", "small": "-l 1K"}.items():
    case(f"iperf3.{_name}", needs=["iperf3"], namespaces="check" if _name == "parallel" else "full")(
        lambda w, o=_options.split(): iperf3(w, "-t", "1", *o))
case("iperf3.long", needs=["iperf3"], full=True, namespaces="check", seconds=120)(lambda w: iperf3(w, "-t", "20", "-P", "8", "--bidir"))


@case("rsync.daemon", needs=["rsync"])
def rsync_daemon(w):
    """There and back: a child of the daemon for each connection."""
    port = w.port()
    there, back, source = w.subfolder("there"), w.subfolder("back"), w.subfolder("source")
    for i in range(60):
        w.file(f"source/f{i}", data(i * i * 100, i))
    conf = w.file("rsyncd.conf", f"use chroot = no\nport = {port}\nlog file = /dev/stderr\n[there]\npath = {there}\nread only = no\n")
    w.serve(["rsync", "--daemon", "--no-detach", f"--config={conf}", f"--address={w.address}"], port)
    w.run(1, ["rsync", "-a", f"{source}/", f"rsync://{w.address}:{port}/there/"])
    w.file("source/f7", data(5000, 99))  # differs, so that only parts of it go over
    w.run(1, ["rsync", "-a", "--checksum", f"{source}/", f"rsync://{w.address}:{port}/there/"])
    w.run(1, ["rsync", "-az", f"rsync://{w.address}:{port}/there/", f"{back}/"])
    different = subprocess.run(["diff", "-r", source, back], check=False, stdout=subprocess.PIPE, text=True).stdout
    return {"files": len(os.listdir(back)), "different": different}
