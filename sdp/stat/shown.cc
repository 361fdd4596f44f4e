#include "sdp/stat/shown.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

#include "sdp/loop/file.h"
#include "sdp/loop/handlers.h"

namespace weft::sdp {
namespace {

// Above the limit a file that grows brings SIGXFSZ.
bool may_have_file() {
  rlimit most{};
  return ::getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur >= kStatBytes;
}

File make_file() {
  if (!may_have_file()) return {};
  File file = out_of_the_way(File{::memfd_create(kStatName, MFD_CLOEXEC)});
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(kStatBytes)) != 0) return {};
  return file;
}

// The memory of this process. Pages that no connection has reached are never touched.
class Memory {
 public:
  Memory() {
    const int flags = file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* p = ::mmap(nullptr, kStatBytes, PROT_READ | PROT_WRITE, flags, file_.get(), 0);
    if (p == MAP_FAILED) return;
    (void)::madvise(p, kStatBytes, MADV_DONTFORK);
    start_ = static_cast<std::byte*>(p);
    StatHeader& h = *new (start_) StatHeader;
    h.layout = kStatLayout;
    h.pid = static_cast<uint32_t>(::getpid());
    // Last: until then it is no header.
    std::atomic_ref{h.magic}.store(kStatMagic, std::memory_order_release);
  }

  StatSlot* take(const ShownConnection& c) {
    if (start_ == nullptr) return nullptr;
    const std::lock_guard holding{lock_};
    count(c);
    StatSlot* slot = nullptr;
    // It is given back where nothing may fail.
    const size_t used = header().used.load();
    if (free_.capacity() <= used) free_.reserve(2 * used + 16);
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else if (used < kStatSlots) {
      slot = reinterpret_cast<StatSlot*>(start_ + stat_slot_offset(static_cast<uint32_t>(used)));
    } else {
      return nullptr;
    }
    new (slot) StatSlot;
    slot->server = c.server;
    slot->fallback = c.fallback;
    slot->own = c.own;
    slot->peer = c.peer;
    slot->transport.store(c.transport, std::memory_order_release);
    const auto end = static_cast<uint32_t>(slot - first() + 1);
    if (end > header().used.load()) header().used.store(end, std::memory_order_release);
    return slot;
  }

  void give_back(StatSlot* slot) {
    const std::lock_guard holding{lock_};
    slot->transport.store(Transport::none, std::memory_order_release);
    Traffic& sum = header().ended;
    const Traffic& t = slot->traffic;
    Traffic::add(sum.bytes_sent, t.bytes_sent);
    Traffic::add(sum.bytes_received, t.bytes_received);
    Traffic::add(sum.messages_sent, t.messages_sent);
    Traffic::add(sum.messages_received, t.messages_received);
    Traffic::add(sum.bytes_read, t.bytes_read);
    Traffic::add(sum.bytes_written, t.bytes_written);
    free_.push_back(slot);
  }

 private:
  StatHeader& header() { return *reinterpret_cast<StatHeader*>(start_); }
  StatSlot* first() { return reinterpret_cast<StatSlot*>(start_ + stat_slot_offset(0)); }

  void count(const ShownConnection& c) {
    if (c.transport == Transport::tcp) {
      ++header().fallbacks[static_cast<size_t>(c.fallback)];
    } else {
      ++(c.server ? header().accepted : header().connected);
    }
  }

  File file_ = make_file();  // others find the memory by it
  std::byte* start_ = nullptr;
  Mutex lock_;  // of free_, and of what is taken
  std::vector<StatSlot*> free_;
};

Mutex g_lock;
Memory* g_memory = nullptr;  // never destroyed: programs use sockets while they end

Memory& memory() {
  const std::lock_guard holding{g_lock};
  if (g_memory == nullptr) g_memory = new Memory;
  return *g_memory;
}

void copy(const Traffic& from, Traffic& to) {
  to.bytes_sent = from.bytes_sent.load();
  to.bytes_received = from.bytes_received.load();
  to.messages_sent = from.messages_sent.load();
  to.messages_received = from.messages_received.load();
  to.bytes_read = from.bytes_read.load();
  to.bytes_written = from.bytes_written.load();
  to.credits = from.credits.load();
}

}  // namespace

Shown::Shown(const ShownConnection& connection) : slot_(memory().take(connection)) {}

Shown::Shown(Shown&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {
  copy(other.own_, own_);
}

Shown& Shown::operator=(Shown&& other) noexcept {
  if (this == &other) return *this;
  // What it has counted so far goes on to count.
  copy(traffic(), other.traffic());
  if (slot_ != nullptr) memory().give_back(slot_);
  slot_ = std::exchange(other.slot_, nullptr);
  if (slot_ == nullptr) copy(other.own_, own_);
  return *this;
}

Shown::~Shown() {
  if (slot_ != nullptr) memory().give_back(slot_);
}

void Shown::forget_in_child() {
  new (&g_lock) Mutex;
  g_memory = nullptr;
}

}  // namespace weft::sdp
