"""symbols_test.py OURS THEIRS LIST: our libraries export what Debian's do.

Every symbol that Debian's libraries offer to a linker is in ours, in the same version; so is every
symbol of LIST, which is what the programs of Debian 12 and 13 import; and nothing else is."""

import os
import sys

import elf

# What ours export beyond Debian's: the way between the two, and what rdma-core 49 and 53 added to a node that was there.
OWN = {"libibverbs.so.1": {"weft_core_v1@WEFT_1", "ibv_wr_opcode_str@IBVERBS_PRIVATE_34",
                           "ibv_cmd_create_cq_ex2@IBVERBS_PRIVATE_34"},
       "librdmacm.so.1": set()}
OWN_NODES = {"WEFT_1"}


def compare(ours, theirs, library):
    mine = elf.exported(os.path.join(ours, library))
    debian = elf.exported(os.path.join(theirs, library))
    if not debian:
        yield f"{library}: {theirs} has none or it exports nothing"
    for symbol in sorted(debian - mine):
        yield f"{library}: {symbol} is missing"
    for symbol in sorted(mine - debian - OWN[library]):
        yield f"{library}: {symbol} is exported and Debian's has no such symbol"
    for symbol in sorted(OWN[library] - mine):
        yield f"{library}: {symbol} is missing"

    my_nodes = elf.version_nodes(os.path.join(ours, library))
    debian_nodes = elf.version_nodes(os.path.join(theirs, library))
    if not debian_nodes:
        yield f"{library}: Debian's has no version nodes"
    for node, parent in debian_nodes.items():
        if node not in my_nodes:
            yield f"{library}: version node {node} is missing"
        elif my_nodes[node] != parent:
            yield f"{library}: {node} inherits from {my_nodes[node]}, Debian's from {parent}"
    for node in sorted(my_nodes.keys() - debian_nodes.keys() - OWN_NODES):
        yield f"{library}: version node {node} is not Debian's"


def check_list(ours, path):
    mine = set()
    for library in elf.LIBRARIES:
        mine |= elf.exported(os.path.join(ours, library))
    with open(path, encoding="ascii") as lines:
        wanted = lines.read().split()
    if len(wanted) < 200:
        yield f"{path}: {len(wanted)} symbols, expected 200 or more"
    for symbol in wanted:
        if symbol not in mine:
            yield f"{os.path.basename(path)}: {symbol} is missing"


def main():
    ours, theirs, path = sys.argv[1:]
    problems = [p for library in elf.LIBRARIES for p in compare(ours, theirs, library)]
    problems += check_list(ours, path)
    print("\n".join(problems) or "all symbols are there")
    return 1 if problems else 0


sys.exit(main())
