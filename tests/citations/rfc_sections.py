"""Which sections the RFCs have, so that none is cited that does not exist."""

# Tables of contents that were read as a whole. Of each section that has some, how many there are in it; "" is the document.
CHILDREN = {
    "5044": {"": 10, "1": 2, "4": 5, "5": 2, "7": 2, "7.1": 5, "7.1.4": 2, "9": 4, "9.1": 2, "9.1.1": 3},
    "6581": {"": 14, "1": 2, "4": 4, "4.4": 3, "9": 3, "14": 2},
    "5041": {"": 10, "1": 3, "2": 3, "4": 4, "5": 4, "5.1": 2, "6": 2, "6.2": 2, "7": 2, "8": 4, "8.3": 2, "8.4": 2,
             "10": 2},
    "5040": {"": 10, "1": 3, "2": 4, "3": 2, "4": 8, "5": 5, "5.2": 2, "6": 2, "6.2": 1, "7": 2, "8": 2, "8.1": 2,
             "8.2": 2, "10": 2},
    "7306": {"": 12, "1": 1, "4": 2, "5": 4, "5.1": 2, "5.2": 2, "6": 4, "8": 2, "10": 2, "11": 2},
    "5042": {"": 10, "2": 3, "2.2": 8, "2.3": 5, "5": 4, "5.1": 3, "5.4": 5, "6": 5, "6.1": 1, "6.2": 3, "6.3": 6,
             "6.4": 6, "6.4.3": 3, "7": 3, "10": 2},
    "791": {"": 3, "1": 4, "2": 4, "3": 3},
}

# Sections of which it is known that they exist, from quotations in other projects; the rest of these RFCs was not looked up.
KNOWN = {
    "3168": {"6.1.4"},                               # ECN: acknowledgements alone
    "3550": {"A.1"},                                 # sequence numbers of RTP
    "3720": {"B.4"},                                 # examples of CRC32C
    "5681": {"4.1"},                                 # the congestion window after a rest
    "7323": {"2.2"},                                 # the option for window scaling
    "8200": {"5", "8", "8.1", "8.2", "8.3", "8.4"},  # packet sizes; upper layers
    "8985": {"6.2"},                                 # RACK: what an acknowledgement tells
    "9000": {"13.2.1", "13.4.2", "13.4.2.1"},          # QUIC: when to acknowledge, ECN
    # QUIC's loss recovery: round trip, loss, probes, congestion.
    "9002": {"7.1", "5", "5.1", "5.2", "5.3", "6", "6.1", "6.1.1", "6.1.2", "6.2", "6.2.1", "6.2.4", "7", "7.3.2", "7.6", "7.6.2", "7.7", "7.8"},
    "9406": {"4.2"},                                 # HyStart++: the algorithm
    "9438": {"4.1", "4.2", "4.3", "4.6", "4.7"},     # CUBIC: constants, growth, Reno, decrease, fast convergence
    "9293": {"3.1", "3.2", "3.4", "3.5", "3.7.1"},   # header, options, sequence numbers, connections, MSS
}


def complete(rfc):
    return rfc in CHILDREN


def exists(rfc, section):
    """False also where nothing is known of the RFC; see complete()."""
    if not complete(rfc):
        return section in KNOWN.get(rfc, ())
    above = ""
    for number in section.split("."):
        if not number.isdigit() or not 1 <= int(number) <= CHILDREN[rfc].get(above, 0):
            return False
        above = f"{above}.{number}".lstrip(".")
    return True
