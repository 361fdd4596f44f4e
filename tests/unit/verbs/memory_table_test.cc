#include "verbs/memory_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <set>
#include <thread>

#include "tests/unit/verbs/fixture.h"

namespace weft::verbs {
namespace {

using test::Buffer;
using work::MemoryFault;

class MemoryTableTest : public VerbsTest {
 protected:
  MemoryTableTest()
      : table([this] {
          ++quiesced;
          if (while_quiescing) std::exchange(while_quiescing, {})();
          return !holds;
        }) {}

  Region* add(Buffer& b, uint32_t flags = access::kLocalWrite, uint64_t iova = 0) {
    auto r = table.add(pd, b.data(), b.size(), iova, flags);
    EXPECT_TRUE(r.ok());
    return r.ok() ? *r : nullptr;
  }
  Errc refused(void* address, uint64_t length, uint32_t flags) {
    auto r = table.add(pd, address, length, 0, flags);
    EXPECT_FALSE(r.ok());
    if (r.ok()) (void)table.remove(*r);
    return r.ok() ? Errc::system : r.error();
  }

  int quiesced = 0;
  bool holds = false;  // the calling thread an engine
  std::function<void()> while_quiescing;
  ProtectionDomain other{context};
  MemoryTable table;
  Buffer memory = Buffer(8192);
};

std::optional<MemoryFault> fault(const Region& r, uint64_t address, uint64_t size, uint32_t need) {
  const auto p = r.resolve(address, size, need);
  if (p.ok()) return {};
  return p.error();
}

// spec/rdmap 2.6: rights and bounds
TEST_F(MemoryTableTest, RightsBoundsAndWrapping) {
  Region* r = add(memory, access::kLocalWrite | access::kRemoteRead, 0x10000);
  EXPECT_EQ(*r->resolve(0x10000, 8192, access::kRemoteRead), memory.data());
  EXPECT_EQ(*r->resolve(0x10000 + 8191, 1, 0), memory.data() + 8191);
  EXPECT_EQ(*r->resolve(0x10000 + 8192, 0, 0), memory.data() + 8192) << "no bytes at the end";
  EXPECT_EQ(fault(*r, 0x10000, 1, access::kRemoteWrite), MemoryFault::access);
  EXPECT_EQ(fault(*r, 0x10000, 1, access::kRemoteRead | access::kRemoteAtomic),
            MemoryFault::access);
  EXPECT_EQ(fault(*r, 0xffff, 1, 0), MemoryFault::bounds);
  EXPECT_EQ(fault(*r, 0x10000, 8193, 0), MemoryFault::bounds);
  EXPECT_EQ(fault(*r, 0x10000 + 8192, 1, 0), MemoryFault::bounds);
  EXPECT_EQ(fault(*r, 0, 8192, 0), MemoryFault::bounds);
  EXPECT_EQ(fault(*r, UINT64_MAX, 2, 0), MemoryFault::wraps);
  EXPECT_EQ(fault(*r, 0x10000, UINT64_MAX, 0), MemoryFault::wraps);
  ASSERT_TRUE(table.remove(r).ok());
}

TEST_F(MemoryTableTest, ARegionAtTheEndOfTheAddressSpace) {
  Region r{.base = memory.data(), .iova = UINT64_MAX - 99, .length = 100};
  EXPECT_EQ(*r.resolve(UINT64_MAX - 99, 99, 0), memory.data());
  EXPECT_EQ(fault(r, UINT64_MAX - 99, 101, 0), MemoryFault::wraps);
}

TEST_F(MemoryTableTest, FoundByItsWholeStag) {
  Region* r = add(memory);
  EXPECT_EQ(table.find(r->stag), r);
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    EXPECT_EQ(table.find(Stag{r->stag.value() ^ bit}), nullptr)
        << "key, index and the half of the sinks all count";
  }
  EXPECT_EQ(table.find(Stag{0}), nullptr);
  const Stag stag = r->stag;
  ASSERT_TRUE(table.remove(r).ok());
  EXPECT_EQ(table.find(stag), nullptr);
  EXPECT_EQ(quiesced, 1) << "every engine was held once before the memory was let go";
}

// Its `free` may be called by weft, which holds an engine then.
TEST_F(MemoryTableTest, WhatAHolderTakesBackIsFreedLater) {
  Region* r = add(memory);
  Region* another = add(memory);
  const Stag stag = r->stag;
  const size_t before = table.size();
  holds = true;
  ASSERT_TRUE(table.remove(r).ok());
  EXPECT_EQ(table.find(stag), nullptr);
  EXPECT_EQ(table.size(), before - 1);
  EXPECT_EQ(table.retired(), 1U) << "this thread may be in the middle of using it";
  EXPECT_EQ(r->length, memory.size());
  holds = false;
  ASSERT_TRUE(table.remove(another).ok());
  EXPECT_EQ(table.retired(), 0U);
  EXPECT_FALSE(pd.in_use());
}

TEST_F(MemoryTableTest, AHolderMayReplaceAndReleaseToo) {
  Region* r = add(memory);
  const auto window = table.reserve_window();
  ASSERT_TRUE(window.ok());
  holds = true;
  const auto fresh = table.replace(r, pd, memory.data(), 100, 0, 0);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(table.find(r->stag), *fresh);
  table.release_window(window->stag);
  EXPECT_EQ(table.retired(), 1U);
  holds = false;
  ASSERT_TRUE(table.remove(*fresh).ok());
  EXPECT_EQ(table.retired(), 0U);
}

TEST_F(MemoryTableTest, AnEnginesHolderDeregistersWithoutWaitingForItself) {
  MemoryTable& own = adapter().memory();
  const auto r = own.add(pd, memory.data(), memory.size(), 0, 0);
  ASSERT_TRUE(r.ok());
  const Stag stag = (*r)->stag;
  {
    engine::Engine& engine = adapter().engine(0);
    const auto h = engine.hold();
    ASSERT_TRUE(engine.held_here());
    std::thread{[&] { EXPECT_FALSE(engine.held_here()); }}.join();
    EXPECT_TRUE(own.remove(*r).ok());
  }
  EXPECT_FALSE(adapter().engine(0).held_here());
  EXPECT_EQ(own.find(stag), nullptr);
  EXPECT_EQ(own.retired(), 1U);
  const auto another = own.add(pd, memory.data(), memory.size(), 0, 0);
  ASSERT_TRUE(another.ok());
  EXPECT_TRUE(own.remove(*another).ok());
  EXPECT_EQ(own.retired(), 0U);
}

TEST_F(MemoryTableTest, StagsAreNotReusedSoon) {
  std::set<uint32_t> indices;
  for (int i = 0; i < 5000; ++i) {
    Region* r = add(memory);
    EXPECT_NE(r->stag.value() >> 8, 0U);
    EXPECT_EQ(r->stag.value() & 0x80000000U, 0U) << "the upper half names the sinks of reads";
    indices.insert(r->stag.value() >> 8);
    ASSERT_TRUE(table.remove(r).ok());
  }
  EXPECT_EQ(indices.size(), 5000U);
  EXPECT_EQ(table.size(), 0U);
}

// RFC 5040 section 8.1.1: an STag is hard to predict. Where the first index lies is chance, and so
// is each key.
TEST_F(MemoryTableTest, StagsAreHardToPredict) {
  std::set<uint32_t> firsts;
  std::set<uint32_t> keys;
  std::set<uint32_t> steps;
  for (int i = 0; i < 16; ++i) {
    MemoryTable fresh([] { return true; });
    uint32_t last = 0;
    for (int k = 0; k < 200; ++k) {
      Region* r = *fresh.add(pd, memory.data(), memory.size(), 0, access::kLocalWrite);
      const uint32_t stag = r->stag.value();
      if (k == 0) firsts.insert(stag >> 8);
      keys.insert(stag & 0xff);
      steps.insert((stag - last) & 0xff);
      last = stag;
      ASSERT_TRUE(fresh.remove(r).ok());
    }
  }
  EXPECT_GE(firsts.size(), 15U);
  EXPECT_GE(keys.size(), 250U);
  EXPECT_GE(steps.size(), 250U);
}

// Option uc_port: who builds a circuit knows them beforehand.
TEST_F(MemoryTableTest, CountedStagsAreKnownBeforehand) {
  MemoryTable counted([] { return true; }, true);
  for (uint32_t i = 1; i <= 3; ++i) {
    Region* r = *counted.add(pd, memory.data(), memory.size(), 0, access::kLocalWrite);
    EXPECT_EQ(r->stag, Stag{i << 8});
    ASSERT_TRUE(counted.remove(r).ok());
  }
}

TEST_F(MemoryTableTest, DomainsKnowWhatBelongsToThem) {
  EXPECT_FALSE(pd.in_use());
  Region* r = add(memory);
  EXPECT_TRUE(pd.in_use());
  EXPECT_EQ(table.size(), 1U);
  ASSERT_TRUE(table.remove(r).ok());
  EXPECT_FALSE(pd.in_use());
}

// InfiniBand 10.6.6
TEST_F(MemoryTableTest, FlagsThatDoNotGoTogether) {
  EXPECT_EQ(refused(memory.data(), 10, access::kRemoteWrite), Errc::invalid);
  EXPECT_EQ(refused(memory.data(), 10, access::kRemoteAtomic), Errc::invalid);
  EXPECT_EQ(refused(memory.data(), 10, access::kOnDemand), Errc::invalid);
  EXPECT_EQ(refused(memory.data(), 10, 1U << 15), Errc::invalid);
  // Hints may be ignored.
  auto r = table.add(pd, memory.data(), 10, 0, access::kRemoteRead | access::kOptionalRange);
  ASSERT_TRUE(r.ok());
  ASSERT_TRUE(table.remove(*r).ok());
}

TEST_F(MemoryTableTest, MemoryThatIsNotThere) {
  void* page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(refused(page, 4096, access::kLocalWrite), Errc::fault);
  auto r = table.add(pd, page, 4096, 0, access::kRemoteRead);
  EXPECT_TRUE(r.ok()) << "to read it is enough";
  ASSERT_TRUE(table.remove(*r).ok());
  ::munmap(page, 4096);
  EXPECT_EQ(refused(page, 4096, 0), Errc::fault);
  EXPECT_EQ(refused(nullptr, 1, 0), Errc::fault);
  EXPECT_EQ(refused(memory.data(), UINT64_MAX, 0), Errc::fault);
}

TEST_F(MemoryTableTest, AReplacedRegionKeepsItsStag) {
  Region* r = add(memory, access::kLocalWrite, 0x1000);
  const Stag stag = r->stag;
  Buffer elsewhere(100);
  auto fresh = table.replace(r, other, elsewhere.data(), 100, 0x2000, access::kRemoteRead);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ((*fresh)->stag, stag);
  EXPECT_EQ(table.find(stag), *fresh);
  EXPECT_EQ(*(*fresh)->resolve(0x2000, 100, access::kRemoteRead), elsewhere.data());
  EXPECT_FALSE(pd.in_use());
  EXPECT_TRUE(other.in_use());
  EXPECT_EQ(table.size(), 1U);
  const auto bad = table.replace(*fresh, pd, nullptr, 5, 0, 0);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(table.find(stag), *fresh) << "the old one stays";
  ASSERT_TRUE(table.remove(*fresh).ok());
  EXPECT_FALSE(other.in_use());
}

// InfiniBand 10.6.2: only fast-register regions can be invalidated, and user space has none.
TEST_F(MemoryTableTest, ARegionCannotBeInvalidated) {
  Region* r = add(memory);
  EXPECT_EQ(table.invalidate(r->stag).error(), MemoryFault::cannot_invalidate);
  EXPECT_EQ(table.find(r->stag), r);
  EXPECT_EQ(table.invalidate(Stag{r->stag.value() ^ 1}).error(), MemoryFault::invalid_stag);
  EXPECT_TRUE(table.remove(r).ok());
}

// A program that registers for each transfer does not walk through all of the table.
TEST_F(MemoryTableTest, IndicesAreUsedAgainAfterALongRest) {
  std::set<uint32_t> indices;
  uint32_t first = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto w = table.reserve_window();
    ASSERT_TRUE(w.ok());
    const uint32_t index = w->stag.value() >> 8;
    if (i == 0) first = index;
    if (i < 65'536) {
      ASSERT_TRUE(indices.insert(index).second) << i;
    } else if (i == 65'536) {
      EXPECT_EQ(index, first) << "the one that rested longest";
    }
    indices.insert(index);
    table.release_window(w->stag);
  }
  EXPECT_EQ(indices.size(), 65'536U);
}

// --- windows

class Windows : public MemoryTableTest {
 protected:
  Windows() : region(add(memory, access::kLocalWrite | access::kMwBind)) {}
  ~Windows() override { EXPECT_TRUE(table.remove(region).ok()); }
  Outcome<bool> try_bind(WindowId id, Stag old, Stag fresh, uint64_t offset, uint64_t length) {
    const Region bounds{.base = memory.data() + offset,
                        .iova = 0x5000,
                        .length = length,
                        .access = access::kRemoteRead,
                        .pd = &pd,
                        .parent = region};
    return table.bind_window(id, old, fresh, bounds);
  }
  void bind(const Window& w, Stag old, Stag fresh, uint64_t offset, uint64_t length) {
    EXPECT_TRUE(try_bind(w.id, old, fresh, offset, length).ok());
  }
  Region* region;
};

TEST_F(Windows, BoundReboundAndUnbound) {
  const auto first = table.reserve_window();
  ASSERT_TRUE(first.ok());
  const Stag first_stag = first->stag;
  EXPECT_EQ(table.find(first_stag), nullptr) << "it opens on nothing yet";
  bind(*first, first_stag, first_stag, 100, 50);
  ASSERT_NE(table.find(first_stag), nullptr);
  EXPECT_EQ(*table.find(first_stag)->resolve(0x5000, 50, access::kRemoteRead), memory.data() + 100);

  const Stag second = MemoryTable::next_key(first_stag);
  EXPECT_EQ(second.value() >> 8, first_stag.value() >> 8);
  EXPECT_NE(second, first_stag);
  bind(*first, first_stag, second, 200, 50);
  EXPECT_EQ(table.find(first_stag), nullptr);
  EXPECT_EQ(table.find(second)->base, memory.data() + 200);

  const Stag third = MemoryTable::next_key(second);
  bind(*first, second, third, 0, 0);
  EXPECT_EQ(table.find(second), nullptr);
  EXPECT_EQ(table.find(third), nullptr);
  table.release_window(third);
}

// The program counts the key of a bind that fails as well, and names that one in the next.
TEST_F(Windows, BindTellsWhetherItWasBoundByAnyKey) {
  const auto w = table.reserve_window();
  ASSERT_TRUE(w.ok());
  const auto first = try_bind(w->id, w->stag, w->stag, 100, 50);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(*first);
  const Stag failed = MemoryTable::next_key(w->stag);
  const Stag fresh = MemoryTable::next_key(failed);
  const auto again = try_bind(w->id, failed, fresh, 200, 50);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again);
  EXPECT_EQ(table.find(w->stag), nullptr);
  const auto closed = try_bind(w->id, fresh, fresh, 0, 0);
  ASSERT_TRUE(closed.ok());
  EXPECT_TRUE(*closed);
  const auto nothing = try_bind(w->id, fresh, fresh, 0, 0);
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(*nothing);
  table.release_window(w->stag);
}

TEST_F(Windows, KeysWrapWithinTheirByte) {
  EXPECT_EQ(MemoryTable::next_key(Stag{0x1234ff}), Stag{0x123400});
  EXPECT_EQ(MemoryTable::next_key(Stag{0x123400}), Stag{0x123401});
}

TEST_F(Windows, ARegionWithWindowsStays) {
  const auto w = table.reserve_window();
  ASSERT_TRUE(w.ok());
  bind(*w, w->stag, w->stag, 0, 10);
  const auto busy = table.remove(region);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error(), Errc::busy);
  EXPECT_EQ(table.find(region->stag), region);
  EXPECT_FALSE(table.replace(region, pd, memory.data(), 10, 0, 0).ok());
  table.release_window(w->stag);
  EXPECT_EQ(table.find(w->stag), nullptr);
}

// Threads that take regions back wait until no holder uses them any more; a bind that looked the
// region up just before must not open on it.
TEST_F(MemoryTableTest, NoWindowOpensOnARegionThatIsGoing) {
  std::optional<Outcome<bool>> bound;
  Region* region = nullptr;
  const auto w = table.reserve_window();
  ASSERT_TRUE(w.ok());
  const auto bind = [&] {
    const Region bounds{
        .base = memory.data(), .length = 10, .pd = &pd, .window = true, .parent = region};
    bound = table.bind_window(w->id, w->stag, w->stag, bounds);
  };
  region = add(memory, access::kLocalWrite | access::kMwBind);
  while_quiescing = bind;
  ASSERT_TRUE(table.remove(region).ok());
  ASSERT_TRUE(bound.has_value());
  EXPECT_FALSE(bound->ok());
  EXPECT_EQ(table.find(w->stag), nullptr);

  region = add(memory, access::kLocalWrite | access::kMwBind);
  while_quiescing = bind;
  const auto fresh = table.replace(region, pd, memory.data(), 100, 0, access::kLocalWrite);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(bound->ok());
  ASSERT_TRUE(table.remove(*fresh).ok());
  table.release_window(w->stag);
}

// Each bind leaves the window before it behind, which a holder cannot free.
TEST_F(Windows, OldOnesAreFreedOnTheWay) {
  const auto first = table.reserve_window();
  ASSERT_TRUE(first.ok());
  Stag stag = first->stag;
  size_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Stag fresh = MemoryTable::next_key(stag);
    bind(*first, stag, fresh, 0, 10);
    stag = fresh;
    table.tidy();
    most = std::max(most, table.retired());
  }
  EXPECT_GT(quiesced, 0);
  EXPECT_LT(quiesced, 100) << "not for each of them";
  EXPECT_LT(most, 1000U);
  table.release_window(stag);
}

TEST_F(Windows, AnInvalidatedWindowLetsItsRegionGo) {
  const auto w = table.reserve_window();
  ASSERT_TRUE(w.ok());
  bind(*w, w->stag, w->stag, 0, 10);
  EXPECT_TRUE(table.invalidate(w->stag).ok());
  EXPECT_EQ(table.find(w->stag), nullptr);
  EXPECT_EQ(region->windows.load(), 0U);
  table.release_window(w->stag);
}

// A bind waits in a send queue while the program deallocates its window, and the index goes to
// another one, or to a region.
TEST_F(Windows, ABindThatComesAfterItsWindowFails) {
  const auto w = table.reserve_window();
  ASSERT_TRUE(w.ok());
  const Stag fresh = MemoryTable::next_key(w->stag);
  table.release_window(w->stag);
  EXPECT_FALSE(try_bind(w->id, w->stag, fresh, 0, 10).ok());
  EXPECT_EQ(table.find(fresh), nullptr);
  EXPECT_EQ(region->windows.load(), 0U);

  const auto at_its_index = [&](Stag s) { return s.value() >> 8 == w->stag.value() >> 8; };
  std::optional<Window> next;
  for (int i = 0; i < 70'000 && !next; ++i) {
    const auto another = table.reserve_window();
    ASSERT_TRUE(another.ok());
    if (at_its_index(another->stag)) {
      next = *another;
    } else {
      table.release_window(another->stag);
    }
  }
  ASSERT_TRUE(next.has_value());
  bind(*next, next->stag, next->stag, 100, 20);
  EXPECT_FALSE(try_bind(w->id, w->stag, fresh, 0, 10).ok());
  EXPECT_FALSE(try_bind(w->id, w->stag, fresh, 0, 0).ok()) << "nor is it another's to unbind";
  ASSERT_NE(table.find(next->stag), nullptr);
  EXPECT_EQ(table.find(next->stag)->base, memory.data() + 100);
  table.release_window(next->stag);

  Region* another = nullptr;
  for (int i = 0; i < 70'000 && another == nullptr; ++i) {
    Region* r = add(memory, access::kLocalWrite);
    if (at_its_index(r->stag)) {
      another = r;
    } else {
      ASSERT_TRUE(table.remove(r).ok());
    }
  }
  ASSERT_NE(another, nullptr);
  EXPECT_FALSE(try_bind(w->id, w->stag, fresh, 0, 10).ok());
  EXPECT_EQ(table.find(another->stag), another);
  ASSERT_TRUE(table.remove(another).ok());
}

// One thread registers and deregisters, others look up, as engine holders do.
TEST(MemoryTableThreads, LookupsNeverSeeHalfARegion) {
  std::atomic<int> turns[2] = {0, 0};
  // Holding an engine once: wait until each reader has begun another turn.
  MemoryTable table([&] {
    for (auto& t : turns) {
      const int now = t.load();
      while (t.load() != -1 && t.load() < now + 2) std::this_thread::yield();
    }
    return true;
  });
  Context context(adapter(), device::Device{});
  ProtectionDomain pd{context};
  Buffer memory(4096);
  std::atomic<uint32_t> current{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (auto& t : turns) {
    readers.emplace_back([&table, &current, &stop, &t] {
      while (!stop.load()) {
        const Stag stag{current.load()};
        if (const Region* r = table.find(stag)) {
          EXPECT_EQ(r->stag, stag);
          EXPECT_EQ(r->length, 4096U);
        }
        t.fetch_add(1);
      }
      t.store(-1);
    });
  }
  for (int i = 0; i < 300; ++i) {
    auto r = table.add(pd, memory.data(), memory.size(), 0, access::kLocalWrite);
    ASSERT_TRUE(r.ok());
    current.store((*r)->stag.value());
    ASSERT_TRUE(table.remove(*r).ok());
  }
  stop.store(true);
  for (std::thread& t : readers) t.join();
}

}  // namespace
}  // namespace weft::verbs
