"""What Lenkiewicz, Broekema and Metzler, "Energy-Efficient Data Transfers in Radio Astronomy with Software UDP RDMA" (2017),
say in their text. Values that are in their plots alone are not guessed."""

TITLE = "Energy-Efficient Data Transfers in Radio Astronomy with Software UDP RDMA"
AUTHORS = "P. Lenkiewicz, P. C. Broekema, B. Metzler"
TEST_BED = ("two servers with an Intel Xeon E3-1240 v3 at 3.40 GHz, 16 GB and a Chelsio T5-580 of 40 Gb/s each, "
            "a direct cable between them (section 4)")

# Section 4.2: mean power of CPU and DRAM while 50 streams of about 760 Mb/s in packets of 8 kB are received.
LOFAR_WATTS = {"tcp": 45.09, "udp": 40.05, "rc": 32.38, "uc": 31.01}
LOFAR_WHERE = "section 4.2"

# Sections 4.3 and 4.4, offloads off: Gb/s, and mean power of the receiver's CPU in W.
TRACE_GBPS = {"tcp": 25.1, "rc": 27.85, "udp": 39.37, "uc": 38.24}
TRACE_WATTS = {"tcp": 17.4, "rc": 15.89, "udp": 24.21, "uc": 13.72}
TRACE_WHERE = {"tcp": "section 4.3", "rc": "section 4.3", "udp": "section 4.4", "uc": "section 4.4"}

# Section 4.5: SoftiWARP UDP with RDMA Write, nearly the same with offloads off and on.
UC_WRITE_GBPS = 38.79
UC_WRITE_WATTS = 13.64

# Section 4.5: the message size from which more does not pay.
BEST_SIZE = {"tcp": "512 kB", "rc": "512 kB", "udp": "64 kB", "uc": "64 kB"}

# Section 4.6: packet loss at which RDMA Reads of SoftiWARP UDP break down, percent.
READ_BREAKS_AT = 3


def efficiency(transport):
    """Gb/s per W, computed from sections 4.3 and 4.4: of the CPU's power alone. Figure 11 counts DRAM and network card, too."""
    return TRACE_GBPS[transport] / TRACE_WATTS[transport]
