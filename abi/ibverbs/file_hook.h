// The files of weft0 that are not there.
//
// UCX takes a device only when the kernel's file of it, /dev/infiniband/<dev_name>, is a character
// device that may be read and written (spec/abi 6.1). It asks the C library, and no answer of
// libibverbs reaches it. It also reads there which kind of address a GID is, and without an answer
// takes RoCE v1. From 1.19 on it reads the interface of a GID, too, and without an answer takes no
// peer to be reachable. NCCL from 2.21 on reads the kind of two GIDs where there are several, and
// its job ends without an answer; so do RCCL and PyTorch, which have that code too.
//
// Mooncake leaves a device out whose folder in /sys leads nowhere.
//
// So weft puts functions of its own in the place of those that such libraries import, in their
// global offset tables (spec/abi 6.1): for paths of weft0 they answer as the kernel would, all else
// they pass on. Touched are the program and libraries that are linked with libibverbs, and those
// called libuc* and libmca* (UCX, and what Open MPI shares between its components), libnccl*,
// librccl* and libtorch*, which load libibverbs while they run. The option no_hook leaves
// everything as it is; then the device file has to be made by hand: `mkdir /dev/infiniband; ln -s
// /dev/null /dev/infiniband/uverbs0`.
//
//   /dev/infiniband/uverbs0                                   stands for /dev/null
//   /sys/class/infiniband/weft0/ports/1/gid_attrs/types/N     can be opened: the type of GID N
//   /sys/class/infiniband/weft0/ports/1/gid_attrs/ndevs/N     the same: its interface, as "eth0"
//   /sys/class/infiniband/weft0                               realpath(3): as of a virtual device
#pragma once

#include <string_view>

namespace weft::abi {

// The dev_name of weft0.
inline constexpr std::string_view kDeviceFile = "uverbs0";

// In the place of the kernel's driver: takes what is written and says nothing.
inline constexpr char kDriver[] = "/dev/null";

// Does it for all libraries that are loaded now; ibv_get_device_list calls it, because UCX asks for
// the list right before it looks for the file. Any thread, any number of times. Takes locks of the
// dynamic loader, so the caller holds none.
void hook_files() noexcept;

}  // namespace weft::abi
