"""UCX, Open MPI, MPICH and libfabric, which bring their own protocols and ask more of the device than perftest does."""

import copy
import os
import re

from case import Case, all_of, wants

# A transport's name for UCX_TLS, and as UCX prints it. rc_v takes ud_verbs to exchange the first words.
TRANSPORTS = {"ud_verbs": "ud_verbs", "rc_v": "rc_verbs"}


def ucx():
    def shows(server, _client):
        for transport in TRANSPORTS.values():
            if not re.search(rf"Transport: {transport}\n#\s+Device: weft0:1\n", server):
                return f"no {transport} on weft0"
        return None

    def shows_nothing(server, _client):
        # Who has the kernel's file for something else needs no hook.
        return "weft0 without a device file" if "weft0:1" in server and not os.path.exists("/dev/infiniband/uverbs0") else None

    yield Case("ucx_info.device", "ucx_info -d", good=shows)
    yield Case("ucx_info.no_hook", "ucx_info -d", good=shows_nothing, environment=("WEFT_NO_HOOK=1",))
    for name, transport in TRANSPORTS.items():
        for test in ("tag_lat", "tag_bw"):
            program = f"ucx_perftest -p {{port}} -t {test} -n 2000 -w 100 -s 3000"
            yield Case(f"ucx_perftest.{name}_{test}", program, program + " {addr}", environment=over(name),
                       good=all_of(wants(r"Final: +2000 "), wants(rf"\({transport}/weft0:1")))


def ucx_listener():
    """By the ways that UCX takes where nobody says anything, and by RC. Not by UCX's own TCP, whose client now and then finds its endpoint not
    connected, also without weft; tests/unit/kit/launch_test.cc has what `weft run` chooses for it."""
    compiled = ("gcc", "ucp_listener.c", "-lucp", "-lucs")
    for name, transports in {"plain": (), "rc_v": over("rc_v")}.items():
        good = [wants("every byte was right")] + ([wants(rf"\({TRANSPORTS[name]}/weft0:1")] if name in TRANSPORTS else [])
        yield Case(f"ucx_listener.{name}", "{program} {port}", "{program} {port} {addr}", compiled=compiled, environment=transports,
                   good=all_of(*good))


def over(transport):
    # What it has chosen stands among the lines of level info.
    return (f"UCX_TLS={transport}", "UCX_LOG_LEVEL=info", "UCX_WARN_UNUSED_ENV_VARS=n")


def mpi():
    """The second rank is started through the server, a remote shell on the other side; both sides have one user and one disk."""
    shell = "python3 {folder}/remote_shell.py {folder}/shell"
    options = {
        "openmpi": "--mca pml ucx --mca osc ucx --mca btl self --host {own}:1,{addr}:1 --mca plm_rsh_agent {folder}/rsh "
                   "--mca oob_tcp_if_include {network} --mca orte_tmpdir_base {folder} --timeout 110",
        "mpich": "-launcher rsh -launcher-exec {folder}/rsh -hosts {own},{addr}",
    }
    for kind, words in options.items():
        for name, transport in TRANSPORTS.items():
            yield Case(f"mpi_{kind}.{name}", shell, f"mpirun.{kind} {words} -np 2 {{program}}", server_is_killed=True,
                       compiled=(f"mpicc.{kind}", "mpi_pingpong.c"), needs=(f"mpirun.{kind}",),
                       environment=(*over(name), "HOME={folder}", "MPIEXEC_TIMEOUT=110"),
                       good=all_of(wants("every byte was right"), wants(rf"\({transport}/weft0:1")))


def libfabric():
    for layer, domain in {"rxm": "weft0", "rxd": "weft0-dgram"}.items():
        program = f"fi_pingpong -p verbs;ofi_{layer} -d {domain} -e rdm -c -I 20"
        yield Case(f"fi_pingpong.{layer}", program + " -B {port}", program + " -P {port} {addr}", good=wants(r"1m +20 +=20 "),
                   environment=(f"FI_PROVIDER=verbs;ofi_{layer}",))


def by_channels():
    """The same over channels (docs/spec/wdp-rd.md): UD without loss for what brings its own recovery, and RC by datagrams."""
    whole = {c.name: c for c in [*ucx(), *mpi(), *libfabric()]}
    reliable = ("ucx_perftest.ud_verbs_tag_lat", "ucx_perftest.ud_verbs_tag_bw", "fi_pingpong.rxd", "mpi_openmpi.ud_verbs", "mpi_mpich.ud_verbs")
    by_udp = ("ucx_perftest.rc_v_tag_lat", "ucx_perftest.rc_v_tag_bw", "fi_pingpong.rxm", "mpi_openmpi.rc_v", "mpi_mpich.rc_v")
    for names, suffix, option in ((reliable, "reliable", "WEFT_UD=reliable"), (by_udp, "by_udp", "WEFT_RC=udp")):
        for name in names:
            case = copy.copy(whole[name])
            case.name = f"{name}_{suffix}"
            case.environment = (*case.environment, option)
            case.full = name.startswith("mpi_")
            yield case


def cases():
    return [*ucx(), *ucx_listener(), *mpi(), *libfabric(), *by_channels()]
