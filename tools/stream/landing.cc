#include "stream/landing.h"

#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <mutex>

#include "kit/failure.h"
#include "stream/ring_file.h"

namespace weft::stream {
namespace {

// Landings come and go while nobody writes to them; a handler walks along the chain.
std::atomic<Landing*> g_first{nullptr};
std::mutex g_chain;
struct sigaction g_before {};

// Somebody else's fault.
void pass_on(int signal, siginfo_t* info, void* context) {
  if ((g_before.sa_flags & SA_SIGINFO) != 0) {
    g_before.sa_sigaction(signal, info, context);
  } else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN) {
    g_before.sa_handler(signal);
  } else {
    // A fault comes again when this returns, and ends the process.
    (void)::signal(signal, SIG_DFL);
    if (info->si_code <= 0) (void)::raise(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  Landing* landing = info->si_code > 0 ? g_first.load(std::memory_order_acquire) : nullptr;
  while (landing != nullptr && !landing->gives_way_at(info->si_addr)) landing = landing->next();
  if (landing == nullptr) pass_on(signal, info, context);
  errno = error;
}

void catch_faults() {
  static const bool caught = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&action.sa_mask);
    return ::sigaction(SIGSEGV, &action, &g_before) == 0;
  }();
  if (!caught) throw kit::system_failure("a handler of SIGSEGV");
}

}  // namespace

Landing::Landing(std::byte* at, uint32_t slots, uint64_t slot_bytes, const port::Fd& file,
                 uint64_t offset)
    : at_(at), slot_bytes_(slot_bytes), file_(file), offset_(offset), ways_(slots, Way::open) {
  catch_faults();
  const std::lock_guard lock{g_chain};
  next_ = g_first.load(std::memory_order_relaxed);
  g_first.store(this, std::memory_order_release);
}

Landing::~Landing() {
  const std::lock_guard lock{g_chain};
  Landing* before = g_first.load(std::memory_order_relaxed);
  if (before == this) {
    g_first.store(next_, std::memory_order_release);
    return;
  }
  while (before->next_ != this) before = before->next_;
  before->next_ = next_;
}

Landing::Way Landing::way(uint32_t slot) const {
  const std::lock_guard lock{lock_};
  return ways_[slot];
}

void Landing::open(uint32_t slot) {
  const std::lock_guard lock{lock_};
  if (ways_[slot] == Way::shut) {
    protect(place(slot), slot_bytes_, PROT_READ | PROT_WRITE);
  } else if (ways_[slot] != Way::open) {
    map_shared_at(place(slot), file_, offset_ + slot * slot_bytes_, slot_bytes_,
                  PROT_READ | PROT_WRITE);
  }
  ways_[slot] = Way::open;
}

// When mprotect(2) and mmap(2) return, no processor writes by what was there before: neither a copy
// of the library's nor one of the kernel's that had begun.
void Landing::shut(uint32_t slot) {
  const std::lock_guard lock{lock_};
  if (ways_[slot] == Way::open) {
    protect(place(slot), slot_bytes_, PROT_READ);
  } else if (ways_[slot] != Way::shut) {
    map_shared_at(place(slot), file_, offset_ + slot * slot_bytes_, slot_bytes_, PROT_READ);
  }
  ways_[slot] = Way::shut;
}

void Landing::lead_away(uint32_t slot) {
  const std::lock_guard lock{lock_};
  if (ways_[slot] == Way::away) return;
  if (ways_[slot] != Way::ahead && !map_nowhere(place(slot), slot_bytes_)) {
    throw kit::system_failure("memory for packets that nobody takes");
  }
  ways_[slot] = Way::away;
}

bool Landing::gives_way_at(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  if (byte < at_ || byte >= at_ + ways_.size() * slot_bytes_) return false;
  const auto slot = static_cast<uint32_t>(static_cast<uint64_t>(byte - at_) / slot_bytes_);
  const std::lock_guard lock{lock_};
  // Another thread was here meanwhile: the Write is tried again.
  if (ways_[slot] != Way::shut) return true;
  if (!map_nowhere(place(slot), slot_bytes_)) return false;
  const size_t before = slot == 0 ? ways_.size() - 1 : slot - 1;
  const bool ahead =
      slot == frontier_.load(std::memory_order_relaxed) || ways_[before] == Way::ahead;
  ways_[slot] = ahead ? Way::ahead : Way::away;
  return true;
}

}  // namespace weft::stream
