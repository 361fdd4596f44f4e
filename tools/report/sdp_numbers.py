"""What Goldenberg, Kagan, Ravid and Tsirkin, "Zero Copy Sockets Direct Protocol over InfiniBand", say in their text. Values that are
in their plots alone are not guessed."""

TITLE = "Zero Copy Sockets Direct Protocol over InfiniBand"
AUTHORS = "D. Goldenberg, M. Kagan, R. Ravid, M. Tsirkin"
TEST_BED = ("two Dell 1750 with two Intel Xeon at 3 GHz each, hyper-threading on (4 logical CPUs), 0.5 MB of cache, 2 GB, and a Mellanox InfiniHost "
            "behind PCI-X 64/133, a 4X InfiniBand cable between them; iperf 1.7.0 (section 3)")

# Sections 4.1 and 4.2: by number of connections, the message size from which ZCopy has the greater bandwidth.
CROSSOVER = {1: "256 KB", 2: "64 KB", 4: "32 KB", 8: "16 KB"}
CROSSOVER_WHERE = {1: "section 4.1", 2: "section 4.2", 4: "section 4.2", 8: "section 4.2"}

# Section 4.1, one connection: CPU, mean of both sides.
COPIED_SMALL_CPU = "around 100 %"
IN_PLACE_SMALL_CPU = "around 40 %"
IN_PLACE_LARGE_CPU = "as low as 20 %"

# Section 4.2, several connections.
IN_PLACE_CPU = "below 50 % from beyond 128 KB on"
COPIED_CPU = "all CPUs are saturated (of 400 %)"
# 8 connections.
IN_PLACE_MBPS = "more than 700 MB/s"
COPIED_MBPS = "500 MB/s"
OF_COPIED_MBPS = 700 / 500
OF_COPIED_CPU = 1 / 8  # "CPU utilization decreases 8 times": the abstract

# Section 4.2, figures 10 and 11: by message size, the connections from which on ZCopy is faster.
FASTER_FROM = {65536: "2 connections on", 1048576: "any number"}
ANY_CONNECTIONS_CPU = "less than 50 % of a single CPU"

# Section 4.3: the message size from which ZCopy takes less CPU for a byte.
CHEAPER_FROM = "between 4 and 16 KB; below 4 KB with many connections"
