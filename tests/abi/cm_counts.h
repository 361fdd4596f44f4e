// What a process has of things that a library may forget to give back.
#pragma once

#include <dirent.h>
#include <infiniband/verbs.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>

namespace weft::test {

inline size_t entries(const char* directory) {
  size_t n = 0;
  DIR* d = opendir(directory);
  if (d == nullptr) return 0;
  while (readdir(d) != nullptr) ++n;
  closedir(d);
  return n;
}

// A thousand connections take more descriptors than the soft limit usually allows.
inline size_t raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// The ports that queue pairs' numbers are from: each stays with the process and holds two sockets
// and a table. Numbers rest for two seconds, so there are more ports the faster pairs come and go
// (spec/addressing 2.3).
class Ports {
 public:
  void see(const ibv_qp* qp) { seen_.insert(qp->qp_num >> 8); }
  size_t size() const { return seen_.size(); }

 private:
  std::set<uint32_t> seen_;
};

// What the heap may grow by without anything being lost: malloc counts what threads keep in their
// caches as given out, and queues and tables grow with the largest crowd that they have seen.
inline constexpr size_t kHeapNoise = 131'072;
inline constexpr size_t kHeapOfPort = 24'576;
// An engine keeps two batches for output (mpa/tx_batch.h): as many as had to wait for room in their
// sockets at one time, which may be none at first.
inline size_t heap_of_batches() {
  constexpr size_t kBatch = 288 * 1024;
  const auto engines = static_cast<size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN) / 4, 1L));
  return 2 * kBatch * engines;
}
// By how much it may have grown when so many ports have come.
inline size_t heap_growth(size_t ports) {
  return kHeapNoise + heap_of_batches() + kHeapOfPort * ports;
}

struct Counts {
  size_t descriptors;  // without those of ports
  size_t threads;
  size_t heap;  // bytes that malloc has given out

  static Counts now(const Ports& ports) {
    const struct mallinfo2 m = mallinfo2();
    return {entries("/proc/self/fd") - 2 * ports.size(), entries("/proc/self/task"),
            m.uordblks + m.hblkhd};
  }
  friend std::ostream& operator<<(std::ostream& out, const Counts& c) {
    return out << c.descriptors << " descriptors, " << c.threads << " threads, " << c.heap
               << " bytes of heap";
  }
};

}  // namespace weft::test
