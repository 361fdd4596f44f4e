#include "doctor/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "doctor/client.h"
#include "doctor/path_checks.h"
#include "doctor/path_probe.h"
#include "doctor/route.h"
#include "listener_thread.h"
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

// A UDP socket beside the one of path_probe.h.
class Udp {
 public:
  explicit Udp(uint16_t peer) : socket_(std::move(*port::bind_udp(at(0)))) {
    to_ = {.address = Gid::from_ipv4(INADDR_LOOPBACK), .port = peer};
  }
  void send(const Probe& probe, size_t size) {
    ASSERT_EQ(socket_.send(probe, size, to_), ProbeSocket::Sent::yes);
  }
  // What is there. The caller knows that all of it has been sent.
  std::vector<ProbeSocket::Received> take() {
    std::vector<ProbeSocket::Received> all;
    socket_.receive([&](const ProbeSocket::Received& c) { all.push_back(c); });
    return all;
  }
  std::vector<ProbeSocket::Received> wait() {
    pollfd watched{socket_.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&watched, 1, kPatienceMs), 1);
    return take();
  }

 private:
  ProbeSocket socket_;
  ProbeSocket::Remote to_;
};

TEST(Listener, ATestOfThePathOverLoopbackFindsNothingWrong) {
  const ListenerThread listener;
  const PathFacts facts = probe_path(at(listener->port()), "lo");
  EXPECT_EQ(facts.failed, "");
  for (const Finding& f : check_path(facts)) {
    EXPECT_EQ(f.severity, Severity::ok) << f.check << ": " << f.sentence;
  }
  EXPECT_EQ(facts.datagrams[0].largest, 65'535U);
  EXPECT_EQ(facts.datagrams[1].largest, 65'535U);
}

TEST(Listener, ADatagramDrawsNoMoreThanItsOwnSizeAndOnlyWithAToken) {
  const ListenerThread listener;
  Client client(at(listener->port()), kAnswerTimeout);
  const uint64_t token = number_of(client.token());
  Udp udp(listener->port());
  for (const size_t size : {kProbeHeader, size_t{1400}}) {
    udp.send({.kind = Probe::Kind::ping, .token = token + 1}, size);
    udp.send({.kind = Probe::Kind::ping_reply, .token = token}, size);
    udp.send({.kind = Probe::Kind::probe, .token = token, .round = 1}, size);
  }
  client.request({{"ask", "heard"}});  // it has looked at all of them
  EXPECT_TRUE(udp.take().empty());
  udp.send({.kind = Probe::Kind::ping, .token = token}, kProbeHeader);
  const auto received = udp.wait();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].size, kProbeHeader);
  EXPECT_EQ(received[0].probe.kind, Probe::Kind::ping_reply);
}

TEST(Listener, SendsOnlyWhereItsCookieWasHeard) {
  const ListenerThread listener;
  const uint16_t port = listener->port();
  const json message = {
      {"ask", "send"}, {"cookie", "0123456789abcdef"}, {"round", 1}, {"sizes", {1000}}};
  Client no_ping(at(port), kAnswerTimeout);
  EXPECT_THROW(no_ping.request(message), kit::Failure);
  Client guessed(at(port), kAnswerTimeout);
  Udp udp(port);
  udp.send({.kind = Probe::Kind::ping, .token = number_of(guessed.token())}, kProbeHeader);
  EXPECT_EQ(udp.wait().size(), 1U);
  EXPECT_THROW(guessed.request(message), kit::Failure);
}

TEST(Listener, WhatItSendsForOneSessionIsBounded) {
  const ListenerThread listener;
  Client client(at(listener->port()), kAnswerTimeout);
  Udp udp(listener->port());
  udp.send({.kind = Probe::Kind::ping, .token = number_of(client.token())}, kProbeHeader);
  const auto received = udp.wait();
  ASSERT_EQ(received.size(), 1U);
  json message = {{"ask", "send"},
                  {"cookie", in_hex(received[0].probe.cookie)},
                  {"sizes", {60'000}},
                  {"times", 200}};
  uint64_t sent = 0;
  for (uint32_t round = 1; round < 20; ++round) {
    message["round"] = round;
    sent += client.request(message).at("sent").get<uint64_t>() * 60'000;
    udp.take();
  }
  EXPECT_GT(sent, 0U);
  EXPECT_LE(sent, Session::kMostBytes);
  message["sizes"] = {100};
  message["round"] = 20;
  EXPECT_EQ(client.request(message).at("sent"), 200) << "there is room for small ones yet";
}

TEST(Listener, NonsenseEndsTheConnectionAndNothingElse) {
  const ListenerThread listener;
  Client good(at(listener->port()), kAnswerTimeout);
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
    ControlConnection control(connect_to(at(listener->port()), kAnswerTimeout));
    control.send_text(line);
    bool open = true;
    while (open && wait_readable(control.fd(), kAnswerTimeout)) open = control.fetch();
    EXPECT_FALSE(open) << line;
  }
  for (const json& message : std::vector<json>{{{"ask", "what"}},
                                               {{"ask", 7}},
                                               {{"ask", "send"}},
                                               {{"ask", "hail"}, {"port", -1}},
                                               {{"ask", "hail"}, {"port", 65536}},
                                               {{"no", "message"}}}) {
    Client bad(at(listener->port()), kAnswerTimeout);
    EXPECT_THROW(bad.request(message), kit::Failure) << message;
  }
  EXPECT_EQ(good.request({{"ask", "heard"}}).at("count"), 0);
}

TEST(Listener, SoManyExamineAtTheSameTimeAndNoMore) {
  const ListenerThread listener;
  std::list<Client> all;
  for (size_t i = 0; i < Listener::kMostSessions; ++i) {
    all.emplace_back(at(listener->port()), kAnswerTimeout);
  }
  try {
    const Client one_more(at(listener->port()), kAnswerTimeout);
    ADD_FAILURE() << "was let in";
  } catch (const kit::Failure& failed) {
    EXPECT_THAT(failed.what(), HasSubstr("too many"));
  }
  EXPECT_EQ(all.front().request({{"ask", "heard"}}).at("count"), 0);
}

TEST(Listener, NamesWhoHasItsPort) {
  const ListenerThread first;
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

TEST(PathProbe, NobodyListens) {
  uint16_t port = 0;
  {
    const ListenerThread gone;
    port = gone->port();
  }
  EXPECT_THROW(probe_path(at(port), "lo"), kit::Failure);
}

}  // namespace
}  // namespace weft::doctor
