"""What a case is, and what makes most of them good."""

import re


class Case:
    """A server and its clients, or a program alone. In commands {addr} is the server's address,
    {own} the address of the one who runs it, {network} the network of both, {port} a port that is free on TCP and UDP,
    {folder} one where anybody may write and both sides see the same, with a program {folder}/rsh that runs commands on the server's
    side when that is a remote_shell.py {folder}/shell, and {folder}/over_dapl.sh."""

    def __init__(self, name, server, client=None, clients=1, good=None, server_is_killed=False, seconds=120, stagger=0.0,
                 environment=(), servers=1, compiled=None, needs=(), mtu=None, ipv6=False, full=False):
        self.name = name
        self.server = server.split()
        self.client = client.split() if client else None
        self.clients = clients
        self.servers = servers  # the same program several times
        self.good = good or (lambda server, client: None)
        self.server_is_killed = server_is_killed  # it serves for ever
        self.seconds = seconds
        self.environment = environment  # variables for both sides; with the words that commands have
        self.compiled = compiled  # a compiler, the source of {program}, a program of our own, and its libraries
        first = [words[0] for words in (self.server, self.client) if words and not words[0].startswith("{")]
        self.needs = (*first, *((compiled[0],) if compiled else ()), *needs)
        self.mtu = mtu  # of the link, between namespaces only
        self.ipv6 = ipv6  # only where both sides have an address of IPv6 that others reach
        self.full = full  # takes long, and what it asks others ask too: ./check --full alone runs it
        self.stagger = stagger  # seconds between one client's start and the next


def wants(text):
    """The client's output must match the pattern."""

    def good(_server, client):
        if not re.search(text, client):
            return f"the output has nothing like /{text}/"
        return None

    return good


def all_of(*conditions):
    """Each of them must be good."""

    def good(server, client):
        return next((complaint for condition in conditions if (complaint := condition(server, client))), None)

    return good
