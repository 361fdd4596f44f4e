"""Socket parts of other projects' own test suites: glib, glib-networking, tornado, trio, OpenSSH. What each test came to is the result."""

import os
import re
import shutil

from python_cases import PYTHON, suite
from sdp_case import case
from world import Failed

GLIB = "/usr/libexec/installed-tests/glib"
GLIB_TESTS = ("socket", "socket-listener", "socket-service", "gsocketclient-slow", "pollable", "proxy-test", "io-stream", "gdbus-peer",
              "gdbus-non-socket", "gdbus-server-auth", "simple-proxy")
GLIB_NETWORKING = "/usr/libexec/installed-tests/glib-networking"
DIST = "/usr/lib/python3/dist-packages"


def tap(w, folder, program, environment=()):
    """Its tests, without the lines that tell more of one."""
    process = w.start(0, ["env", "-C", folder, f"./{program}", "--tap"], environment=environment)
    w.ends(process)
    found = [line for line in process.text().splitlines() if re.match(r"(not )?ok ", line)]
    if not found:
        raise Failed(f"{program} ran no test")
    return [f"{program}: {line}" for line in found]


@case("glib.gio", namespaces=None, needs=[f"{GLIB}/socket"])
def glib(w):
    w.allow_fallback()  # they listen at ports that the system chose
    return [line for program in GLIB_TESTS for line in tap(w, GLIB, program)]


@case("glib.tls", namespaces=None, needs=[f"{GLIB_NETWORKING}/connection-gnutls"])
def glib_tls(w):
    w.allow_fallback()
    folders = {"G_TEST_SRCDIR": GLIB_NETWORKING, "G_TEST_BUILDDIR": GLIB_NETWORKING}
    return tap(w, GLIB_NETWORKING, "connection-gnutls", folders)


# Without TCPServerTest: it wants clients that are refused because they come too late, and skips itself where none is.
TORNADO = [f"tornado.test.{name}" for name in ("httpserver_test", "simple_httpclient_test", "tcpserver_test:TestMultiprocess", "tcpclient_test",
                                               "netutil_test", "websocket_test", "iostream_test")]
case("suites.tornado", namespaces=None, needs=[PYTHON, f"{DIST}/tornado/test/iostream_test.py"], full=True, seconds=200)(lambda w: suite(w, TORNADO))

TRIO = ["test_socket.py", "test_highlevel_socket.py", "test_highlevel_open_tcp_listeners.py", "test_highlevel_open_tcp_stream.py",
        "test_highlevel_serve_listeners.py", "test_highlevel_ssl_helpers.py", "test_ssl.py", "test_unix_pipes.py", "../_core/tests/test_io.py"]


@case("suites.trio", namespaces=None, needs=[PYTHON, f"{DIST}/trio/tests/test_socket.py", f"{DIST}/trustme/__init__.py"], full=True, seconds=200)
def trio(w):
    w.allow_fallback()
    files = [f"{DIST}/trio/tests/{name}" for name in TRIO]
    process = w.start(0, [PYTHON, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-v", "--tb=short", *files])
    w.ends(process, status=None)
    found = re.findall(r"^(\S+::.+?) (PASSED|FAILED|SKIPPED|ERROR|XFAIL)", process.text(), re.M)
    if not found:
        raise Failed("no test was run")
    if any(outcome in ("FAILED", "ERROR") for _, outcome in found):
        print(process.text()[-10000:])
    return sorted(f"{os.path.basename(name)} {outcome}" for name, outcome in found)


REGRESS = "/usr/lib/openssh/regress"
# Those that talk to a server over a socket.
OPENSSH = ("connect", "connect-uri", "brokenkeys", "cfgmatch", "cfgmatchlisten", "key-options", "keyscan", "reconfigure", "reexec", "sftp-uri")
# They are clients that go to the background with their connection.
OPENSSH_BACKGROUND = ("dynamic-forward", "forwarding", "multiplex")
# They wait long, and so do some of their clients there.
OPENSSH_LONG = ("forward-control", "login-timeout")


def openssh(w, names):
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    folder = f"{w.folder}/regress"
    shutil.copytree(REGRESS, folder)
    environment = {"BUILDDIR": folder, "OBJ": folder, "TEST_SHELL": "sh", "TEST_SSH_SSH": "ssh", "TEST_SSH_IPV6": "yes", "TEST_SSH_ECC": "yes",
                   "TEST_SSH_SFTPSERVER": "/usr/lib/openssh/sftp-server", "TEST_SSH_UNSAFE_PERMISSIONS": "1", "SUDO": "",
                   "TEST_SSH_PORT": str(w.port())}
    found = []
    for name in names:
        process = w.start(0, ["env", "-C", folder, "sh", f"{folder}/test-exec.sh", folder, f"{folder}/{name}.sh"], as_caller=True,
                          environment=environment)
        w.ends(process, status=None)
        found.append(f"{name}: {process.text().splitlines()[-1]}")
    return found


case("openssh.regress", namespaces=None, needs=[f"{REGRESS}/connect.sh", "/usr/sbin/sshd"], full=True, seconds=300)(lambda w: openssh(w, OPENSSH))
case("openssh.regress_long", namespaces=None, needs=[f"{REGRESS}/connect.sh", "/usr/sbin/sshd"], full=True, seconds=500)(lambda w: openssh(w, OPENSSH_LONG))
case("openssh.regress_background", namespaces=None, needs=[f"{REGRESS}/connect.sh", "/usr/sbin/sshd"], full=True, seconds=300)(
    lambda w: openssh(w, OPENSSH_BACKGROUND))
