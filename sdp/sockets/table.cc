#include "sdp/sockets/table.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {
namespace {

// Both ways, under one lock.
struct Streams {
  std::unordered_map<int, std::shared_ptr<Stream>> by_descriptor;
  std::unordered_multimap<const Stream*, int> descriptors;

  std::shared_ptr<Stream> find(int fd) const {
    const auto found = by_descriptor.find(fd);
    return found == by_descriptor.end() ? nullptr : found->second;
  }
  std::shared_ptr<Stream> take_out(int fd) {
    const auto found = by_descriptor.find(fd);
    if (found == by_descriptor.end()) return nullptr;
    auto stream = std::move(found->second);
    by_descriptor.erase(found);
    const auto [first, end] = descriptors.equal_range(stream.get());
    descriptors.erase(std::find_if(first, end, [fd](const auto& i) { return i.second == fd; }));
    return stream;
  }
  // What was there before.
  std::shared_ptr<Stream> put(int fd, std::shared_ptr<Stream> stream) {
    // What there is no memory for leaves no half of it.
    const auto at = descriptors.emplace(stream.get(), fd);
    try {
      std::swap(by_descriptor[fd], stream);
    } catch (const std::bad_alloc&) {
      descriptors.erase(at);
      throw;
    }
    if (!stream) return nullptr;
    const auto [first, end] = descriptors.equal_range(stream.get());
    descriptors.erase(
        std::find_if(first, end, [&](const auto& i) { return i.second == fd && &i != &*at; }));
    return stream;
  }
};

// Neither is ever destroyed: programs use sockets while they end.
Mutex& lock() {
  static auto* const mutex = new Mutex;
  return *mutex;
}
Streams*& streams() {
  static auto* map = new Streams;
  return map;
}

std::atomic<long> g_owner{0};
bool g_is_used = false;  // with the lock

long this_process() {
  return ::syscall(SYS_getpid);
}

}  // namespace

// A child of fork() has memory of its own.
void Table::begin() {
  const auto own = [] { g_owner = this_process(); };
  own();
  (void)::pthread_atfork(nullptr, nullptr, own);
}

bool Table::in_borrowed_memory() {
  return g_owner != 0 && g_owner != this_process();
}

std::shared_ptr<Stream> Table::look_up(int fd) {
  const std::lock_guard holding{lock()};
  return streams()->find(fd);
}

void Table::put(int fd, const std::shared_ptr<Stream>& stream) {
  if (static_cast<unsigned>(fd) >= kMost) return stream->relay_from_now(fd);
  std::shared_ptr<Stream> before;
  {
    const std::lock_guard holding{lock()};
    g_is_used = true;
    before = streams()->put(fd, stream);
    present[static_cast<unsigned>(fd)].store(true, std::memory_order_release);
    highest = std::max(highest.load(), fd);
  }
  if (fd <= STDERR_FILENO) stream->relay_from_now(fd);
}

void Table::relay(int fd) {
  if (const auto stream = find(fd)) stream->relay_from_now(fd);
}

void Table::copy(int from, int to) {
  const auto stream = find(from);
  if (!stream) return;
  if (in_borrowed_memory()) return stream->relay_from_now(from);
  stream->waiting().about_to_wait_elsewhere();
  put(to, stream);
}

void Table::drop(int fd) {
  if (static_cast<unsigned>(fd) >= kMost || !present[static_cast<unsigned>(fd)]) return;
  if (in_borrowed_memory()) return;
  std::shared_ptr<Stream> dropped;
  {
    const std::lock_guard holding{lock()};
    present[static_cast<unsigned>(fd)] = false;
    dropped = streams()->take_out(fd);
    if (!dropped) return;
  }
  if (!holds(*dropped)) dropped->on_closed();
}

bool Table::holds(const Stream& stream) {
  return descriptor_of(stream) >= 0;
}

bool Table::is_at(int fd, const Stream& stream) {
  const std::lock_guard holding{lock()};
  const auto found = streams()->by_descriptor.find(fd);
  return found != streams()->by_descriptor.end() && found->second.get() == &stream;
}

int Table::descriptor_of(const Stream& stream) {
  const std::lock_guard holding{lock()};
  const auto found = streams()->descriptors.find(&stream);
  return found == streams()->descriptors.end() ? -1 : found->second;
}

void Table::drop_range(unsigned first, unsigned last) {
  for (unsigned fd = first; fd <= last && fd < kMost; ++fd) drop(static_cast<int>(fd));
}

void Table::drop(const Stream& stream) {
  drop_if(stream, [](int) { return true; });
}

void Table::drop_closed(const Stream& stream, uint64_t cookie) {
  drop_if(stream, [cookie](int fd) { return cookie_of(fd) != cookie; });
}

template <class If>
void Table::drop_if(const Stream& stream, If goes) {
  std::shared_ptr<Stream> last;
  const std::lock_guard holding{lock()};
  auto [i, end] = streams()->descriptors.equal_range(&stream);
  while (i != end) {
    const int fd = i->second;
    if (!goes(fd)) {
      ++i;
      continue;
    }
    i = streams()->descriptors.erase(i);
    present[static_cast<unsigned>(fd)] = false;
    const auto found = streams()->by_descriptor.find(fd);
    last = std::move(found->second);
    streams()->by_descriptor.erase(found);
  }
}

// As it is asked for, which takes no memory: a descriptor that comes meanwhile may be left out.
template <class Do>
void Table::each(Do what) {
  for (int fd = 0; fd < end(); ++fd) {
    if (const auto stream = find(fd)) what(fd, *stream);
  }
}

void Table::relay_what_is_inherited() {
  each([](int fd, Stream& stream) {
    const long flags = ::syscall(SYS_fcntl, fd, F_GETFD, 0);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) stream.relay_from_now(fd);
  });
}

void Table::relay_all() {
  each([](int fd, Stream& stream) { stream.relay_from_now(fd); });
}

void Table::forget_all() {
  if (!std::exchange(g_is_used, false)) return;
  for (auto& one : present) one.store(false, std::memory_order_relaxed);
  // The mutex may be held by a thread that the child does not have.
  new (&lock()) Mutex;
  streams() = new Streams;
}

}  // namespace weft::sdp
