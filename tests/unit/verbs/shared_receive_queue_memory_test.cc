// Want of memory in the line of those who wait for a shared receive queue.

#include <cstdlib>
#include <new>

#include "tests/unit/verbs/pair_fixture.h"

namespace weft::verbs {
namespace {

// Of the calling thread: how many pieces of memory it gets until one is missing; -1: never.
thread_local long pieces_left = -1;

bool is_missing() {
  if (pieces_left < 0) return false;
  return pieces_left-- == 0;
}

using SharedReceiveQueueMemoryTest = PairTest;

TEST_F(SharedReceiveQueueMemoryTest, WhoFindsNoMemoryToWaitDoesSoTheNextTime) {
  const auto qp = make();
  auto h = qp->engine().hold();
  bool found = false;
  long pieces = 0;
  for (; !found; ++pieces) {
    int owner = 0;
    SharedReceiveQueue shared{domain, 4, 1, &owner};
    work::Receive r;
    pieces_left = pieces;
    try {
      EXPECT_FALSE(shared.take(r, *qp));
      found = true;
    } catch (const std::bad_alloc&) {
    }
    pieces_left = -1;
    EXPECT_FALSE(shared.take(r, *qp));
    // Who arms while somebody waits is told at once.
    ASSERT_TRUE(shared.set_limit(1).ok());
    EXPECT_EQ(here.events().try_pop(), (AsyncEvent{EventType::srq_limit_reached, &owner}))
        << pieces;
    shared.forget(*qp);
    ASSERT_TRUE(shared.set_limit(1).ok());
    EXPECT_TRUE(here.events().empty()) << "it was there once";
  }
  EXPECT_GT(pieces, 2);
}

}  // namespace
}  // namespace weft::verbs

// All of this program's.
void* operator new(size_t size) {
  if (weft::verbs::is_missing()) throw std::bad_alloc{};
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc{};
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
