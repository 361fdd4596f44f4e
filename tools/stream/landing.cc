#include "stream/landing.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>
#include <utility>

#include "kit/failure.h"
#include "stream/ring_file.h"

namespace weft::stream {
namespace {

constexpr uint64_t kWorthATable = 128 << 10;
constexpr uint64_t kLargestTable = 2 << 20;

// Of memory that one page table covers: entries of 8 bytes fill a page.
uint64_t page_table_bytes() {
  const auto page = static_cast<uint64_t>(::getpagesize());
  return page / sizeof(uint64_t) * page;
}

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
    : at_(at), slot_bytes_(slot_bytes), file_(file), offset_(offset), slots_(slots) {
  catch_faults();
  if (slot_bytes % page_table_bytes() == 0) find_room_aside();
  const std::lock_guard lock{g_chain};
  next_ = g_first.load(std::memory_order_relaxed);
  g_first.store(this, std::memory_order_release);
}

Landing::~Landing() {
  give_up_room_aside();
  const std::lock_guard lock{g_chain};
  Landing* before = g_first.load(std::memory_order_relaxed);
  if (before == this) {
    g_first.store(next_, std::memory_order_release);
    return;
  }
  while (before->next_ != this) before = before->next_;
  before->next_ = next_;
}

uint64_t Landing::step_of(uint64_t bytes) {
  const uint64_t table = page_table_bytes();
  // What is small costs no more page by page; where pages are large, tables are of gigabytes.
  if (bytes < kWorthATable || table > kLargestTable) return bytes;
  return (bytes + table - 1) / table * table;
}

// Where the kernel cannot move page tables of shared memory (before Linux 5.13), there is none.
void Landing::find_room_aside() {
  aside_ = reserve(slots_.size() * slot_bytes_, page_table_bytes());
  if (move_pages(place(0), aside(0), slot_bytes_) && move_pages(aside(0), place(0), slot_bytes_)) {
    return;
  }
  give_up_room_aside();
}

void Landing::give_up_room_aside() {
  if (aside_ != nullptr) ::munmap(std::exchange(aside_, nullptr), slots_.size() * slot_bytes_);
}

void Landing::move_aside(uint32_t slot) {
  if (!move_pages(place(slot), aside(slot), slot_bytes_)) {
    throw kit::system_failure("memory for the ring");
  }
  slots_[slot].aside = true;
}

void Landing::move_back(uint32_t slot) {
  if (!move_pages(aside(slot), place(slot), slot_bytes_)) {
    throw kit::system_failure("memory for the ring");
  }
  slots_[slot].aside = false;
}

Landing::SlotState Landing::state(uint32_t slot) const {
  const std::lock_guard lock{lock_};
  return slots_[slot].state;
}

void Landing::open(uint32_t slot) {
  const std::lock_guard lock{lock_};
  Slot& s = slots_[slot];
  if (s.aside) {
    move_back(slot);
  } else if (s.state == SlotState::shut) {
    protect(place(slot), slot_bytes_, PROT_READ | PROT_WRITE);
  } else if (s.state != SlotState::open) {
    map_shared_at(place(slot), file_, offset_ + slot * slot_bytes_, slot_bytes_,
                  PROT_READ | PROT_WRITE);
  }
  s.state = SlotState::open;
}

// When these calls return, no processor writes by what was there before: neither a copy of the
// library's nor one of the kernel's that had begun. Where page tables have moved aside, a Write may
// find the pages again until the memory is protected, which then finds next to none.
void Landing::shut(uint32_t slot) {
  const std::lock_guard lock{lock_};
  Slot& s = slots_[slot];
  if (s.state == SlotState::open) {
    if (aside_ != nullptr) move_aside(slot);
    protect(place(slot), slot_bytes_, PROT_READ);
  } else if (s.state != SlotState::shut) {
    map_shared_at(place(slot), file_, offset_ + slot * slot_bytes_, slot_bytes_, PROT_READ);
  }
  s.state = SlotState::shut;
}

void Landing::lead_away(uint32_t slot) {
  const std::lock_guard lock{lock_};
  Slot& s = slots_[slot];
  if (s.state == SlotState::away) return;
  if (s.state == SlotState::open && aside_ != nullptr) move_aside(slot);
  if (s.state != SlotState::ahead && !map_nowhere(place(slot), slot_bytes_)) {
    throw kit::system_failure("memory for packets that nobody takes");
  }
  s.state = SlotState::away;
}

bool Landing::gives_way_at(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  if (byte < at_ || byte >= at_ + slots_.size() * slot_bytes_) return false;
  const auto slot = static_cast<uint32_t>(static_cast<uint64_t>(byte - at_) / slot_bytes_);
  const std::lock_guard lock{lock_};
  // Another thread was here meanwhile: the Write is tried again.
  if (slots_[slot].state != SlotState::shut) return true;
  if (!map_nowhere(place(slot), slot_bytes_)) return false;
  const size_t before = slot == 0 ? slots_.size() - 1 : slot - 1;
  const bool ahead =
      slot == frontier_.load(std::memory_order_relaxed) || slots_[before].state == SlotState::ahead;
  slots_[slot].state = ahead ? SlotState::ahead : SlotState::away;
  return true;
}

}  // namespace weft::stream
