"""The papers whose figures weft measures and draws: what their pages say, and who draws them."""

import collections
import html
import importlib

import paper_numbers
import sdp_numbers

# The title of its page; the words below it, as HTML; the machines; whether power counts; what measures it; the module that draws it.
Paper = collections.namedtuple("Paper", "heading words test_bed power command module")


def beside(numbers):
    return f"Measured with weft, beside the numbers of {html.escape(numbers.AUTHORS)}, <em>{html.escape(numbers.TITLE)}</em>"


PAPERS = {
    "radio": Paper(
        "Radio astronomy over software RDMA",
        beside(paper_numbers) + """ (2017). The paper's machines, link and
network cards are others, so what can be compared are the ratios between transports. RC is iWARP over TCP, the paper's SoftiWARP TCP; UC is iWARP over UDP,
its SoftiWARP UDP. Numbers that the paper shows in a plot alone are not guessed here. Both sides run on this one machine, over loopback or between two network
namespaces, as each caption says: what a network card would do is work of these CPUs. RC and UC are in user space, the paper's SoftiWARP in the kernel.""",
        paper_numbers.TEST_BED, True, "weft bench paper", "figures"),
    "sdp": Paper(
        "Sockets over RDMA without copies",
        beside(sdp_numbers) + """. There, two machines had network cards that
do RDMA without their CPUs, and SDP was in the kernel; here both sides run on this one machine, and the adapter is software: between two network namespaces it
sends over TCP, on one host it moves bytes from one process to the other. What can be compared is where the curves cross, and how copies and ZCopy stand to each
other. Copies are the paper's BCopy (threshold: infinity), in place is its Read ZCopy (threshold: 0, here 4 KB). "By cost" is what weft does when it is not told.
Numbers that the paper shows in a plot alone are not guessed.""",
        sdp_numbers.TEST_BED, False, "weft bench paper --of sdp", "figures_sdp"),
}


def drawings(key):
    """The module with ALL and MOST_DRAWINGS. It needs matplotlib."""
    return importlib.import_module(PAPERS[key].module)
