#include "wdp/rd_answers.h"

#include "tests/unit/wdp/rd_writer_fixture.h"

namespace weft::wdp {
namespace {

using wire::WdpResponse;
using Code = WdpResponse::Code;

constexpr size_t kMost = 8192;

struct RdAnswersTest : RdWriterTest {
  void add(Code code, uint32_t msn, uint8_t qidx = 9) {
    answers.add({.qidx = qidx, .ridx = 2, .code = code, .msn = Msn{msn}}, now);
  }
  static std::vector<WdpResponse> records_of(const Message& m) {
    std::vector<WdpResponse> all;
    for (size_t i = 0; i < m.payload.size(); i += WdpResponse::kSize) {
      all.push_back(WdpResponse::parse(m.payload.data() + i));
    }
    return all;
  }
  bool write(bool company = false) { return answers.write(company, kMost, now); }

  RdAnswers answers{writer, sender};
};

TEST_F(RdAnswersTest, WaitForCompany) {
  EXPECT_FALSE(answers.wait());
  add(Code::ack, 1);
  EXPECT_TRUE(answers.wait());
  EXPECT_FALSE(write());
  EXPECT_TRUE(write(true));
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(answers.deadline().is_never());
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at(0).header.opcode, wire::Opcode::terminate);
  EXPECT_FALSE(all[0].at(0).header.is_end());
}

TEST_F(RdAnswersTest, GoWithWhatIsSent) {
  add(Code::ack, 1);
  writer.write({.sidx = 3, .didx = 5, .length = 1}, 1, 0);
  EXPECT_TRUE(write());
}

TEST_F(RdAnswersTest, GoWhenTheirTimeIsOver) {
  add(Code::ack, 1);
  now = now + 50us;
  add(Code::rnr, 2);
  EXPECT_EQ(answers.deadline(), now + 50us) << "the first one counts";
  EXPECT_FALSE(answers.tick(now));
  now = now + 50us;
  EXPECT_TRUE(answers.tick(now));
  EXPECT_FALSE(answers.wait());
  EXPECT_TRUE(write());
}

TEST_F(RdAnswersTest, GoWhereSomebodySaysSo) {
  add(Code::ack, 1);
  answers.say();
  EXPECT_TRUE(write());
  add(Code::ack, 2);
  EXPECT_TRUE(answers.wait()) << "the next one waits again";
}

TEST_F(RdAnswersTest, OneAckOfAFlowSaysItAll) {
  add(Code::ack, 1);
  add(Code::ack, 1, 8);
  add(Code::ack, 2);
  add(Code::length, 3);
  add(Code::ack, 4);
  add(Code::ack, 5);
  ASSERT_TRUE(write(true));
  const auto all = sent();
  ASSERT_EQ(all.size(), 1U);
  const auto records = records_of(all[0].at(0));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].msn, Msn{2});
  EXPECT_EQ(records[1].qidx, 8);
  EXPECT_EQ(records[2].code, Code::length) << "no ACK goes past an error";
  EXPECT_EQ(records[3].msn, Msn{5});
}

TEST_F(RdAnswersTest, ManyTakeMessagesOfTheirOwn) {
  for (uint32_t i = 0; i < kMostResponses + 5; ++i) add(Code::length, i);
  ASSERT_TRUE(write()) << "there are enough for a message";
  std::vector<size_t> records;
  for (const Datagram& d : sent()) {
    for (const Message& m : d) records.push_back(records_of(m).size());
  }
  EXPECT_EQ(records, (std::vector<size_t>{kMostResponses, 5}));
}

TEST_F(RdAnswersTest, WaitForRoom) {
  const RdMessage large{.sidx = 3, .didx = 5, .length = 60000};
  while (writer.has_room(large.length)) writer.write(large, 1, 0);
  while (writer.has_room(WdpResponse::kSize)) {
    writer.write({.sidx = 3, .didx = 5, .length = WdpResponse::kSize}, 1, 0);
  }
  add(Code::ack, 1);
  EXPECT_FALSE(write(true));
  EXPECT_FALSE(answers.empty());
  EXPECT_FALSE(answers.wait()) << "for room alone";
  writer.take_back({.sidx = 3, .didx = 5, .length = WdpResponse::kSize});
  EXPECT_TRUE(write());
  EXPECT_TRUE(answers.empty());
}

TEST_F(RdAnswersTest, AreFullAtSomeNumber) {
  for (uint32_t i = 0; i < kMostUnsaid - 1; ++i) {
    add(Code::length, i);
    ASSERT_FALSE(answers.full());
  }
  add(Code::length, 0);
  EXPECT_TRUE(answers.full());
}

}  // namespace
}  // namespace weft::wdp
