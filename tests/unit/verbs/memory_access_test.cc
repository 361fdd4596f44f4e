#include "verbs/memory_access.h"

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

using work::Access;
using work::MemoryFault;

class MemoryAccessTest : public PairTest {
 protected:
  static constexpr uint32_t kAll = access::kLocalWrite | access::kRemoteWrite |
                                   access::kRemoteRead | access::kRemoteAtomic | access::kMwBind;
  static uint64_t address_of(const Buffer& b) { return reinterpret_cast<uintptr_t>(b.data()); }
  Region* region(ProtectionDomain& of, Buffer& b, uint32_t flags) {
    auto r = adapter().memory().add(of, b.data(), b.size(), address_of(b), flags);
    EXPECT_TRUE(r.ok());
    return *r;
  }
  static MemoryFault fault(const Result<std::byte*, MemoryFault>& r) {
    EXPECT_FALSE(r.ok());
    return r.error();
  }
};

TEST_F(MemoryAccessTest, OnlyOfItsOwnDomain) {
  Buffer memory(64);
  ProtectionDomain other(here);
  Region* own = region(domain, memory, kAll);
  Region* foreign = region(other, memory, kAll);
  auto qp = make();
  to_rts(*qp);
  {
    auto h = qp->engine().hold();
    MemoryAccess& m = qp->memory();
    const auto found = m.local(own->stag, address_of(memory) + 3, 5, Access::local_write);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, memory.data() + 3);
    EXPECT_EQ(fault(m.local(foreign->stag, address_of(memory), 5, Access::local_read)),
              MemoryFault::not_on_stream);
    EXPECT_EQ(
        fault(m.remote(foreign->stag, TaggedOffset{address_of(memory)}, 5, Access::remote_read)),
        MemoryFault::not_on_stream);
    EXPECT_EQ(
        fault(m.local(Stag{own->stag.value() ^ 1}, address_of(memory), 5, Access::local_read)),
        MemoryFault::invalid_stag);
    EXPECT_EQ(
        fault(m.remote(own->stag, TaggedOffset{address_of(memory) + 60}, 5, Access::remote_read)),
        MemoryFault::bounds);
    // A region is its owner's alone to take back.
    EXPECT_EQ(m.invalidate(own->stag).error(), MemoryFault::cannot_invalidate);
  }
  qp.reset();
  EXPECT_TRUE(adapter().memory().remove(own).ok());
  EXPECT_TRUE(adapter().memory().remove(foreign).ok());
}

// InfiniBand 10.6.3: the rights of both, the queue pair's first.
TEST_F(MemoryAccessTest, TheQueuePairsRightsAndTheRegions) {
  Buffer memory(64);
  Region* readable = region(domain, memory, access::kRemoteRead);
  Region* writable = region(domain, memory, kAll);
  auto qp = make();
  const TaggedOffset at{address_of(memory)};
  {
    auto h = qp->engine().hold();
    EXPECT_EQ(fault(qp->memory().remote(readable->stag, at, 8, Access::remote_read)),
              MemoryFault::access)
        << "in RESET it has no rights";
  }
  to_rts(*qp);
  {
    auto h = qp->engine().hold();
    MemoryAccess& m = qp->memory();
    EXPECT_TRUE(m.remote(readable->stag, at, 8, Access::remote_read).ok());
    EXPECT_EQ(fault(m.remote(readable->stag, at, 8, Access::remote_write)), MemoryFault::access);
    EXPECT_EQ(fault(m.remote(readable->stag, at, 8, Access::remote_atomic)), MemoryFault::access);
    EXPECT_TRUE(m.remote(writable->stag, at, 8, Access::remote_write).ok());
    EXPECT_EQ(fault(m.local(readable->stag, at.value(), 8, Access::local_write)),
              MemoryFault::access);
    EXPECT_EQ(fault(m.receive_buffer(readable->stag, at.value(), 8)), MemoryFault::access);
  }
  qp.reset();
  EXPECT_TRUE(adapter().memory().remove(readable).ok());
  EXPECT_TRUE(adapter().memory().remove(writable).ok());
}

// InfiniBand 10.2.9.4: the receives of a shared queue are in its domain.
TEST_F(MemoryAccessTest, ReceivesOfASharedQueueAreInItsDomain) {
  Buffer memory(64);
  ProtectionDomain other(here);
  Region* of_shared = region(other, memory, kAll);
  Region* of_pair = region(domain, memory, kAll);
  {
    SharedReceiveQueue shared{other, 4, 1, nullptr};
    auto qp = make(QpType::rc, &shared);
    {
      auto h = qp->engine().hold();
      EXPECT_TRUE(qp->memory().receive_buffer(of_shared->stag, address_of(memory), 8).ok());
      EXPECT_EQ(fault(qp->memory().receive_buffer(of_pair->stag, address_of(memory), 8)),
                MemoryFault::not_on_stream);
    }
    qp.reset();
  }
  EXPECT_TRUE(adapter().memory().remove(of_shared).ok());
  EXPECT_TRUE(adapter().memory().remove(of_pair).ok());
}

}  // namespace
}  // namespace weft::verbs
