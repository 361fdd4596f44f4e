#include "observe/counter_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "observe/counter_layout.h"

namespace weft::observe {
namespace {

constexpr size_t kMostEngines = 64;
// A queue pair that goes while we read makes us look again: soon at first, then in steps that let
// its process have the processor, for about a second in all.
constexpr int kTries = 1000;
constexpr int kTriesAtOnce = 10;
constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 1'000'000};

std::string proc(pid_t pid) {
  return "/proc/" + (pid == 0 ? std::string("self") : std::to_string(pid));
}

// The file, mapped for reading.
class View {
 public:
  explicit View(const port::Fd& file) {
    struct stat info {};
    // Without the seal its owner could shorten it while we look, and that ends in SIGBUS.
    const int seals = ::fcntl(file.get(), F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(file.get(), &info) != 0) return;
    size_ = static_cast<size_t>(info.st_size);
    if (size_ < qp_page_offset(0, 0)) return;
    void* p = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
    if (p != MAP_FAILED) start_ = static_cast<const std::byte*>(p);
  }
  ~View() {
    if (start_ != nullptr) ::munmap(const_cast<std::byte*>(start_), size_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const CounterHeader* header() const { return reinterpret_cast<const CounterHeader*>(start_); }
  // Whether pages up to this offset are there.
  bool has(size_t end) const { return end <= size_; }
  template <class T>
  const T& at(size_t offset) const {
    return *reinterpret_cast<const T*>(start_ + offset);
  }

 private:
  const std::byte* start_ = nullptr;
  size_t size_ = 0;
};

struct Sizes {
  size_t engines = 0;
  size_t qp_pages = 0;
};

// Engine `number` and its queue pairs, as they are at one moment. False when there is none.
bool read_engine(const View& view, const Sizes& sizes, unsigned number, Snapshot& out) {
  const auto& block = view.at<stats::EngineBlock>(engine_offset(number));
  const size_t before = out.queue_pairs.size();
  std::vector<uint64_t>& values = out.engines[number];
  for (int i = 0; i < kTries; ++i) {
    if (i >= kTriesAtOnce) ::nanosleep(&kStep, nullptr);
    const uint64_t sequence = block.sequence.load(std::memory_order_acquire);
    if (sequence % 2 != 0) continue;
    out.queue_pairs.resize(before);
    values.assign(stats::row_count(stats::Scope::engine), 0);
    stats::add_values(block.counters, values);
    stats::add_values(block.gone.counters, values);
    for (size_t p = 0; p < sizes.qp_pages; ++p) {
      const auto& page = view.at<QpPage>(qp_page_offset(sizes.engines, p));
      if (page.engine != number) continue;
      for (const stats::QpBlock& qp : page.blocks) {
        Snapshot::QueuePair found{.qpn = qp.qpn.load(std::memory_order_acquire),
                                  .engine = number,
                                  .last_terminate = qp.last_terminate.load(),
                                  .peer = qp.peer.value()};
        if (found.qpn == 0) continue;
        found.values.resize(stats::row_count(stats::Scope::queue_pair));
        stats::add_values(qp.counters, found.values);
        for (size_t v = 0; v < found.values.size(); ++v) values[v] += found.values[v];
        out.queue_pairs.push_back(std::move(found));
      }
    }
    if (block.sequence.load(std::memory_order_relaxed) == sequence) return true;
  }
  return false;
}

// The number that a process has in its own PID namespace; 0 when it is gone.
uint32_t own_pid(pid_t pid) {
  std::ifstream status(proc(pid) + "/status");
  uint32_t found = 0;
  for (std::string line; std::getline(status, line);) {
    const bool innermost = line.starts_with("NSpid:");
    if (!innermost && !line.starts_with("Pid:")) continue;
    std::istringstream numbers(line.substr(line.find(':') + 1));
    for (uint32_t n = 0; numbers >> n;) found = n;
    if (innermost) break;
  }
  return found;
}

}  // namespace

Result<Snapshot, ReadError> read_counters(const port::Fd& file, uint32_t owner) {
  const View view(file);
  const CounterHeader* h = view.header();
  if (h == nullptr || h->magic != kMagic || (owner != 0 && h->pid != owner)) {
    return fail(ReadError::none_there);
  }
  if (h->layout != kLayout || h->fingerprint != stats::fingerprint()) {
    return fail(ReadError::other_version);
  }
  const Sizes sizes{.engines = h->engines, .qp_pages = h->qp_pages.load(std::memory_order_acquire)};
  // What a reader touches of a file with holes takes memory, so there is a bound.
  if (sizes.engines > kMostEngines || sizes.qp_pages > kMostQpPages ||
      !view.has(qp_page_offset(sizes.engines, sizes.qp_pages))) {
    return fail(ReadError::none_there);
  }
  Snapshot s{.started_ns = h->started_ns};
  s.device.resize(stats::row_count(stats::Scope::device));
  s.engines.resize(sizes.engines);
  for (unsigned e = 0; e < sizes.engines; ++e) {
    if (!read_engine(view, sizes, e, s)) return fail(ReadError::never_still);
    for (size_t v = 0; v < s.engines[e].size(); ++v) s.device[v] += s.engines[e][v];
  }
  stats::add_values(h->device, s.device);
  std::sort(s.queue_pairs.begin(), s.queue_pairs.end(),
            [](const auto& a, const auto& b) { return a.qpn < b.qpn; });
  return s;
}

port::Fd open_counters(pid_t pid) {
  const std::string folder = proc(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir(folder.c_str()), ::closedir};
  if (all == nullptr) return {};
  std::string wanted = "/memfd:";
  wanted += kMemoryName;
  while (const dirent* entry = ::readdir(all.get())) {
    char target[64] = "";
    const ssize_t n = ::readlinkat(::dirfd(all.get()), entry->d_name, target, sizeof target - 1);
    if (n <= 0 || !std::string_view(target, static_cast<size_t>(n)).starts_with(wanted)) continue;
    // A FIFO with such a name must not make us wait; what is no memory file is refused later.
    port::Fd file{
        ::openat(::dirfd(all.get()), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (file.valid()) return file;
  }
  return {};
}

Result<Snapshot, ReadError> read_process(pid_t pid) {
  const port::Fd file = open_counters(pid);
  const uint32_t owner = own_pid(pid);
  if (!file.valid() || owner == 0) return fail(ReadError::none_there);
  return read_counters(file, owner);
}

}  // namespace weft::observe
