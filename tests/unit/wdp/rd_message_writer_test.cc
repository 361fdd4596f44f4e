#include "wdp/rd_message_writer.h"

#include <cstring>

#include "tests/unit/wdp/rd_writer_fixture.h"

namespace weft::wdp {
namespace {

using wire::Opcode;
using wire::WdpData;

struct RdMessageWriterTest : RdWriterTest {
  static WdpData segment(uint8_t didx, uint32_t bytes, Opcode opcode = Opcode::send) {
    return {.didx = didx,
            .sidx = 3,
            .mlen = bytes,
            .last = true,
            .wants_response = opcode == Opcode::send,
            .opcode = opcode,
            .stride = static_cast<uint16_t>(bytes)};
  }
  std::vector<uint32_t> numbers() {
    std::vector<uint32_t> all;
    for (const Datagram& d : sent()) {
      for (const Message& m : d) all.push_back(m.header.msn.value());
    }
    return all;
  }
};

TEST_F(RdMessageWriterTest, AMessageSaysWhatItWasToldToSay) {
  std::byte* const at = writer.write({.sidx = 3,
                                      .didx = 5,
                                      .q_key = QKey{0x1234},
                                      .solicited = true,
                                      .immediate = 0xcafe,
                                      .number = 9,
                                      .length = 4},
                                     1, 77);
  std::memcpy(at, "abcd", 4);
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  const WdpData& d = all[0].at(0).header;
  EXPECT_EQ(d.sidx, 3);
  EXPECT_EQ(d.didx, 5);
  EXPECT_EQ(d.psn, Csn{100});
  EXPECT_EQ(d.msn, Msn{1});
  EXPECT_EQ(d.mlen, 4U);
  EXPECT_TRUE(d.last);
  EXPECT_EQ(d.opcode, Opcode::send_se);
  EXPECT_EQ(d.imm_or_read, 0xcafeU);
  EXPECT_EQ(d.q_key(), QKey{0x1234});
  EXPECT_EQ(static_cast<uint32_t>(d.to.value()), 9U);
  EXPECT_EQ(std::memcmp(all[0][0].payload.data(), "abcd", 4), 0);
}

TEST_F(RdMessageWriterTest, EachFlowCountsForItself) {
  for (const uint8_t didx : {5, 5, 6, 5})
    writer.write({.sidx = 3, .didx = didx, .length = 1}, 1, 0);
  EXPECT_EQ(numbers(), (std::vector<uint32_t>{1, 2, 1, 3}));
}

TEST_F(RdMessageWriterTest, WhatIsTakenBackLeavesItsNumberToTheNext) {
  const RdMessage m{.sidx = 3, .didx = 5, .length = 1};
  writer.write(m, 1, 0);
  writer.write(m, 1, 1);
  writer.take_back(m);
  writer.write(m, 1, 2);
  const auto all = sent();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].at(0).header.msn, Msn{2});
  EXPECT_EQ(all[1].at(0).header.psn, Csn{101});
}

TEST_F(RdMessageWriterTest, SegmentsOfAMessageRepeatItsNumber) {
  WdpData d = segment(5, 100);
  d.mlen = 200;
  d.last = false;
  writer.write(d, true, 0);
  WdpData second = segment(5, 100);
  second.mlen = 200;
  second.mo = MessageOffset{100};
  second.msn = d.msn;
  writer.write(second, false, 0);
  writer.take_back(second, false);
  writer.write(second, false, 0);
  WdpData next = segment(5, 100);
  writer.write(next, true, 0);
  EXPECT_EQ(numbers(), (std::vector<uint32_t>{1, 1, 2}));
}

// The lengths of what each datagram has: which messages share one.
TEST_F(RdMessageWriterTest, MessagesShareADatagramWithThoseBeforeThem) {
  const auto write = [&](uint32_t length, ClientId client, uint64_t request, size_t most = 500) {
    const RdMessage m{.sidx = 3, .didx = 5, .length = length};
    std::memset(writer.write_shared(m, client, request, most), 'x', length);
  };
  write(10, 1, 7);
  write(20, 1, 8);
  write(21, 1, 10);  // 9 went another way
  write(30, 2, 11);  // another client's
  write(31, 2, 12);
  write(32, 2, 13, 0);  // the peer takes no bundles
  write(33, 2, 14);
  write(400, 2, 15);  // no room
  std::vector<std::vector<uint32_t>> lengths;
  // A train has datagrams of a size.
  for (auto all = sent(); !all.empty(); all = sent()) {
    for (const Datagram& d : all) {
      auto& of = lengths.emplace_back();
      for (const Message& m : d) of.push_back(m.header.mlen);
    }
  }
  EXPECT_EQ(lengths,
            (std::vector<std::vector<uint32_t>>{{10, 20}, {21}, {30, 31}, {32, 33}, {400}}));
}

// Neither does it join one that goes alone: nobody would hear of it.
TEST_F(RdMessageWriterTest, OnesThatGoAloneAreJoinedByNobody) {
  const RdMessage m{.sidx = 3, .didx = 5, .length = 1};
  writer.write(m, 1, 7);
  writer.write_shared(m, 1, 8, 500);
  writer.write(m, 1, 9);
  EXPECT_EQ(sent().size(), 3U);
}

TEST_F(RdMessageWriterTest, OneOfSeveralThatIsTakenBack) {
  const RdMessage m{.sidx = 3, .didx = 5, .length = 1};
  for (const uint64_t request : {7, 8, 9}) writer.write_shared(m, 1, request, 500);
  writer.take_back(m);
  writer.write_shared(m, 1, 9, 500);
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].size(), 3U);
  EXPECT_EQ(all[0].at(2).header.msn, Msn{3});
}

TEST_F(RdMessageWriterTest, AnswersToReadsAreAFlowOfTheirOwn) {
  WdpData request = segment(5, 10);
  writer.write(request, true, 0);
  WdpData answer = segment(5, 10, Opcode::read_response);
  writer.write(answer, true, 0);
  EXPECT_EQ(request.msn, Msn{1});
  EXPECT_EQ(answer.msn, Msn{1});
  writer.take_back(answer, true);
  writer.write(answer, true, 0);
  EXPECT_EQ(answer.msn, Msn{1});
}

TEST_F(RdMessageWriterTest, SegmentsShareADatagramWhileItHasRoom) {
  for (uint8_t didx = 5; didx < 9; ++didx) {
    WdpData d = segment(didx, 100);
    writer.write(d, true, 500);
  }
  const auto all = sent();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].size(), 3U);
  EXPECT_EQ(all[1].size(), 1U);
  EXPECT_EQ(all[1][0].header.psn, Csn{101});
}

}  // namespace
}  // namespace weft::wdp
