// Numbers and names of docs/spec that are constants and enumerations of the code: who changes one
// finds the sentence that says so.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "tests/support/spec_section.h"
#include "wdp/congestion.h"
#include "wdp/handshake.h"
#include "wdp/limits.h"
#include "wdp/path_probe.h"
#include "wdp/refusals.h"
#include "wdp/request_gate.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_data.h"
#include "wire/wdp_messages.h"
#include "wire/wdp_ud.h"

namespace weft::wdp {
namespace {

using test::section_rows;
using test::section_text;
using wire::WdpCtl;
using wire::WdpData;
using wire::WdpUd;

// 65493 as the pages write it: 65,493.
std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}
std::string number(uint64_t n) {
  return n < 100'000 ? std::to_string(n) : grouped(n);
}
template <class Unit>
std::string in(Duration d) {
  return std::to_string(std::chrono::duration_cast<Unit>(d).count());
}
std::string ms(Duration d) {
  return in<std::chrono::milliseconds>(d) + " ms";
}
std::string s(Duration d) {
  return in<std::chrono::seconds>(d) + " s";
}
std::string power_of_two(uint64_t n) {
  EXPECT_EQ(n & (n - 1), 0U) << n;
  return "2^" + std::to_string(std::countr_zero(n));
}
std::string mib(uint64_t n) {
  return std::to_string(n >> 20) + " MiB";
}
// "0, 100 and 300 ms"
std::string tries(std::span<const Duration> all) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " and " : ", ";
    text += in<std::chrono::milliseconds>(all[i]);
  }
  return text + " ms";
}

void expect(const char* page, const char* section, const std::string& words) {
  EXPECT_NE(section_text(page, section).find(words), std::string::npos)
      << "docs/spec/" << page << ".md " << section << " does not say: " << words;
}

TEST(WdpSpec, Datagrams) {
  expect("wdp", "2.4", "within " + s(kTimeWait) + " after its session");
  expect("wdp", "2.7", "at most " + number(Train::kMostDatagrams) + " datagrams");
  expect("wdp", "2.7",
         "at most " + grouped(Train::kMostBytes) + " bytes over IPv4 or " +
             grouped(Train::kMostBytesIpv6) + " over IPv6");
}

TEST(WdpSpec, ControlMessages) {
  expect("wdp", "3.1", "bytes of private data, 0 to " + number(WdpCtl::kMaxPrivateData));
  expect("wdp", "3.2", "Padded with zeros to " + number(WdpCtl::kMinRequest) + " bytes at least");
  expect("wdp", "3.2", "the first " + number(WdpCtl::kOffendingSize) + " bytes of the header");
  expect("wdp", "3.6", "less than " + number(WdpCtl::kSize) + " bytes");
  expect("wdp", "3.6", "REQ of less than " + number(WdpCtl::kMinRequest) + " bytes");
  expect("wdp", "3.6", "WAIT of more than " + grouped(WdpCtl::kMaxWaitMs) + " ms");
  expect("wdp", "3.6", "PDLEN above " + number(WdpCtl::kMaxPrivateData));
}

TEST(WdpSpec, Handshake) {
  expect("wdp", "4.2", "REQ goes out at " + tries(kHandshakeTries));
  EXPECT_EQ(kHandshakeFails, 12700ms);
  for (const char* section : {"4.1", "4.2", "4.3", "4.5"}) expect("wdp", section, "12.7 s");
  expect("wdp", "4.2", "RTU goes out at " + tries(kRtuTries));
  expect("wdp", "4.3", "last " + number(Refusals::kMost) + " refusals");
  expect("wdp", "4.3", "If " + number(RequestGate::kMostHalfOpen) + " handshakes");
  expect("wdp", "4.4", "The secret changes every " + s(RequestGate::kSecretLives));
  expect("wdp", "4.5", "WAIT " + number(kWaitMs) + " ms");
  expect("wdp", "4.5", "at most " + in<std::chrono::minutes>(kMostWaiting) + " minutes");
  expect("wdp", "6.1", "at most " + number(RequestGate::kVersionAnswersPerSecond) + " a second");
}

TEST(WdpSpec, Sessions) {
  expect("wdp", "5.1",
         "for " + s(kKeepaliveAfter) + ", weft sends KA, " + number(kKeepaliveTries) + " times, " +
             s(kKeepaliveEvery) + " apart");
  expect("wdp", "5.2", "then DREQ, " + number(kDreqTries) + " times, " + ms(kDreqEvery) + " apart");
  expect("wdp", "5.2", "TIME-WAIT for " + s(kTimeWait));
  expect("wdp", "5.2", "at most " + ms(kGoodbyeHold));
  expect("wdp", "5.3", "at most " + number(kErrorsPerSecond) + " a second");
  expect("wdp", "5.4", "Every " + ms(PathProbe::kEvery));
  expect("wdp", "5.4", "a PROBE of " + number(PathProbe::kSmall) + " bytes");
  expect("wdp", "5.4", "doubles up to " + s(PathProbe::kSeldom));
  EXPECT_EQ(PathProbe::kTries, 3U);
  expect("wdp", "5.4", "Three rounds");
}

TEST(WdpSpec, UcData) {
  expect("wdp-uc", "2.1", "every segment but the last, 1 to " + number(WdpData::kMaxStride));
  expect("wdp-uc", "2.3", "at least " + number(WdpData::kSize) + " bytes");
  expect("wdp-uc", "2.3", "the datagram has " + number(WdpData::kLook) + " bytes");
  for (const auto& row : section_rows("wdp-uc", "2.4")) {
    EXPECT_EQ(std::to_string(wire::wdp_stride(std::stoul(row.at(1)))), row.at(2)) << row.at(0);
  }
  EXPECT_EQ(section_rows("wdp-uc", "2.4").size(), 5U);
}

TEST(WdpSpec, UcReceiving) {
  expect("wdp-uc", "3.2", "The last " + number(kPsnWindow) + " PSNs");
  expect("wdp-uc", "3.2", "until " + number(kResyncAfter) + " datagrams");
  expect("wdp-uc", "3.2", "at most " + power_of_two(kMostPsnJump));
  expect("wdp-uc", "3.3", "missing for " + in<std::chrono::microseconds>(kHoldFor) + " us");
  expect("wdp-uc", "3.3", "more than " + number(kMostHeld) + " things or " + mib(kMostHeldBytes));
  expect("wdp-uc", "3.4", "The last " + number(kMsnWindow) + " MSNs");
  expect("wdp-uc", "3.4", "If " + number(kResyncAfter) + " datagrams");
  expect("wdp-uc", "3.6", "At most " + number(kMostContexts) + " contexts");
  for (const char* section : {"3.6", "3.7", "4.4", "5.4"}) {
    expect("wdp-uc", section, "ore than " + power_of_two(kMostSegmentsOfMessage) + " segments");
  }
}

TEST(WdpSpec, UcSendingAndReads) {
  expect("wdp-uc", "4.2", "less than " + ms(kCloseBy));
  expect("wdp-uc", "5.1", "at most " + mib(wire::WdpReadRange::kMaxUcRange));
  expect("wdp-uc", "5.3", "the last " + number(kRememberedRequests));
  expect("wdp-uc", "5.3", "IRD + " + number(kMostReRequests) + " ranges");
  expect("wdp-uc", "5.5", "between " + ms(kLeastReadTimeout) + " and " + s(kMostReadTimeout));
  expect("wdp-uc", "5.5", "up to " + s(kMostDoubledTimeout));
  expect("wdp-uc", "5.5", "At most " + number(kMostReRequests) + " ranges");
}

TEST(WdpSpec, UdAndRd) {
  expect("wdp-ud", "2", "less than " + number(WdpUd::kSize) + " bytes");
  expect("wdp-ud", "4", "at most " + grouped(wire::kMaxUdpPayload - WdpUd::kSize) + " bytes");
  expect("wdp-rd", "4.1", "less than " + number(wire::WdpAck::kSize) + " bytes");
  expect("wdp-rd", "4.1", "more than " + number(wire::WdpAck::kMaxWords) + " words");
  expect("wdp-rd", "6.1", "n records of " + number(wire::WdpResponse::kSize) + " bytes");
  expect("wdp-rd", "6.4", "at most " + number(kFlowReads) + " Reads and atomics");
  expect("wdp-rd", "6.5", "with delay " + number(kRnrDelay));
  expect("wdp-rd", "6.5", number(kRnrForEver) + " is for ever");
}

TEST(WdpSpec, Channels) {
  expect("wdp-rd", "2.2", "every " + ms(kAskForPeer));
  expect("wdp-rd", "2.3", "after " + s(kAskAgain));
  expect("wdp-rd", "2.4", "for " + s(kIdleChannel));
  expect("wdp-rd", "2.4", "none longer than " + ms(kDreqEvery));
  expect("wdp-rd", "3.1", "at most " + grouped(WdpData::kMaxStride));
  expect("wdp-rd", "4.1", "every " + number(kAckEvery) + "th datagram");
  expect("wdp-rd", "4.1", "after " + in<std::chrono::microseconds>(kAckDelay) + " us");
  expect("wdp-rd", "4.2", "One " + number(kCsnWindow) + " or more beyond CUM");
  expect("wdp-rd", "4.2", "more than " + mib(2 * kChannelHold));
  expect("wdp-rd", "4.3", "more than " + number(kCsnWindow) + " ahead");
  expect("wdp-rd", "4.4", "the smaller of " + mib(kChannelHold));
  expect("wdp-rd", "4.4", number(kDatagramOverhead) + " bytes");
  expect("wdp-rd", "4.5", "of " + ms(kLongTrip) + " and more");
  expect("wdp-rd", "4.5", mib(kLongestWindow) + " at most");
  expect("wdp-rd", "4.5", "together " + mib(kSocketExtra));
  expect("wdp-rd", "4.5", "for " + s(kWindowRests));
  expect("wdp-rd", "4.4", "was not " + number(kPatience) + " times");
  EXPECT_EQ(kPatienceTick, 1s);
  expect("wdp-rd", "5.1", "it is " + ms(kFirstRoundTrip));
  expect("wdp-rd", "5.2", number(kReorderedDatagrams) + " later ones");
  expect("wdp-rd", "5.2", in<std::chrono::microseconds>(kLeastLossDelay) + " us at least");
  expect("wdp-rd", "5.3", "variations, " + ms(kProbeGranularity) + ")");
  expect("wdp-rd", "5.3", "up to " + s(kMostProbePause));
  expect("wdp-rd", "5.3", "After " + number(kMostProbes) + " probes");
  expect("wdp-rd", "5.4",
         "begun with " + number(Congestion::kFirst / Congestion::kUnit) + " datagrams of " +
             number(Congestion::kUnit - kDatagramOverhead) + " bytes");
  expect("wdp-rd", "5.4", "after " + number(kProbesToCollapse) + " probes");
  expect("wdp-rd", "5.4",
         "At most " + number(kCsnWindow) + " datagrams and " + mib(kChannelStore) + " are kept");
}

// --- names

TEST(WdpSpec, TypesOfControlMessages) {
  const auto rows = section_rows("wdp", "3.2");
  ASSERT_EQ(rows.size(), 13U);
  for (const auto& row : rows) {
    const auto type = static_cast<wire::CtlType>(std::stoul(row.at(0)));
    EXPECT_EQ(row.at(1), wire::to_string(type));
    EXPECT_EQ(row.at(3) == "-", WdpCtl::own_size(type) == 0) << row.at(1);
  }
}

// "critical TLV" on the page is critical_tlv among the counters.
TEST(WdpSpec, ReasonsOfARej) {
  const auto rows = section_rows("wdp", "3.5");
  ASSERT_EQ(rows.size(), wire::kRejReasons);
  for (const auto& row : rows) {
    std::string name = row.at(1);
    for (char& c : name) c = c == ' ' ? '_' : static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, wire::counter_name(static_cast<wire::RejReason>(std::stoul(row.at(0)))));
  }
}

TEST(WdpSpec, EachReasonToDropIsNamed) {
  std::string all;
  for (const char* page : {"wdp", "wdp-uc", "wdp-ud", "wdp-rd"}) all += test::page_text(page);
  for (size_t i = 0; i < wire::kWdpDropCount; ++i) {
    const std::string name = wire::counter_name(static_cast<wire::WdpDrop>(i));
    EXPECT_NE(all.find("`" + name + "`"), std::string::npos) << name;
  }
}

// Opcodes of UC and RD.
TEST(WdpSpec, Opcodes) {
  std::set<int> uc;
  std::set<int> rd;
  for (const auto& row : section_rows("wdp-uc", "2.2")) {
    std::istringstream numbers(row.at(0));
    for (std::string n; numbers >> n;) {
      if (row.at(3) == "yes") uc.insert(std::stoi(n));
      if (row.at(4) == "yes") rd.insert(std::stoi(n));
      EXPECT_EQ(row.at(2) == "1", is_tagged(static_cast<wire::Opcode>(std::stoi(n)))) << n;
    }
  }
  for (int op = 0; op < 16; ++op) {
    const auto o = static_cast<wire::Opcode>(op);
    EXPECT_EQ(uc.contains(op), wire::wdp_has_opcode(wire::WdpClass::uc, o)) << op;
    EXPECT_EQ(rd.contains(op), wire::wdp_has_opcode(wire::WdpClass::rd, o)) << op;
  }
}

}  // namespace
}  // namespace weft::wdp
