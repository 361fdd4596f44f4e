#include "cm/lingering_close.h"

#include <algorithm>

#include "tests/unit/cm/started_pair.h"
#include "wire/ddp_header.h"

namespace weft::cm {
namespace {

class LingeringCloseTest : public StartedTest {
 protected:
  void give_up(std::optional<wire::TermError> error = {}) {
    started_.parameters = {.crc = false, .rtr = mpa::Rtr::write};
    auto h = engine_->hold();
    LingeringClose::give_up(h.token(), std::move(started_), error);
  }
  // The opcodes of the FPDUs in what came, without markers.
  static std::vector<int> opcodes(const std::vector<std::byte>& bytes) {
    std::vector<int> all;
    for (size_t at = 0; at + 4 <= bytes.size();) {
      const size_t length =
          std::to_integer<size_t>(bytes[at]) << 8 | std::to_integer<size_t>(bytes[at + 1]);
      all.push_back(std::to_integer<int>(bytes[at + 3]) & 0x0f);
      at += (2 + length + 3) / 4 * 4 + 4;
    }
    return all;
  }
};

constexpr int kWrite = static_cast<int>(wire::Opcode::write);
constexpr int kTerminate = static_cast<int>(wire::Opcode::terminate);

TEST_F(LingeringCloseTest, APeerThatIsOwedNothingSeesTheEndAtOnce) {
  give_up();
  EXPECT_TRUE(all_that_comes().empty());
  EXPECT_EQ(engine_->counters().kicks.value(), 0U);
}

// spec/siw 2.5, 2.6.
TEST_F(LingeringCloseTest, APeerThatIsOwedItsFrameGetsItThenKicksThenTheEnd) {
  started_.owes_rtr = true;
  give_up();
  const auto frames = opcodes(all_that_comes());
  ASSERT_GE(frames.size(), 2U) << "the RTR frame and a kick";
  for (const int opcode : frames) EXPECT_EQ(opcode, kWrite);
  EXPECT_EQ(engine_->counters().kicks.value(), frames.size() - 1);
}

TEST_F(LingeringCloseTest, ATerminateComesLast) {
  started_.owes_rtr = true;
  give_up(wire::term::kTaggedToWrap);
  const auto frames = opcodes(all_that_comes());
  ASSERT_GE(frames.size(), 3U);
  EXPECT_EQ(frames.back(), kTerminate);
  EXPECT_EQ(std::count(frames.begin(), frames.end(), kTerminate), 1);
}

// What is left unread would make a reset of the end, which may overtake the Terminate.
TEST_F(LingeringCloseTest, WhatThePeerSentDoesNotHideTheTerminate) {
  std::byte bytes[1000] = {};
  const IoVec piece{bytes, sizeof bytes};
  ASSERT_EQ(peer_.send({&piece, 1}).bytes, sizeof bytes);
  give_up(wire::term::kTaggedToWrap);
  EXPECT_EQ(opcodes(all_that_comes()), std::vector{kTerminate});
}

}  // namespace
}  // namespace weft::cm
