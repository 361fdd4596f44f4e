// What a process has used of the machine so far.
#pragma once

namespace weft::bench {

struct Usage {
  double cpu_s = 0;          // user and system, all threads
  double library_cpu_s = 0;  // all threads but the calling one: those of the library
  double switches = 0;       // context switches of all threads, asked for or not

  friend Usage operator-(const Usage& a, const Usage& b) {
    return {a.cpu_s - b.cpu_s, a.library_cpu_s - b.library_cpu_s, a.switches - b.switches};
  }
};

// To be called by the process's first thread.
Usage usage_now();

// Resident memory of this process and the page tables that it needs, bytes.
double resident_bytes();

// What the kernel keeps for this process's descriptors: files, their places in epoll sets, sockets
// and what is queued in them, bytes. The sizes of its structs are those of /proc/slabinfo, which
// root alone reads, else typical ones.
double kernel_bytes();

}  // namespace weft::bench
