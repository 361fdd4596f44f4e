"""Servers: nginx, haproxy, redis, memcached, PostgreSQL, sshd."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time

from sdp_case import case, data, digest
from world import Failed, Skipped

NGINX = """
daemon off; worker_processes 2; error_log stderr; pid {folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile {sendfile}; tcp_nopush on; keepalive_timeout 65;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; client_max_body_size 20m;
  server {{
    listen {address}:{port}; root {folder}/www;
    location /there {{ proxy_pass http://{address}:{port}/; }}
    location /gzip {{ alias {folder}/www/; gzip on; gzip_types *; }}
  }}
}}
"""


def nginx(w, sendfile="on"):
    port = w.port()
    w.subfolder("www")
    for name, size in {"empty": 0, "one": 1, "small": 4000, "medium": 300_000, "large": 8_000_000}.items():
        w.file(f"www/{name}", data(size, size + 1))
    conf = w.file("nginx.conf", NGINX.format(folder=w.folder, address=w.address, port=port, sendfile=sendfile))
    w.serve(["nginx", "-c", conf, "-e", "stderr", "-p", w.folder], port)
    return f"http://{w.address}:{port}"


def curl(w, *words):
    """Its output. A client of SDP alone is refused until a worker has waited for its listener (docs/design/29).
    One that hangs is not started again."""
    process = w.start(1, ["curl", "-sS", "--retry", "5", "--retry-connrefused", "--retry-max-time", "20", "--max-time", "30", *words])
    w.ends(process)
    return digest(process.bytes())


def all_files(w, url):
    results = {name: curl(w, f"{url}/{name}") for name in ("empty", "one", "small", "medium", "large")}
    results["range"] = curl(w, "-r", "100000-5000000", f"{url}/large")
    results["head"] = curl(w, "-o", "/dev/null", "-w", "%{http_code} %{size_download}", f"{url}/none")
    results["kept"] = curl(w, "-w", "%{num_connects} ", "-o", "/dev/null", f"{url}/small", "-o", "/dev/null", f"{url}/medium", "-o", "/dev/null",
                           f"{url}/large")
    results["parallel"] = curl(w, "-Z", "--no-progress-meter", "-w", "%{http_code}\\n", *(f"{url}/medium?{i}" for i in range(10)), *["-o", "/dev/null"] * 10)
    return results


@case("nginx.sendfile", needs=["nginx", "curl"], namespaces="check")
def nginx_sendfile(w):
    return all_files(w, nginx(w))


@case("nginx.copied", needs=["nginx", "curl"])
def nginx_copied(w):
    return all_files(w, nginx(w, "off"))


@case("nginx.proxy", needs=["nginx", "curl"])
def nginx_proxy(w):
    url = nginx(w)
    return {path: curl(w, f"{url}/{path}") for path in ("there/small", "there/large", "gzip/medium")}


HAPROXY = """
global
  log stderr format raw daemon warning
defaults
  mode {mode}
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  {splice}
frontend front
  bind {address}:{port}
  default_backend back
backend back
  server one {target}
"""


def haproxy(w, mode, splice):
    port = w.port()
    target = nginx(w).removeprefix("http://")
    conf = w.file("haproxy.cfg", HAPROXY.format(mode=mode, splice=splice, address=w.address, port=port, target=target))
    w.serve(["haproxy", "-db", "-f", conf], port)
    return all_files(w, f"http://{w.address}:{port}")


case("haproxy.tcp", needs=["haproxy", "nginx", "curl"])(lambda w: haproxy(w, "tcp", ""))
case("haproxy.http", needs=["haproxy", "nginx", "curl"], full=True)(lambda w: haproxy(w, "http", ""))
case("haproxy.splice", needs=["haproxy", "nginx", "curl"])(lambda w: haproxy(w, "tcp", "option splice-request\n  option splice-response"))


def redis_server(w, *options):
    port = w.port()
    folder = w.subfolder(f"redis{port}")
    w.serve(["redis-server", "--port", str(port), "--bind", w.address, "--protected-mode", "no", "--dir", folder, "--save", "", *options], port)
    return str(port)


def redis_cli(w, port, *words, **how):
    return w.run(1, ["redis-cli", "-h", w.address, "-p", port, *words], **how).strip()


def benchmark(w, port, *options):
    """Names of the tests that it made; it ends with status 0 after errors, too."""
    text = w.run(1, ["redis-benchmark", "-h", w.address, "-p", port, "-q", *options])
    if re.search("(?i)error", text):
        raise Failed(f"redis-benchmark: {text}")
    return re.findall(r"(?:^|[\r\n])([A-Z][A-Za-z_ ()0-9]*): [1-9][\d.]* requests", text)


@case("redis.benchmark", needs=["redis-server", "redis-benchmark"], namespaces="check")
def redis_benchmark(w):
    port = redis_server(w)
    return {"one": benchmark(w, port, "-c", "1", "-n", "300", "-t", "ping,set,get"), "some": benchmark(w, port, "-c", "50", "-n", "2000"),
            "pipelined": benchmark(w, port, "-c", "10", "-P", "16", "-n", "5000", "-t", "set,get"),
            "large": benchmark(w, port, "-c", "4", "-d", "1000000", "-n", "60", "-t", "set,get")}


@case("redis.many", needs=["redis-server", "redis-benchmark"], full=True, seconds=120)
def redis_many(w):
    port = redis_server(w)
    return benchmark(w, port, "-c", "200", "-n", "50000", "-t", "ping,set,get,lrange_100")


@case("redis.replica", needs=["redis-server", "redis-cli"])
def redis_replica(w):
    """10000 keys by a pipe, a save by a forked child, and a replica that gets them all."""
    first = redis_server(w)
    commands = "".join(f"*3\r\n$3\r\nSET\r\n$6\r\nk{i:05}\r\n$100\r\n{str(i) * 100:.100}\r\n" for i in range(10_000))
    with open(w.file("commands", commands), "rb") as f:
        piped = redis_cli(w, first, "--pipe", stdin=f).splitlines()[-1]
    saved = redis_cli(w, first, "BGSAVE")
    second = redis_server(w, "--replicaof", w.address, first, "--repl-diskless-sync-delay", "0")
    while "master_link_status:up" not in redis_cli(w, second, "INFO", "replication"):
        if time.monotonic() > w.until:
            raise Failed("the replica has no link")
        time.sleep(0.1)
    # One client, for WAIT waits for what its own client has written.
    with open(w.file("last", "SET last value\nWAIT 1 5000\n"), "rb") as f:
        waited = redis_cli(w, first, stdin=f).splitlines()
    return {"piped": piped, "saved": saved, "waited": waited, "size": redis_cli(w, second, "DBSIZE"), "last": redis_cli(w, second, "GET", "last"),
            "some": redis_cli(w, second, "GET", "k04711")}


@case("memcached.threads", needs=["memcached", "python3"])
def memcached(w):
    port = w.port()
    w.serve(["memcached", "-l", w.address, "-p", str(port), "-U", "0", "-t", "4", *(["-u", "nobody"] if os.geteuid() == 0 else [])], port)
    client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memcached_client.py")
    return w.run(1, ["python3", "-B", client, w.address, str(port)]).splitlines()


POSTGRES = "/usr/lib/postgresql/15/bin"
FAST = ["fsync=off", "full_page_writes=off", "synchronous_commit=off", "max_wal_size=1GB", "autovacuum=off"]


def postgres(w):
    """A server; and the words that a client of it needs."""
    if os.geteuid() == 0:
        shutil.chown(w.folder, 65534, 65534)
    port = w.port()
    folder = f"{w.folder}/data"
    w.run(0, [f"{POSTGRES}/initdb", "-N", "-A", "trust", "-U", "weft", "-D", folder], plain=True)
    options = [word for o in (*FAST, f"listen_addresses={w.address}", f"unix_socket_directories={w.folder}") for word in ("-c", o)]
    with open(f"{folder}/pg_hba.conf", "a", encoding="ascii") as f:
        f.write("host all all samenet trust\n")
    w.serve([f"{POSTGRES}/postgres", "-D", folder, "-p", str(port), *options], port)
    client = ["-h", w.address, "-p", str(port), "-U", "weft"]
    # It listens before it is ready.
    while w.ends(w.start(0, [f"{POSTGRES}/pg_isready", "-h", w.folder, "-p", str(port)], plain=True), None) != 0:
        if time.monotonic() > w.until:
            raise Failed("PostgreSQL is not ready")
        time.sleep(0.05)
    return client


def psql(w, client, command, status=0):
    return w.run(1, [f"{POSTGRES}/psql", *client, "-X", "-A", "-t", "-d", "postgres", "-c", command], status).strip()


@case("postgresql.pgbench", needs=[f"{POSTGRES}/initdb", f"{POSTGRES}/pgbench"], seconds=90)
def pgbench(w):
    client = postgres(w)
    w.run(1, [f"{POSTGRES}/pgbench", *client, "-i", "-q", "-s", "1", "postgres"])
    counts = [re.findall(r"transactions actually processed: (\S+)|failed transactions: (\d+)", w.run(1, [f"{POSTGRES}/pgbench", *client, *options, "postgres"]))
              for options in (["-c", "4", "-j", "2", "-t", "50"], ["-n", "-S", "-c", "8", "-j", "2", "-t", "100"], ["-n", "-S", "-C", "-c", "2", "-t", "20"])]
    return {"counts": counts, "history": psql(w, client, "select count(*) from pgbench_history")}


@case("postgresql.copy_and_cancel", needs=[f"{POSTGRES}/initdb", f"{POSTGRES}/psql"], seconds=90)
def copy_and_cancel(w):
    client = postgres(w)
    rows = "".join(f"{i}\t{'x' * (i % 300)}\n" for i in range(40_000))
    source, back = w.file("rows", rows), f"{w.folder}/back"
    psql(w, client, "create table t (i int, s text)")
    psql(w, client, f"\\copy t from {shlex.quote(source)}")
    psql(w, client, f"\\copy (select * from t order by i) to {shlex.quote(back)}")
    with open(back, "rb") as f:
        copied = digest(f.read())
    # Ctrl-C in psql makes a connection of its own that asks for the end of the query.
    sleeping = w.start(1, [f"{POSTGRES}/psql", *client, "-X", "-d", "postgres", "-c", "select pg_sleep(50)"])
    while psql(w, client, "select count(*) from pg_stat_activity where query like 'select pg_sleep%'") != "1":
        if time.monotonic() > w.until:
            raise Failed("the query never began")
    sleeping.signal(signal.SIGINT)
    status = w.ends(sleeping, None)
    return {"copied": copied, "cancelled": status, "said": [line for line in sleeping.error_text().splitlines() if "ERROR" in line]}


SSHD = """
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/allowed
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
AcceptEnv WEFT_*
"""


def sshd(w):
    """A server for this user; and a function that makes a client's command."""
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        shutil.chown(w.folder, 0, 0)
        os.chmod(w.folder, 0o755)
    elif subprocess.run(["getent", "passwd", str(os.geteuid())], check=False, stdout=subprocess.PIPE, text=True).stdout.strip().endswith(("nologin", "false")):
        raise Skipped("this user has no shell")
    port = str(w.port())
    for key in ("host", "own"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{w.folder}/{key}"], check=True)
    shutil.copy(f"{w.folder}/own.pub", f"{w.folder}/allowed")
    conf = f"{w.folder}/sshd_config"
    with open(conf, "w", encoding="ascii") as f:
        f.write(SSHD.format(port=port, address=w.address, folder=w.folder))
    w.serve([shutil.which("sshd", path="/usr/sbin:/sbin"), "-f", conf, "-D", "-e"], int(port), as_caller=True)
    options = ["-F", "none", "-i", f"{w.folder}/own", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
               "-o", f"UserKnownHostsFile={w.folder}/known", "-o", "LogLevel=ERROR"]
    return lambda program, *words: [program, *options, "-P" if program == "scp" else "-p", port, *words]


@case("openssh.commands", needs=["ssh", "/usr/sbin/sshd", "ssh-keygen"])
def openssh_commands(w):
    ssh = sshd(w)
    with open(w.file("in", data(3_000_000)), "rb") as f:
        through = w.start(1, ssh("ssh", w.address, "cat"), stdin=f, as_caller=True)
        w.ends(through)
    failing = w.start(1, ssh("ssh", w.address, "echo out; exit 7"), as_caller=True)
    status = w.ends(failing, None)
    return {"cat": digest(through.bytes()), "status": status, "out": failing.text().split()}


@case("openssh.scp", needs=["scp", "/usr/sbin/sshd", "ssh-keygen"])
def openssh_scp(w):
    ssh = sshd(w)
    source, back = w.file("source", data(5_000_000)), f"{w.folder}/back"
    w.run(1, ssh("scp", source, f"{w.address}:{w.folder}/there"), as_caller=True)
    w.run(1, ssh("scp", f"{w.address}:{w.folder}/there", back), as_caller=True)
    with open(back, "rb") as f:
        return digest(f.read())


@case("openssh.forwarding", needs=["ssh", "/usr/sbin/sshd", "ssh-keygen", "nc"])
def openssh_forwarding(w):
    ssh = sshd(w)
    outer, inner = w.port(), w.port()
    with open(w.file("down", data(2_000_000)), "rb") as down, open(w.file("up", data(100_000, 2)), "rb") as up:
        server = w.serve(["nc", "-l", "-N", w.address, str(inner)], inner, stdin=down, as_caller=True)
        forwarder = w.start(1, ssh("ssh", "-N", "-L", f"{outer}:{w.address}:{inner}", w.address), as_caller=True)
        if not forwarder.listens(outer, w.until):
            raise Failed("ssh -L does not listen")
        client = w.start(1, ["nc", "-N", "127.0.0.1", str(outer)], stdin=up, as_caller=True)
        w.ends(client)
        w.ends(server)
    return {"server": digest(server.bytes()), "client": digest(client.bytes())}
