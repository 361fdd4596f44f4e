// The memory that a process has.
#pragma once

namespace weft::measure {

// Resident memory of this process and the page tables that it needs, bytes.
double resident_bytes();

// What the kernel keeps for this process's descriptors: files, their places in epoll sets, sockets
// and what is queued in them, bytes. The sizes of its structs are those of /proc/slabinfo, which
// root alone reads, else typical ones.
double kernel_bytes();

}  // namespace weft::measure
