#include "rdmap/opcode_rules.h"

#include <gtest/gtest.h>

#include <optional>

namespace weft::rdmap {
namespace {

using wire::Opcode;
using wire::Refusal;
namespace term = wire::term;

struct OpcodeRow {
  Opcode opcode;
  std::optional<uint32_t> queue;  // none: tagged
  bool extension;                 // only where that was agreed on
};

// RFC 5040 section 4.1, RFC 7306 section 4, spec/rdmap 1.4.
const OpcodeRow kOpcodeRows[] = {
    {Opcode::write, {}, false},         {Opcode::read_request, 1, false},
    {Opcode::read_response, {}, false}, {Opcode::send, 0, false},
    {Opcode::send_inv, 0, false},       {Opcode::send_se, 0, false},
    {Opcode::send_se_inv, 0, false},    {Opcode::terminate, 2, false},
    {Opcode::immediate, 0, true},       {Opcode::immediate_se, 0, true},
    {Opcode::atomic_request, 1, true},  {Opcode::atomic_response, 3, true},
    {Opcode::send_imm, 0, true},        {Opcode::send_se_imm, 0, true},
    {Opcode::delivered, {}, true},
};

ddp::Segment segment_of(Opcode opcode, std::optional<uint32_t> queue) {
  ddp::Segment s;
  s.control.opcode = opcode;
  s.control.tagged = !queue;
  s.qn = QueueNumber{queue.value_or(0)};
  return s;
}

TEST(OpcodeRules, EachMessageHasItsKindOfSegmentAndItsQueue) {
  for (const OpcodeRow& row : kOpcodeRows) {
    SCOPED_TRACE(wire::to_string(row.opcode));
    EXPECT_TRUE(check_opcode(segment_of(row.opcode, row.queue), true).ok());
    if (row.queue) {
      EXPECT_EQ(queue_of(row.opcode), QueueNumber{*row.queue});
    }
    const std::optional<uint32_t> other_kind = row.queue ? std::nullopt : std::optional{0U};
    const auto wrong = check_opcode(segment_of(row.opcode, other_kind), true);
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error(), term::kOperationUnexpectedOpcode);
    EXPECT_EQ(wrong.error().why, Refusal::opcode_in_wrong_segment);
    for (uint32_t queue = 0; row.queue && queue < 6; ++queue) {
      if (queue == *row.queue) continue;
      const auto elsewhere = check_opcode(segment_of(row.opcode, queue), true);
      ASSERT_FALSE(elsewhere.ok()) << queue;
      EXPECT_EQ(elsewhere.error(), term::kUntaggedInvalidQn);
      EXPECT_EQ(elsewhere.error().why, Refusal::queue_number);
    }
  }
}

TEST(OpcodeRules, WithoutTheExtensionThereAreThoseOfRfc5040) {
  for (const OpcodeRow& row : kOpcodeRows) {
    SCOPED_TRACE(wire::to_string(row.opcode));
    const auto v = check_opcode(segment_of(row.opcode, row.queue), false);
    EXPECT_EQ(v.ok(), !row.extension);
    if (v.ok()) continue;
    EXPECT_EQ(v.error(), term::kOperationUnexpectedOpcode);
    EXPECT_EQ(v.error().why, Refusal::opcode_not_negotiated);
  }
}

TEST(OpcodeRules, Opcode15IsNobodys) {
  for (const bool extension : {false, true}) {
    for (const auto queue : {std::optional<uint32_t>{}, std::optional{0U}}) {
      const auto v = check_opcode(segment_of(static_cast<Opcode>(15), queue), extension);
      ASSERT_FALSE(v.ok());
      EXPECT_EQ(v.error(), term::kOperationUnexpectedOpcode);
      EXPECT_EQ(v.error().why, Refusal::unknown_opcode);
    }
  }
}

}  // namespace
}  // namespace weft::rdmap
