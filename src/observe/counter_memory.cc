#include "observe/counter_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/wall_clock.h"
#include "port/faults.h"
#include "port/memory_file.h"
#include "stats/table.h"

namespace weft::observe {
namespace {

// Mapped at once: few system calls, and little for programs that lock all their memory.
constexpr size_t kPiece = 16;

bool refuse(const char* what) {
  WEFT_LOG(info,
           "the counters of this process cannot be shown: %s: %s; `weft stat` will not see it",
           what, std::strerror(errno));
  return false;
}

}  // namespace

CounterMemory::CounterMemory(unsigned engines, bool shown) : engines_(engines) {
  const size_t fixed = qp_page_offset(engines, 0);
  size_t size = fixed + kMostQpPages * kPage;
  most_pages_ = kMostQpPages;
  if (shown && make_file(size)) {
    most_pages_ = (size - fixed) / kPage;
    base_ = map(0, fixed);
    if (base_ == nullptr) {
      refuse("mmap");
      file_.reset();
    }
  }
  if (base_ == nullptr) base_ = own_memory(fixed);
  CounterHeader& h = header();
  h.layout = kLayout;
  h.engines = engines;
  h.fingerprint = stats::fingerprint();
  h.pid = static_cast<uint32_t>(getpid());
  h.most_qp_pages = static_cast<uint32_t>(most_pages_);
  h.started_ns = wall_clock_ns();
  // Last: until then it is no header.
  std::atomic_ref{h.magic}.store(kMagic, std::memory_order_release);
  port::faults::count_in(&device());
}

CounterMemory::~CounterMemory() {
  if (port::faults::counts_in() == &device()) port::faults::count_in(nullptr);
  for (const Mapping& m : mappings_) {
    if (m.shared) {
      ::munmap(m.start, m.size);
    } else {
      ::operator delete (m.start, std::align_val_t{kPage});
    }
  }
}

// Gives the file its final size at once: pages of it that nobody has written take no memory, and
// the seals keep everybody from making it shorter under a reader, or under us.
bool CounterMemory::make_file(size_t& size) {
  // Above this limit a file that grows brings SIGXFSZ.
  if (const uint64_t most = port::largest_file(); most < size) {
    size = most / kPage * kPage;
    if (size < qp_page_offset(engines_, 0)) {
      errno = EFBIG;
      return refuse("RLIMIT_FSIZE");
    }
  }
  port::Fd file = port::memory_file(kMemoryName);
  if (!file.valid()) return refuse("memfd_create");
  struct stat made {};
  if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0 || ::fstat(file.get(), &made) != 0) {
    return refuse("ftruncate");
  }
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return refuse("fcntl(F_ADD_SEALS)");
  }
  inode_ = made.st_ino;
  file_ = std::move(file);
  return true;
}

// Programs close descriptors that they do not know, as daemons do, and the number may be another
// file by now.
bool CounterMemory::still_ours() const {
  struct stat now {};
  return ::fstat(file_.get(), &now) == 0 && now.st_ino == inode_ &&
         ::fcntl(file_.get(), F_GET_SEALS) >= 0;
}

std::byte* CounterMemory::map(size_t offset, size_t size) {
  // The system's pages may be larger than the layout's, up to 64 KiB: then what is mapped begins in
  // the middle of one that is mapped elsewhere, too.
  const size_t before = offset % static_cast<size_t>(::getpagesize());
  void* p = ::mmap(nullptr, before + size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(),
                   static_cast<off_t>(offset - before));
  if (p == MAP_FAILED) return nullptr;
  // Pages that could not be had would bring SIGBUS at the first word written to them.
  if (offset == 0 && ::fallocate(file_.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    ::munmap(p, size);
    return nullptr;
  }
  mappings_.push_back({static_cast<std::byte*>(p), before + size, true});
  return mappings_.back().start + before;
}

std::byte* CounterMemory::own_memory(size_t size) {
  auto* p = static_cast<std::byte*>(::operator new (size, std::align_val_t{kPage}));
  std::memset(p, 0, size);
  mappings_.push_back({p, size, false});
  return p;
}

// Nullptr when there is no room.
QpPage* CounterMemory::add_page(unsigned engine) {
  const size_t number = pages_.size();
  if (number == most_pages_) return nullptr;
  // A page that is taken out of a piece is kept: there is memory for that.
  pages_.reserve(number + 1);
  mappings_.reserve(mappings_.size() + 1);
  std::byte* at = nullptr;
  if (!shown()) {
    at = own_memory(kPage);
  } else {
    if (!still_ours()) return nullptr;
    const size_t offset = qp_page_offset(engines_, number);
    if (piece_left_ == 0) {
      const size_t pages = std::min(kPiece, most_pages_ - number);
      piece_ = map(offset, pages * kPage);
      if (piece_ == nullptr) return nullptr;
      piece_left_ = pages;
    }
    if (::fallocate(file_.get(), 0, static_cast<off_t>(offset), kPage) != 0) return nullptr;
    at = std::exchange(piece_, piece_ + kPage);
    --piece_left_;
  }
  auto* page = reinterpret_cast<QpPage*>(at);
  page->engine = engine;
  page->number = static_cast<uint32_t>(number);
  pages_.push_back({page, 0});
  header().qp_pages.store(static_cast<uint32_t>(pages_.size()), std::memory_order_release);
  return page;
}

stats::QpBlock& CounterMemory::acquire(unsigned engine, Qpn qpn) {
  const std::lock_guard guard{lock_};
  device().queue_pairs_created.add_shared();
  auto with_room = std::find_if(pages_.begin(), pages_.end(), [&](const Page& p) {
    return p.memory->engine == engine && p.taken != kAllTaken;
  });
  if (with_room == pages_.end()) {
    if (add_page(engine) == nullptr) {
      device().queue_pairs_hidden.add_shared();
      return this->engine(engine).gone;
    }
    with_room = pages_.end() - 1;
  }
  const auto free = static_cast<size_t>(std::countr_one(with_room->taken));
  with_room->taken |= 1U << free;
  stats::QpBlock& block = with_room->memory->blocks[free];
  block.qpn.store(qpn.value(), std::memory_order_release);
  return block;
}

void CounterMemory::release(unsigned engine, stats::QpBlock& block) {
  const std::lock_guard guard{lock_};
  device().queue_pairs_destroyed.add_shared();
  if (&block == &this->engine(engine).gone) return;
  stats::retire(block, this->engine(engine));
  const uintptr_t page = reinterpret_cast<uintptr_t>(&block) / kPage * kPage;
  auto* memory = reinterpret_cast<QpPage*>(page);
  pages_[memory->number].taken &= ~(1U << (&block - memory->blocks.data()));
}

void CounterMemory::abandon_in_child() {
  file_.reset();
  for (const Mapping& m : mappings_) {
    if (!m.shared) continue;
    (void)::mmap(m.start, m.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                 -1, 0);
  }
}

}  // namespace weft::observe
