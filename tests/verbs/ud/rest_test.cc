// A queue pair that has used up its receives, while faults hold back what comes next.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/verbs/own_process.h"
#include "tests/verbs/ud/member.h"

namespace weft::test {
namespace {

// While the socket rests for a program to post receives, what is due is not taken. Nothing may spin
// for that: the thread that posts them needs the engine, and so does everybody else.
void the_engine_is_there_for_what_comes_next() {
  Member from;
  const ibv_gid gid = own_gid(from.a);
  const AhPtr ah = from.handle_to(gid);
  for (int round = 0; round < 20; ++round) {
    Member to;  // that has not rested yet
    to.receive(0);
    from.send(ah.get(), 1, to.qp->qp_num);
    from.send(ah.get(), 2, to.qp->qp_num);
    check(to.next().has_value(), "one of the two, and with it the last receive");
    // Long enough for the other one to fall due in most rounds. Whether there is a receive by then
    // is another matter: it may be lost.
    std::this_thread::sleep_for(std::chrono::milliseconds{3});
    to.receive(1);
    to.receive(2);
    from.send(ah.get(), 3, to.qp->qp_num);
    bool last = false;
    while (!last) {
      const auto came = to.next();
      check(came.has_value(), "what is sent then");
      last = to.room(came->wr_id)[Member::kGrh] == Member::byte_at(3, 0);
    }
  }
}

TEST(DatagramRest, what_a_fault_holds_back_does_not_keep_the_engine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      with({{"WEFT_FAULT", "jitter:4ms,way:in,seed:3"}}, the_engine_is_there_for_what_comes_next),
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
