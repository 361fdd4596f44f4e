#include "shared/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/random.h"
#include "port/calls.h"
#include "port/memory_file.h"

namespace weft::shared {

using port::Fd;
using port::SystemError;
using stats::SameHostRefusal;

// spec/same-host 3.1. Which side's a field is does not bind a peer that is hostile.
struct Segment::Layout {
  std::array<std::byte, sizeof(wire::HostOffer::Nonce)> nonce;
  // Of the Initiator: where it has mapped this, and its PID, which is 0 until it has joined.
  std::atomic<uint64_t> initiator_address;
  std::atomic<uint32_t> initiator_pid;
  // Initiator to Responder; and back.
  std::array<RingControl, 2> controls;
  alignas(4096) std::array<std::array<std::byte, kRingBytes>, 2> rings;

  static void check() {
    static_assert(offsetof(Layout, initiator_address) == 16);
    static_assert(offsetof(Layout, initiator_pid) == 24);
    static_assert(offsetof(Layout, controls) == 64);
    static_assert(offsetof(Layout, rings) == 4096);
    static_assert(sizeof(Layout) == 4096 + 2 * kRingBytes);
  }
};

static_assert(sizeof(std::atomic<uint32_t>) == 4 && sizeof(std::atomic<uint64_t>) == 8);

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// Opens what `path` names without waiting and without consequences, if it is a file in memory that
// keeps its size, of this user's.
Result<Fd, SameHostRefusal> open_segment(const char* path, size_t size) {
  // What it is has to be known before it is opened: the number may be that of a terminal by now.
  const Fd name{port::calls::open(path, O_PATH | O_CLOEXEC, 0)};
  if (!name.valid()) {
    return fail(errno == EACCES || errno == EPERM ? SameHostRefusal::not_allowed
                                                  : SameHostRefusal::no_segment);
  }
  struct stat s {};
  if (::fstat(name.get(), &s) != 0 || !S_ISREG(s.st_mode)) {
    return fail(SameHostRefusal::foreign_segment);
  }
  if (s.st_uid != ::geteuid()) return fail(SameHostRefusal::not_allowed);
  if (s.st_size != static_cast<off_t>(size)) return fail(SameHostRefusal::foreign_segment);
  char own[32];
  std::snprintf(own, sizeof own, "/proc/self/fd/%d", name.get());
  Fd fd{port::calls::open(own, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0)};
  if (!fd.valid()) return fail(SameHostRefusal::not_allowed);
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return fail(SameHostRefusal::foreign_segment);
  return fd;
}

}  // namespace

void Segment::Unmap::operator()(Layout* p) const {
  if (::getpid() == pid) (void)::munmap(p, sizeof(Layout));
}

bool Segment::mapped() const {
  return ::getpid() == mapping_.get_deleter().pid;
}

Result<Segment::Mapping, SystemError> Segment::map(const Fd& fd) {
  void* const p = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (p == MAP_FAILED) return fail(SystemError{errno, "mmap"});
  Mapping mapping{static_cast<Layout*>(p), Unmap{::getpid()}};
  // A child of fork(2) has no part in the connection, and must not bear witness for it.
  if (::madvise(p, sizeof(Layout), MADV_DONTFORK) != 0) return fail(SystemError{errno, "madvise"});
  return mapping;
}

Result<Segment, SystemError> Segment::make() {
  if (port::largest_file() < sizeof(Layout)) return fail(SystemError{EFBIG, "RLIMIT_FSIZE"});
  Fd fd = port::memory_file("weft-rc");
  if (!fd.valid()) return fail(SystemError{errno, "memfd_create"});
  if (::ftruncate(fd.get(), sizeof(Layout)) != 0) return fail(SystemError{errno, "ftruncate"});
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return fail(SystemError{errno, "fcntl"});
  auto mapping = map(fd);
  if (!mapping.ok()) return fail(mapping.error());
  SystemRandom random;
  const std::array<uint64_t, 2> secret{random.next(), random.next()};
  Layout& layout = *new (mapping->get()) Layout;  // the file is zeros, and so is all but the nonce
  std::memcpy(layout.nonce.data(), secret.data(), sizeof secret);
  // Nobody asks the memory yet.
  for (RingControl& c : layout.controls) c.reader_sleeps.store(1, std::memory_order_relaxed);
  return Segment{std::move(fd), std::move(*mapping), layout.nonce};
}

Result<Segment, SameHostRefusal> Segment::join(const wire::HostOffer& offer,
                                               uint64_t network_namespace) {
  if (offer.network_namespace != network_namespace) {
    return fail(SameHostRefusal::network_namespace);
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", offer.pid, offer.descriptor);
  auto fd = open_segment(path, sizeof(Layout));
  if (!fd.ok()) return fail(fd.error());
  auto mapping = map(*fd);
  if (!mapping.ok()) return fail(SameHostRefusal::no_segment);
  Layout& layout = **mapping;
  if (layout.nonce != offer.nonce) return fail(SameHostRefusal::foreign_segment);
  Segment s{Fd{}, std::move(*mapping), offer.nonce};
  s.initiator_ = true;
  s.responder_pid_ = static_cast<int>(offer.pid);
  s.responder_address_ = offer.address;
  layout.initiator_address.store(reinterpret_cast<uintptr_t>(&layout), std::memory_order_relaxed);
  layout.initiator_pid.store(static_cast<uint32_t>(::getpid()), std::memory_order_release);
  return s;
}

wire::HostOffer Segment::offer(uint64_t network_namespace) const {
  return {.pid = static_cast<uint32_t>(::getpid()),
          .descriptor = static_cast<uint32_t>(fd_.get()),
          .network_namespace = network_namespace,
          .address = reinterpret_cast<uintptr_t>(mapping_.get()),
          .nonce = nonce_};
}

bool Segment::joined() const {
  return mapping_->initiator_pid.load(std::memory_order_acquire) != 0;
}

std::optional<PeerMemory> Segment::peer() const {
  int pid = responder_pid_;
  uint64_t address = responder_address_;
  if (!initiator_) {
    pid = static_cast<int>(mapping_->initiator_pid.load(std::memory_order_acquire));
    address = mapping_->initiator_address.load(std::memory_order_relaxed);
  }
  if (is_this_process(pid) && !(own_end_ != nullptr && own_end_->other_is_here())) return {};
  return PeerMemory{pid, address, nonce_};
}

RingPlace Segment::ring(size_t i) const {
  return {&mapping_->controls[i], mapping_->rings[i].data()};
}

}  // namespace weft::shared
