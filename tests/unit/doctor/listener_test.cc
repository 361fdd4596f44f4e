#include "doctor/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "doctor/consultation.h"
#include "doctor/examination.h"
#include "doctor/path_checks.h"
#include "doctor/route.h"
#include "listening.h"
#include "port/udp_bind.h"

namespace weft::doctor {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kHost = "127.0.0.1";
constexpr int kPatienceMs = 20'000;

port::Address at(uint16_t port) {
  std::string error;
  return addresses_of(kHost, port, error).at(0);
}

uint64_t number_of(const std::string& hex) {
  return std::stoull(hex, nullptr, 16);
}

// A UDP socket beside an examination's own.
class Udp {
 public:
  explicit Udp(uint16_t peer) : end_(std::move(*port::bind_udp(at(0)))) {
    to_ = {.address = Gid::from_ipv4(INADDR_LOOPBACK), .port = peer};
  }
  void send(const Probe& probe, size_t size) {
    ASSERT_EQ(end_.send(probe, size, to_), UdpEnd::Sent::yes);
  }
  // What is there. The caller knows that all of it has been sent.
  std::vector<UdpEnd::Came> take() {
    std::vector<UdpEnd::Came> all;
    end_.receive([&](const UdpEnd::Came& c) { all.push_back(c); });
    return all;
  }
  std::vector<UdpEnd::Came> wait() {
    pollfd watched{end_.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&watched, 1, kPatienceMs), 1);
    return take();
  }

 private:
  UdpEnd end_;
  UdpEnd::To to_;
};

TEST(Listener, AnExaminationOverLoopbackFindsNothingWrong) {
  const Listening listener;
  const PathFacts facts = examine(at(listener->port()), "lo");
  EXPECT_EQ(facts.failed, "");
  for (const Finding& f : check_path(facts)) {
    EXPECT_EQ(f.severity, Severity::ok) << f.check << ": " << f.sentence;
  }
  EXPECT_EQ(facts.datagrams[0].largest, 65'535U);
  EXPECT_EQ(facts.datagrams[1].largest, 65'535U);
}

TEST(Listener, ADatagramDrawsNoMoreThanItsOwnSizeAndOnlyWithAToken) {
  const Listening listener;
  Consultation consultation(at(listener->port()), kPatience);
  const uint64_t token = number_of(consultation.token());
  Udp udp(listener->port());
  for (const size_t size : {kProbeHeader, size_t{1400}}) {
    udp.send({.kind = Probe::Kind::hail, .token = token + 1}, size);
    udp.send({.kind = Probe::Kind::hail_answer, .token = token}, size);
    udp.send({.kind = Probe::Kind::probe, .token = token, .round = 1}, size);
  }
  consultation.ask({{"ask", "heard"}});  // it has looked at all of them
  EXPECT_TRUE(udp.take().empty());
  udp.send({.kind = Probe::Kind::hail, .token = token}, kProbeHeader);
  const auto came = udp.wait();
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].size, kProbeHeader);
  EXPECT_EQ(came[0].probe.kind, Probe::Kind::hail_answer);
}

TEST(Listener, SendsOnlyWhereItsCookieWasHeard) {
  const Listening listener;
  const uint16_t port = listener->port();
  const json question = {
      {"ask", "send"}, {"cookie", "0123456789abcdef"}, {"round", 1}, {"sizes", {1000}}};
  Consultation no_hail(at(port), kPatience);
  EXPECT_THROW(no_hail.ask(question), kit::Failure);
  Consultation guessed(at(port), kPatience);
  Udp udp(port);
  udp.send({.kind = Probe::Kind::hail, .token = number_of(guessed.token())}, kProbeHeader);
  EXPECT_EQ(udp.wait().size(), 1U);
  EXPECT_THROW(guessed.ask(question), kit::Failure);
}

TEST(Listener, WhatItSendsForOneSessionIsBounded) {
  const Listening listener;
  Consultation consultation(at(listener->port()), kPatience);
  Udp udp(listener->port());
  udp.send({.kind = Probe::Kind::hail, .token = number_of(consultation.token())}, kProbeHeader);
  const auto came = udp.wait();
  ASSERT_EQ(came.size(), 1U);
  json question = {{"ask", "send"},
                   {"cookie", in_hex(came[0].probe.cookie)},
                   {"sizes", {60'000}},
                   {"times", 200}};
  uint64_t sent = 0;
  for (uint32_t round = 1; round < 20; ++round) {
    question["round"] = round;
    sent += consultation.ask(question).at("sent").get<uint64_t>() * 60'000;
    udp.take();
  }
  EXPECT_GT(sent, 0U);
  EXPECT_LE(sent, Session::kMostBytes);
  question["sizes"] = {100};
  question["round"] = 20;
  EXPECT_EQ(consultation.ask(question).at("sent"), 200) << "there is room for small ones yet";
}

TEST(Listener, NonsenseEndsTheConnectionAndNothingElse) {
  const Listening listener;
  Consultation good(at(listener->port()), kPatience);
  const std::string token = good.token();
  const std::vector<std::string> lines = {
      "nonsense\n",
      "[]\n",
      "{}\n",
      R"({"weft_doctor": "1"})"
      "\n",
      R"({"weft_doctor": 2})"
      "\n",
      R"({"trial": "00", "id": 1, "take": 5})"
      "\n",
      R"({"trial": ")" + token + R"(", "id": 1, "give": 1000000000})" + "\n",
      R"({"trial": ")" + token + R"(", "id": -1, "give": "x"})" + "\n",
      std::string(kLongestLine + 1, '{'),
  };
  for (const std::string& line : lines) {
    Control control(connect_to(at(listener->port()), kPatience));
    control.send_text(line);
    bool open = true;
    while (open && wait_readable(control.fd(), kPatience)) open = control.fetch();
    EXPECT_FALSE(open) << line;
  }
  for (const json& question : std::vector<json>{{{"ask", "what"}},
                                                {{"ask", 7}},
                                                {{"ask", "send"}},
                                                {{"ask", "hail"}, {"port", -1}},
                                                {{"ask", "hail"}, {"port", 65536}},
                                                {{"no", "question"}}}) {
    Consultation bad(at(listener->port()), kPatience);
    EXPECT_THROW(bad.ask(question), kit::Failure) << question;
  }
  EXPECT_EQ(good.ask({{"ask", "heard"}}).at("count"), 0);
}

TEST(Listener, SoManyExamineAtTheSameTimeAndNoMore) {
  const Listening listener;
  std::list<Consultation> all;
  for (size_t i = 0; i < Listener::kMostSessions; ++i) {
    all.emplace_back(at(listener->port()), kPatience);
  }
  try {
    const Consultation one_more(at(listener->port()), kPatience);
    ADD_FAILURE() << "was let in";
  } catch (const kit::Failure& failed) {
    EXPECT_THAT(failed.what(), HasSubstr("too many"));
  }
  EXPECT_EQ(all.front().ask({{"ask", "heard"}}).at("count"), 0);
}

TEST(Listener, NamesWhoHasItsPort) {
  const Listening first;
  try {
    const Listener second(first->port(), [](const std::string&) {});
    ADD_FAILURE() << "has the port, too";
  } catch (const kit::Failure& failed) {
    EXPECT_THAT(failed.what(), HasSubstr(std::to_string(first->port())));
    EXPECT_THAT(failed.what(), HasSubstr("(doctor_test)"));
  }
}

TEST(Listener, EndsWhenItsTimeIsOver) {
  Listener listener(0, [](const std::string&) {});
  const int never = ::eventfd(0, EFD_CLOEXEC);
  listener.run(never, std::chrono::seconds{0});
  ::close(never);
}

TEST(Examination, NobodyListens) {
  uint16_t port = 0;
  {
    const Listening gone;
    port = gone->port();
  }
  EXPECT_THROW(examine(at(port), "lo"), kit::Failure);
}

}  // namespace
}  // namespace weft::doctor
