// What two processes of one host can do at best: look at each other's lines of memory, wake each
// other by futex(2), and pull from each other's memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "bench/region.h"
#include "bench/work.h"
#include "kit/failure.h"
#include "port/fd.h"
#include "port/memory_file.h"

namespace weft::bench {
namespace {

// A message in each direction, with its number beside it.
struct Line {
  alignas(64) std::atomic<uint32_t> number;
  alignas(64) std::byte data[64];
};
struct Lines {
  Line there;
  Line back;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

class LinePingPong final : public Work {
 public:
  explicit LinePingPong(const Order& order)
      : order_(order),
        source_(order.spec.size),
        sink_(order.spec.size),
        sent_(source_),
        received_(sink_) {
    if (order.spec.size > sizeof Line::data) throw kit::Failure{"a line holds 64 bytes"};
    source_.fill();
  }
  LinePingPong(const LinePingPong&) = delete;
  LinePingPong& operator=(const LinePingPong&) = delete;
  ~LinePingPong() override {
    if (lines_ != nullptr) ::munmap(lines_, sizeof(Lines));
  }

  void connect(const Channel& peer) override {
    port::Fd file;
    if (order_.role == Role::target) {
      file = port::memory_file("weft-bench");
      if (!file.valid() || ::ftruncate(file.get(), sizeof(Lines)) != 0) {
        throw kit::system_failure("memfd_create");
      }
      peer.send(fmt::format("/proc/{}/fd/{}", ::getpid(), file.get()));
      (void)peer.receive();
    } else {
      const std::string path = peer.receive();
      file = port::Fd{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
      if (!file.valid()) throw kit::system_failure("open " + path);
      peer.send("opened");
    }
    void* const at =
        ::mmap(nullptr, sizeof(Lines), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED) throw kit::system_failure("mmap");
    lines_ = static_cast<Lines*>(at);
  }
  void clear() override { sink_.clear(); }

  Done initiate(const Phase& phase) override {
    return ping_pong(
        phase,
        [&](bool last) {
          say(lines_->there, last);
          hear(lines_->back);
        },
        [] {});
  }
  void serve(const Phase&) override {
    for (bool last = false; !last;) {
      last = hear(lines_->there);
      say(lines_->back, last);
    }
  }
  bool intact(uint64_t first, uint64_t count) const override { return sink_.holds(first, count); }

 private:
  static constexpr uint32_t kLast = 1;  // in the number, whose other bits count

  void say(Line& line, bool last) {
    std::copy_n(source_.data() + sent_.offset(), order_.spec.size, line.data);
    sent_.advance();
    const auto number = static_cast<uint32_t>(sent_.sequence()) << 1 | (last ? kLast : 0);
    line.number.store(number, std::memory_order_release);
    if (order_.spec.wait == Wait::event) futex(line, FUTEX_WAKE, 1);
  }
  // True: it was the last one.
  bool hear(Line& line) {
    const auto wanted = static_cast<uint32_t>(received_.sequence() + 1);
    uint32_t number = line.number.load(std::memory_order_acquire);
    while (number >> 1 != (wanted & UINT32_MAX >> 1)) {
      if (order_.spec.wait == Wait::event) futex(line, FUTEX_WAIT, number);
      number = line.number.load(std::memory_order_acquire);
    }
    std::copy_n(line.data, order_.spec.size, sink_.data() + received_.offset());
    received_.advance();
    return (number & kLast) != 0;
  }
  static void futex(Line& line, int operation, uint32_t value) {
    (void)::syscall(SYS_futex, &line.number, operation, value, nullptr, nullptr, 0);
  }

  const Order order_;
  Region source_;
  Region sink_;
  Cursor sent_;
  Cursor received_;
  Lines* lines_ = nullptr;
};

// The initiator pulls; the target's part is to have the memory.
class Pull final : public Work {
 public:
  explicit Pull(const Order& order)
      : order_(order), region_(order.spec.size, slots_of(order.spec)), cursor_(region_) {
    if (order.role == Role::target) region_.fill();
  }

  void connect(const Channel& peer) override {
    if (order_.role == Role::target) {
      peer.send({{"pid", ::getpid()}, {"address", reinterpret_cast<uintptr_t>(region_.data())}});
      return;
    }
    const nlohmann::json where = peer.receive();
    pid_ = where.at("pid");
    address_ = where.at("address");
  }
  void clear() override {
    if (order_.role == Role::initiator) region_.clear();
  }

  Done initiate(const Phase& phase) override {
    const int64_t start = kit::now_ns();
    const int64_t end = start + phase.duration_ns;
    uint64_t messages = 0;
    for (int64_t now = start; phase.warm_up ? messages < phase.messages : now < end;
         now = kit::now_ns()) {
      pull();
      ++messages;
    }
    return {
        .messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
  }
  void serve(const Phase&) override {}
  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::target || region_.holds(first, count);
  }

 private:
  void pull() {
    for (uint64_t have = 0; have < order_.spec.size;) {
      const uint64_t at = cursor_.offset() + have;
      const iovec here{region_.data() + at, order_.spec.size - have};
      const iovec there{
          reinterpret_cast<void*>(address_ + at),  // NOLINT(performance-no-int-to-ptr)
          order_.spec.size - have};
      const ssize_t n = ::process_vm_readv(pid_, &here, 1, &there, 1, 0);
      if (n <= 0) throw kit::system_failure("process_vm_readv");
      have += static_cast<uint64_t>(n);
    }
    cursor_.advance();
  }

  const Order order_;
  Region region_;
  Cursor cursor_;
  pid_t pid_ = 0;
  uintptr_t address_ = 0;
};

}  // namespace

std::unique_ptr<Work> make_line_ping_pong(const Order& order) {
  return std::make_unique<LinePingPong>(order);
}
std::unique_ptr<Work> make_pull(const Order& order) {
  return std::make_unique<Pull>(order);
}

}  // namespace weft::bench
