// Which requests may wait for company, so that one system call sends many.

#include "tests/unit/rdmap/send_path_fixture.h"

namespace weft::rdmap {
namespace {

constexpr bool kBurst = true;
constexpr bool kLone = false;

TEST_F(SendPathTest, AnUnsignaledRequestGathersInABurstAlone) {
  post({.operation = work::Operation::write}, small);
  EXPECT_FALSE(path->may_gather(kLone)) << "somebody may wait for it at the peer";
  EXPECT_TRUE(path->may_gather(kBurst));
  post({.operation = work::Operation::write, .signaled = true}, small);
  EXPECT_FALSE(path->may_gather(kBurst)) << "the program waits for this one";
}

TEST_F(SendPathTest, WhereFourAreAskedForTheProgramWillPoll) {
  for (int i = 0; i < 4; ++i) post({.operation = work::Operation::write, .signaled = true}, small);
  say();
  post({.operation = work::Operation::write, .signaled = true}, small);
  EXPECT_TRUE(path->may_gather(kLone));
  cover();
  EXPECT_FALSE(path->may_gather(kLone));
}

TEST_F(SendPathTest, AsMuchGathersAsOneCallSendsCheaply) {
  Buffer page = pattern_bytes(4096, 3);
  for (int i = 0; i < 16; ++i) {
    post({.operation = work::Operation::write}, page);
    EXPECT_TRUE(path->may_gather(kBurst)) << i;
  }
  post({.operation = work::Operation::write}, page);
  EXPECT_FALSE(path->may_gather(kBurst)) << "64 KiB are waiting";
  EXPECT_EQ(say().size(), 17U);
  cover();
  EXPECT_FALSE(path->may_gather(kBurst)) << "nothing waits";
  for (int i = 1; i <= 256; ++i) {
    post({.operation = work::Operation::write}, small);
    EXPECT_EQ(path->may_gather(kBurst), i < 256) << i;
  }
}

// A batch costs no system call there.
TEST_F(SendPathTest, LessGathersInMemory) {
  config.by_memory = true;
  for (int i = 1; i <= 32; ++i) {
    post({.operation = work::Operation::write}, small);
    EXPECT_EQ(path->may_gather(kBurst), i < 32) << i;
  }
}

TEST_F(SendPathTest, TowardsAPlainPeerNothingGathers) {
  configure(false);
  post({.operation = work::Operation::write}, small);
  EXPECT_FALSE(path->may_gather(kBurst)) << "it completes when the kernel has it";
}

}  // namespace
}  // namespace weft::rdmap
