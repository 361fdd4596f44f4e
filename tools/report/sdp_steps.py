"""What `weft bench paper --of sdp` measures: figures 6 to 12 of the paper on zero copy, and round trips."""

from steps import bench_step

SIZES = [4096 << i for i in range(9)]  # 4 kB to 1 MB
CONNECTIONS = [1, 2, 4, 8]
# By place: whether two namespaces are between the sides, and the ways to be compared.
PLACES = {"host": (False, ("tcp", "sdp-copied", "sdp-in-place", "sdp")),
          "net": (True, ("tcp", "sdp-wire-copied", "sdp-wire-in-place", "sdp-wire"))}
PARTS = tuple(PLACES)
AS_ROOT = ("net",)


def steps_of(options):
    sizes = ",".join(str(size) for size in options.sizes)
    found = []
    for part, (between, ways) in PLACES.items():
        for count in options.connections:
            found.append(bench_step(options, part, f"{count} {'connection' if count == 1 else 'connections'}", "sdp", "--sizes", sizes,
                                    "--connections", str(count), "--only", ",".join(f"{way}/*" for way in ways), between=between))
        found.append(bench_step(options, part, "round trips", "sdp", "--only", ",".join(f"{way}-ping-pong/*" for way in ways), between=between))
    return [step for step in found if step.part in options.only]
