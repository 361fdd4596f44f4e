"""api_words_test.py OURS THEIRS: the functions that only look things up answer as Debian's library.

Each library answers in a process of its own."""

import ctypes
import os
import subprocess
import sys

RANGE = range(-2, 40)
MULTIPLES = range(-2, 500)
MBPS = range(0, 1_300_000)


def answers(library):
    lib = ctypes.CDLL(library)
    for name in ("ibv_node_type_str", "ibv_port_state_str", "ibv_event_type_str",
                 "ibv_wc_status_str"):
        function = getattr(lib, name)
        function.restype = ctypes.c_char_p
        for value in RANGE:
            yield f"{name}({value}) = {function(value).decode()}"
    for name, values in (("ibv_rate_to_mult", RANGE), ("ibv_rate_to_mbps", RANGE),
                         ("mult_to_ibv_rate", MULTIPLES), ("mbps_to_ibv_rate", MBPS)):
        function = getattr(lib, name)
        for value in values:
            result = function(value)
            if result not in (0, -1):
                yield f"{name}({value}) = {result}"
    lib.ibv_get_sysfs_path.restype = ctypes.c_char_p
    yield f"ibv_get_sysfs_path() = {lib.ibv_get_sysfs_path().decode()}"
    for folder, file, room in ((b"/proc/sys/kernel", b"ostype", 100),
                               (b"/proc/sys/kernel", b"ostype", 6),
                               (b"/proc/sys/kernel", b"ostype", 5),
                               (b"/proc/sys/kernel", b"ostype", 3),
                               (b"/proc/sys/kernel", b"no such file", 100),
                               (b"/dev", b"null", 10)):
        buffer = ctypes.create_string_buffer(b"\xaa" * 100, 100)
        result = lib.ibv_read_sysfs_file(folder, file, buffer, ctypes.c_size_t(room))
        text = buffer.raw[:result + 1] if result > 0 else b""
        yield f"ibv_read_sysfs_file({folder}, {file}, {room}) = {result} {text}"


def copies(library):
    """What the conversions of kernel structs make of bytes that all differ."""
    lib = ctypes.CDLL(library)
    for name in ("ibv_copy_ah_attr_from_kern", "ibv_copy_qp_attr_from_kern",
                 "ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern"):
        source = ctypes.create_string_buffer(bytes((i * 37 + 11) & 0xff for i in range(256)), 256)
        target = ctypes.create_string_buffer(b"\0" * 256, 256)
        getattr(lib, name)(target, source)
        yield f"{name}: {target.raw.hex()}"


def main():
    if sys.argv[1] == "--answers":
        for line in list(answers(sys.argv[2])) + list(copies(sys.argv[2])):
            print(line)
        return 0
    texts = []
    for folder in sys.argv[1:3]:
        library = os.path.join(os.path.realpath(folder), "libibverbs.so.1")
        done = subprocess.run([sys.executable, "-B", __file__, "--answers", library],
                              capture_output=True, text=True, check=True)
        texts.append(done.stdout.splitlines())
    ours, theirs = texts
    different = [f"ours:   {a}\ntheirs: {b}" for a, b in zip(ours, theirs) if a != b]
    if len(ours) != len(theirs):
        different.append(f"{len(ours)} answers of ours, {len(theirs)} of theirs")
    print("\n".join(different) or f"{len(ours)} answers are the same")
    return 1 if different else 0


sys.exit(main())
