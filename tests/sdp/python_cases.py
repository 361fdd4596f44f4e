"""The socket parts of Python's own test suite (package libpython3.11-testsuite)."""

import os

from sdp_case import case
from world import HERE, Failed

MOST_SHOWN = 30000  # signs
PYTHON = "/usr/bin/python3.11"
SUITE = "/usr/lib/python3.11/test/test_socket.py"

SOCKET = ("GeneralModuleTests,BasicTCPTest,TCPCloserTest,TCPTimeoutTest,NetworkConnectionNoServer,NetworkConnectionAttributesTest,"
          "NetworkConnectionBehaviourTest,NonBlockingTCPTests,FileObjectClassTestCase,UnbufferedFileObjectClassTestCase,"
          "LineBufferedFileObjectClassTestCase,SmallBufferedFileObjectClassTestCase,UnicodeReadFileObjectClassTestCase,"
          "UnicodeWriteFileObjectClassTestCase,UnicodeReadWriteFileObjectClassTestCase,SendmsgTCPTest,RecvmsgTCPTest,RecvmsgIntoTCPTest,"
          "RecvmsgSCMRightsStreamTest,BufferIOTest,SendfileUsingSendTest,SendfileUsingSendfileTest,InheritanceTest,CreateServerTest,"
          "CreateServerFunctionalTest,ContextManagersTest,InterruptedRecvTimeoutTest,InterruptedSendTimeoutTest,TestExceptions,"
          "SendRecvFdsTests,NonblockConstantTest")
ASYNCIO = "test.test_asyncio"

SUITES = {
    "socket": [f"test.test_socket:{SOCKET}"],
    "socketserver": ["test.test_socketserver"],
    "select": ["test.test_select", "test.test_epoll"],
    "http": ["test.test_httpservers", "test.test_httplib", "test.test_urllib2_localnet", "test.test_wsgiref"],
    "smtp_telnet": ["test.test_smtplib", "test.test_telnetlib"],
    "asyncore": ["test.test_asyncore", "test.test_asynchat"],
    "asyncio_sockets": [f"{ASYNCIO}.test_sock_lowlevel", f"{ASYNCIO}.test_server", f"{ASYNCIO}.test_streams"],
    "asyncio_sendfile": [f"{ASYNCIO}.test_sendfile"],
}
LONG_SUITES = {
    "poll": ["test.test_poll"],
    "selectors": ["test.test_selectors"],
    "asyncio_events": [f"{ASYNCIO}.test_events"],
    "ftp": ["test.test_ftplib"],
    "pop": ["test.test_poplib"],
    "imap": ["test.test_imaplib"],
    "ssl": ["test.test_ssl"],
    "xmlrpc": ["test.test_xmlrpc"],
    "logging": ["test.test_logging"],
}


def suite(w, words):
    w.allow_fallback()  # tests meet ports that nobody listens at, and raw sockets
    process = w.start(0, [PYTHON, "-B", os.path.join(HERE, "python_suite.py"), *words])
    w.ends(process)
    found = process.text().splitlines()
    if not found:
        raise Failed("no test was run")
    if any(line.endswith(": failed") for line in found):  # the texts, which the comparison does not have
        text = process.error_text()
        print(text[text.find("====="):][:MOST_SHOWN])
    return found


for _name, _words in {**SUITES, **LONG_SUITES}.items():
    case(f"python.{_name}", needs=[PYTHON, SUITE], namespaces=None, full=_name in LONG_SUITES, seconds=200 if _name in LONG_SUITES else 90)(
        lambda w, words=_words: suite(w, words))
