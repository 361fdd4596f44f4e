"""Makes the guest's kernel and its file system out of Debian's packages, and keeps both in the user's cache.

What takes long, the kernel's modules, is kept apart from the file system, which changes with the files in guest/.
"""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SETUP = os.path.join(HERE, "../../scripts/setup")
PROGRAMS = (
    ["rping", "ucmatose", "rdma_client", "rdma_server", "ibv_devinfo", "rdma", "setpriv"]
    + [f"ib_{verb}_{kind}" for verb in ("write", "read", "send") for kind in ("bw", "lat")]
)
# siw's checksum needs crc32c_generic, which busybox's modprobe would not load by itself.
MODULES = ["crc32c_generic", "siw", "ib_uverbs", "rdma_ucm", "rdma_cm", "virtio_net", "virtio_pci", "virtio_console"]
SIW_OBJECTS = "siw_cm.o siw_cq.o siw_main.o siw_mem.o siw_qp.o siw_qp_tx.o siw_qp_rx.o siw_verbs.o"
SIW_MAKEFILE = f"obj-m := siw.o\nsiw-y := {SIW_OBJECTS}\n"
# rping ends by pthread_exit, which loads the first; the second is libibverbs' driver.
LIBRARIES = ["libgcc_s.so.1", "libibverbs/libsiw-rdmav34.so"]
# What a program said before it was killed is worth reading, so nobody keeps it in a buffer.
LINE_BUFFERED = "/usr/libexec/coreutils/libstdbuf.so"
LIBRARY_PATHS = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"]
DRIVERS = "/etc/libibverbs.d/siw.driver"


class Unavailable(Exception):
    """The guest cannot be made here; the text says why and what to do."""


class Broken(Exception):
    """It could be made here, but that fails."""


def output(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def run(*command, **more):
    """Says nothing when all is well."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if result.returncode != 0:
        raise Broken(f"{' '.join(command)} ended with status {result.returncode}:\n{result.stdout}")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    directory = os.path.join(base, "weft")
    os.makedirs(directory, exist_ok=True)
    return directory


def short_hash(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def delete_what_was_left():
    """What a killed run was making, and guests that nobody has made for a week."""
    for name in os.listdir(cache()):
        path = os.path.join(cache(), name)
        age = time.time() - os.path.getmtime(path)
        if (name.startswith(".") and age > 3600) or (name.startswith("guest-") and age > 7 * 86400):
            shutil.rmtree(path, ignore_errors=True)


def kept(name, make):
    """The directory NAME of the cache; make(directory) fills it when it is not there yet."""
    directory = os.path.join(cache(), name)
    if not os.path.isdir(directory):
        delete_what_was_left()
        with tempfile.TemporaryDirectory(dir=cache(), prefix=f".{name}-") as work:
            fresh = os.path.join(work, "fresh")
            os.mkdir(fresh)
            make(fresh, work)
            try:
                os.rename(fresh, directory)
            except OSError:
                if not os.path.isdir(directory):  # somebody else may have been faster
                    raise
    return directory


def kernel_version():
    """The one whose headers are installed, as in 6.1.0-56-amd64."""
    depends = output("dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64")
    found = re.search(r"linux-headers-(\S+)", depends)
    if not found:
        raise Unavailable(f"linux-headers-amd64 names no version in '{depends}'")
    return found.group(1)


def build_siw(version, directory):
    """siw.ko from Debian's source of the kernel; Debian's kernels are built without it."""
    source = "/usr/src/linux-source-6.1.tar.xz"
    run("tar", "-C", directory, "-xf", source, "--strip-components=5", "--wildcards", "*/drivers/infiniband/sw/siw/*")
    with open(f"{directory}/Makefile", "w", encoding="utf-8") as f:
        f.write(SIW_MAKEFILE)
    run("make", "-C", f"/lib/modules/{version}/build", f"M={directory}", "-j2", "modules")
    run("strip", "--strip-debug", f"{directory}/siw.ko")
    return f"{directory}/siw.ko"


def make_kernel(version, directory, work):
    """vmlinuz and the modules that the guest loads, with modprobe's tables."""
    print(f"making the guest's kernel {version} (once)", flush=True)
    tree = f"{work}/tree"
    download = ["apt-get", "-qq", "download", f"linux-image-{version}"]
    try:
        run(*download, cwd=work)
    except Broken:
        try:
            run("apt-get", "-qq", "update")  # its lists may be old, or not there
            run(*download, cwd=work)
        except Broken as e:
            raise Unavailable(f"the kernel's package cannot be had: {e}") from e
    package = [name for name in os.listdir(work) if name.endswith(".deb")]
    run("dpkg", "-x", f"{work}/{package[0]}", tree)
    shutil.copy(f"{tree}/boot/vmlinuz-{version}", f"{directory}/vmlinuz")
    modules = f"lib/modules/{version}"
    os.mkdir(f"{work}/siw")
    os.mkdir(f"{tree}/{modules}/extra")
    shutil.copy(build_siw(version, f"{work}/siw"), f"{tree}/{modules}/extra/siw.ko")
    run("depmod", "-b", tree, version)
    wanted = output("modprobe", "-d", tree, "-S", version, "--show-depends", "-a", *MODULES)
    for path in set(re.findall(r"^insmod (\S+)", wanted, re.MULTILINE)):
        copy = f"{directory}/{os.path.relpath(path, tree)}"
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)
    for table in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(f"{tree}/{modules}/{table}", f"{directory}/{modules}/{table}")
    run("depmod", "-b", directory, version)


def libraries_of(path):
    return re.findall(r"(/\S+) \(0x", output("ldd", path))


def find_library(name):
    for directory in LIBRARY_PATHS:
        if os.path.exists(f"{directory}/{name}"):
            return f"{directory}/{name}"
    raise Unavailable(f"no {name} in {' or '.join(LIBRARY_PATHS)}")


def install(path, root):
    """A copy at the same place below ROOT, as a file of its own even where PATH is a link."""
    copy = root + path
    if not os.path.exists(copy):
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)


def find_program(name):
    path = shutil.which(name)
    if not path:
        raise Unavailable(f"{name} is not installed; scripts/setup interop installs it")
    return path


def make_file_system(kernel, directory, work):
    root = f"{work}/root"
    for name in ("bin", "proc", "sys", "dev", "run", "tmp", "etc"):
        os.makedirs(f"{root}/{name}")
    shutil.copytree(f"{kernel}/lib", f"{root}/lib")
    binaries = [find_program(name) for name in PROGRAMS] + [find_library(name) for name in LIBRARIES]
    for path in [DRIVERS, LINE_BUFFERED, *binaries, *(library for path in binaries for library in libraries_of(path))]:
        install(path, root)
    shutil.copy(find_program("busybox"), f"{root}/bin/busybox")
    for name in os.listdir(f"{HERE}/guest"):
        shutil.copy(f"{HERE}/guest/{name}", f"{root}/{name}")
        os.chmod(f"{root}/{name}", 0o755)
    # Unpacking is the emulated guest's work, and the less is packed, the less it takes.
    with gzip.open(f"{directory}/initramfs.gz", "wb", compresslevel=6) as f:
        f.write(archive(root))


def archive(root):
    """What cpio makes of all that is below ROOT; the kernel takes several such archives, one behind the other."""
    names = "\n".join(os.path.relpath(os.path.join(at, name), root)
                      for at, directories, files in os.walk(root) for name in sorted(directories + files))
    return subprocess.run(["cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0"], cwd=root, input=names.encode(),
                          stdout=subprocess.PIPE, check=True).stdout


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def package_versions(*packages):
    return output("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *packages)


def with_files(initramfs, files, copy):
    """Makes COPY of the initramfs, in which there are the FILES, too: {path here: path there}, and the libraries they need."""
    with tempfile.TemporaryDirectory() as root:
        for here, there in files.items():
            os.makedirs(os.path.dirname(root + there), exist_ok=True)
            shutil.copy(here, root + there)
            for library in libraries_of(here):
                if library.startswith(("/lib", "/usr/lib")):
                    install(library, root)
        more = archive(root)
    with open(initramfs, "rb") as source, open(copy, "wb") as target:
        shutil.copyfileobj(source, target)
        target.write(b"\0" * (-target.tell() % 4))
        target.write(more)


def guest_image():
    """(vmlinuz, initramfs), made when the cache has none of these versions."""
    if os.geteuid() == 0:
        if subprocess.run([SETUP, "interop"], check=False).returncode != 0:
            raise Unavailable("scripts/setup interop could not install what the guest is made of")
    try:
        version = kernel_version()
        packages = package_versions("linux-source-6.1", f"linux-headers-{version}")
        own = read(__file__)
        kernel = kept(f"kernel-{version}-{short_hash(packages, SIW_MAKEFILE, *MODULES)}",
                      lambda directory, work: make_kernel(version, directory, work))
        programs = package_versions("rdmacm-utils", "perftest", "busybox-static", "ibverbs-providers", "libc6")
        guest = [read(f"{HERE}/guest/{name}") for name in sorted(os.listdir(f"{HERE}/guest"))]
        image = kept(f"guest-{version}-{short_hash(kernel, own, programs, *guest)}",
                     lambda directory, work: make_file_system(kernel, directory, work))
    except (subprocess.CalledProcessError, OSError) as e:
        raise Unavailable(f"the guest cannot be made: {e}") from e
    return f"{kernel}/vmlinuz", f"{image}/initramfs.gz"
