"""symbols_test.py OURS THEIRS LIST: our libraries export what Debian's do.

Every symbol that Debian's libraries offer to a linker is in ours, in the same version; so is every
symbol of LIST, which is what the programs of Debian 12 and 13 import; and nothing else is but what
later versions of rdma-core have. The private ones are in each node that rdma-core gave them."""

import os
import sys

import elf

# What rdma-core's private node became in versions 57, 59 and 64.
LATER_PRIVATE = {n: f"IBVERBS_PRIVATE_{n}" for n in (57, 59, 64)}
# What ours export beyond Debian's: the way between the two, what rdma-core 49 and 53 added to a node that was there, and the
# nodes of rdma-core 57 to 64.
OWN = {"libibverbs.so.1": {"weft_core_v1@WEFT_1", "ibv_wr_opcode_str@IBVERBS_PRIVATE_34",
                           "ibv_cmd_create_cq_ex2@IBVERBS_PRIVATE_34",
                           "ibv_alloc_dmah@IBVERBS_1.15", "ibv_dealloc_dmah@IBVERBS_1.15", "ibv_reg_mr_ex@IBVERBS_1.15",
                           "ibv_dm_export_dmabuf_fd@IBVERBS_1.16", "ibv_query_port_speed@IBVERBS_1.16",
                           "ibv_alloc_buf@IBVERBS_1.17", "ibv_free_buf@IBVERBS_1.17", "ibv_reg_buf_mr@IBVERBS_1.17",
                           *(f"verbs_register_driver_{n}@{node}" for n, node in LATER_PRIVATE.items())},
       "librdmacm.so.1": {"rdma_query_addrinfo@RDMACM_1.4", "rdma_resolve_addrinfo@RDMACM_1.4",
                          "rdma_write_cm_event@RDMACM_1.4"}}
# Node to what it goes on from.
OWN_NODES = {"WEFT_1": None, "IBVERBS_1.15": "IBVERBS_1.14", "IBVERBS_1.16": "IBVERBS_1.15", "IBVERBS_1.17": "IBVERBS_1.16",
             "RDMACM_1.4": "RDMACM_1.3", **{node: None for node in LATER_PRIVATE.values()}}
# What the later private nodes have besides. Each has its own name to register a driver by.
LATER_NAMES = {"ibv_cmd_alloc_dmah", "ibv_cmd_free_dmah", "ibv_cmd_reg_mr_ex", "ibv_cmd_query_port_speed",
               "ibv_cmd_export_dmabuf_fd", "ibv_dmabuf_heap_alloc", "ibv_dmabuf_heap_cc_shared_init",
               "ibv_dmabuf_heap_destroy", "ibv_dmabuf_heap_free"}


def check_private(ours):
    library = os.path.join(ours, "libibverbs.so.1")
    first = elf.in_node(library, "IBVERBS_PRIVATE_34")
    if len(first) < 70:
        yield f"IBVERBS_PRIVATE_34 has {len(first)} names, expected 70 or more"
    for n, node in LATER_PRIVATE.items():
        wanted = (first - {"verbs_register_driver_34"}) | LATER_NAMES | {f"verbs_register_driver_{n}"}
        there = elf.in_node(library, node)
        for name in sorted(wanted ^ there):
            yield f"{name} is {'missing in' if name in wanted else 'no name of'} {node}"


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
    for node in sorted(my_nodes.keys() - debian_nodes.keys()):
        if node not in OWN_NODES:
            yield f"{library}: version node {node} is not Debian's"
        elif my_nodes[node] != OWN_NODES[node]:
            yield f"{library}: {node} inherits from {my_nodes[node]}, not from {OWN_NODES[node]}"


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
    problems += check_private(ours)
    print("\n".join(problems) or "all symbols are there")
    return 1 if problems else 0


sys.exit(main())
