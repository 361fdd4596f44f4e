#include "sdp/rules/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/sdp_rules/endpoints.h"

namespace weft::sdp {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Rules of a text without a bad line.
Rules good(std::string_view text) {
  const auto c = parse(text);
  for (const auto& complaint : c.complaints)
    ADD_FAILURE() << complaint.line << ": " << complaint.text;
  return c.rules;
}

std::string complaint(std::string_view text) {
  const auto c = parse(text);
  EXPECT_EQ(c.complaints.size(), 1U) << text;
  return c.complaints.empty() ? "" : c.complaints[0].text;
}

Decision client(const Rules& rules, const Endpoint& to, const char* program = "prog") {
  return rules.decide(SocketRole::client, program, to);
}
Decision server(const Rules& rules, const Endpoint& own, const char* program = "prog") {
  return rules.decide(SocketRole::server, program, own);
}

TEST(Parse, NothingIsBothForAll) {
  for (const char* const text : {"", "\n", "# use tcp * * *:*\n", "  \t\n\r\n"}) {
    const auto rules = good(text);
    EXPECT_EQ(client(rules, at("192.0.2.1", 80)), (Decision{Use::both, 0})) << text;
    EXPECT_EQ(server(rules, at("192.0.2.1", 80)), (Decision{Use::both, 0})) << text;
  }
}

TEST(Parse, TheFirstRuleThatFitsDecides) {
  const auto rules = good(
      "use tcp client * 192.0.2.0/25:*\n"
      "use sdp client * 192.0.2.0/24:*\n"
      "use tcp client * 192.0.2.200:*\n");
  EXPECT_EQ(client(rules, at("192.0.2.1", 80)), (Decision{Use::tcp, 1}));
  EXPECT_EQ(client(rules, at("192.0.2.200", 80)), (Decision{Use::sdp, 2}));
  EXPECT_EQ(client(rules, at("198.51.100.1", 80)), (Decision{Use::both, 0}));
}

TEST(Parse, ServersAndClientsHaveListsOfTheirOwn) {
  const auto rules = good(
      "use tcp server * *:*\n"
      "use sdp client * *:*\n");
  EXPECT_EQ(server(rules, at("0.0.0.0", 80)), (Decision{Use::tcp, 1}));
  EXPECT_EQ(client(rules, at("192.0.2.1", 80)), (Decision{Use::sdp, 2}));
}

TEST(Parse, EachWordForARole) {
  for (const char* const word : {"server", "listen"}) {
    const auto rules = good(std::string{"use tcp "} + word + " * *:*\n");
    EXPECT_EQ(server(rules, at("::", 1)).use, Use::tcp) << word;
    EXPECT_EQ(client(rules, at("::1", 1)).use, Use::both) << word;
  }
  for (const char* const word : {"client", "connect"}) {
    const auto rules = good(std::string{"use tcp "} + word + " * *:*\n");
    EXPECT_EQ(server(rules, at("::", 1)).use, Use::both) << word;
    EXPECT_EQ(client(rules, at("::1", 1)).use, Use::tcp) << word;
  }
  const auto rules = good("use tcp * * *:*\n");
  EXPECT_EQ(server(rules, at("::", 1)).use, Use::tcp);
  EXPECT_EQ(client(rules, at("::1", 1)).use, Use::tcp);
}

TEST(Parse, EachWay) {
  EXPECT_EQ(client(good("use sdp client * *:*"), at("::1")).use, Use::sdp);
  EXPECT_EQ(client(good("use tcp client * *:*"), at("::1")).use, Use::tcp);
  EXPECT_EQ(client(good("use both client * *:*"), at("::1")), (Decision{Use::both, 1}));
}

TEST(Parse, ProgramsAreAPattern) {
  const auto rules = good(
      "use sdp * redis-* *:*\n"
      "use tcp * [ab]?c *:*\n");
  EXPECT_EQ(client(rules, at("::1"), "redis-server").use, Use::sdp);
  EXPECT_EQ(client(rules, at("::1"), "axc").use, Use::tcp);
  EXPECT_EQ(client(rules, at("::1"), "Redis-server").use, Use::both);
  EXPECT_EQ(client(rules, at("::1"), "my-redis-server").use, Use::both);
}

TEST(Parse, PortsAreOneOrARangeOrAll) {
  const auto rules = good(
      "use tcp client * *:22\n"
      "use sdp client * *:5001-5010\n");
  EXPECT_EQ(client(rules, at("::1", 22)).use, Use::tcp);
  EXPECT_EQ(client(rules, at("::1", 23)).use, Use::both);
  EXPECT_EQ(client(rules, at("::1", 5000)).use, Use::both);
  EXPECT_EQ(client(rules, at("::1", 5001)).use, Use::sdp);
  EXPECT_EQ(client(rules, at("::1", 5010)).use, Use::sdp);
  EXPECT_EQ(client(rules, at("::1", 5011)).use, Use::both);
}

TEST(Parse, Ipv6WithAndWithoutBrackets) {
  for (const char* const place : {"2001:db8::/32:80", "[2001:db8::]/32:80", "[2001:db8::/32]:80"}) {
    const auto rules = good(std::string{"use sdp client * "} + place);
    EXPECT_EQ(client(rules, at("2001:db8:7::1", 80)).use, Use::sdp) << place;
    EXPECT_EQ(client(rules, at("2001:db8:7::1", 81)).use, Use::both) << place;
    EXPECT_EQ(client(rules, at("2001:db9::1", 80)).use, Use::both) << place;
  }
  EXPECT_EQ(client(good("use sdp client * ::1:80"), at("::1", 80)).use, Use::sdp);
}

TEST(Parse, CommentsBlanksAndNoLastNewline) {
  const auto rules = good(
      "# all of them\n"
      "\n"
      " \tuse   tcp\tclient *  10.0.0.0 / 8 : 80 - 90   # but these\r\n"
      "use sdp client * *:*#no newline");
  EXPECT_EQ(client(rules, at("10.1.2.3", 85)), (Decision{Use::tcp, 3}));
  EXPECT_EQ(client(rules, at("10.1.2.3", 91)), (Decision{Use::sdp, 4}));
}

TEST(Parse, ABadLineIsToldAndTheOthersStay) {
  const auto c = parse(
      "use tcp client * *:22\n"
      "use tcp client * *:http\n"
      "match both client * *:*\n"
      "use sdp client * *:23\n");
  EXPECT_THAT(c.complaints,
              ElementsAre(AllOf(Field(&Complaint::line, 2U),
                                Field(&Complaint::text, HasSubstr("'http' is no port"))),
                          AllOf(Field(&Complaint::line, 3U),
                                Field(&Complaint::text, HasSubstr("'match' is no statement")))));
  EXPECT_EQ(client(c.rules, at("::1", 22)), (Decision{Use::tcp, 1}));
  EXPECT_EQ(client(c.rules, at("::1", 23)), (Decision{Use::sdp, 4}));
}

TEST(Parse, EachComplaintSaysWhatToWrite) {
  EXPECT_EQ(complaint("Use sdp client * *:*"),
            "'Use' is no statement, which is use, log or keep: did you mean 'use'?");
  EXPECT_EQ(complaint("use spd client * *:*"),
            "'spd' is no way, which is sdp, tcp or both: did you mean 'sdp'?");
  EXPECT_THAT(complaint("use sdp any * *:*"),
              HasSubstr("'any' is no role, which is server, listen, client, connect or *"));
  EXPECT_THAT(complaint("use sdp client *:*"),
              HasSubstr("use sdp|tcp|both server|client|* PROGRAM ADDRESS:PORTS"));
  EXPECT_THAT(complaint("use sdp client * 192.0.2.1"),
              HasSubstr("'192.0.2.1' is no place: write ADDRESS:PORTS"));
  EXPECT_THAT(complaint("use sdp client * *:* *:*"), HasSubstr("is no place"));
  EXPECT_THAT(complaint("use sdp client * 192.0.2.1/33:*"),
              HasSubstr("'192.0.2.1/33' is no address"));
  EXPECT_THAT(complaint("use sdp client * host:80"), HasSubstr("'host' is no address"));
  for (const char* const ports : {"", "65536", "10-9", "1-", "-5", "80x", "1-2-3"}) {
    EXPECT_THAT(complaint(std::string{"use sdp client * *:"} + ports),
                HasSubstr("is no port: write a number"))
        << ports;
  }
}

TEST(Parse, AComplaintShowsNoSignsThatATerminalObeys) {
  EXPECT_THAT(complaint("\x1b[31m\xff"), HasSubstr("'?[31m?' is no statement"));
  EXPECT_THAT(complaint(std::string(500, 'x')), HasSubstr("xxx...' is no statement"));
}

TEST(Parse, AnotherKindOfFileMakesFewComplaints) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "rubbish\n";
  const auto c = parse(text);
  ASSERT_THAT(c.complaints, SizeIs(kMostComplaints + 1));
  EXPECT_THAT(c.complaints.back().text, HasSubstr("and perhaps more"));
}

TEST(ParseLog, EachPart) {
  const auto none = parse("").log;
  EXPECT_EQ(none.destination, LogSettings::Destination::standard_error);
  EXPECT_EQ(none.min_level, LogSettings::kWarnings);

  const auto file = parse("log min-level 7 destination file libsdp.log\n");
  EXPECT_THAT(file.complaints, SizeIs(0));
  EXPECT_EQ(file.log.destination, LogSettings::Destination::file);
  EXPECT_EQ(file.log.file, "libsdp.log");
  EXPECT_EQ(file.log.min_level, 7);

  const auto lines = parse("log destination syslog\nlog min-level 1\nlog\n");
  EXPECT_THAT(lines.complaints, SizeIs(0));
  EXPECT_EQ(lines.log.destination, LogSettings::Destination::syslog);
  EXPECT_EQ(lines.log.min_level, 1);
}

TEST(ParseKeep, NamesProgramsWhoseConnectionsOutliveThem) {
  const auto named = parse("keep auto*\nkeep psql\n");
  EXPECT_THAT(named.complaints, SizeIs(0));
  EXPECT_TRUE(named.keeps("autossh"));
  EXPECT_TRUE(named.keeps("psql"));
  EXPECT_FALSE(named.keeps("ssh"));
}

TEST(ParseKeep, IsSshWhereNothingIsSaid) {
  EXPECT_TRUE(parse("").keeps("ssh"));
  EXPECT_FALSE(parse("").keeps("sshd"));
  EXPECT_FALSE(parse("keep none").keeps("ssh"));
}

TEST(ParseKeep, WantsOneProgram) {
  for (const char* const line : {"keep", "keep ssh *:*"}) {
    EXPECT_THAT(parse(line).complaints, SizeIs(1)) << line;
    EXPECT_TRUE(parse(line).kept.empty()) << line;
  }
}

TEST(ParseLog, ABadLineChangesNothing) {
  for (const char* const line :
       {"log min-level 2 destination", "log min-level 2 destination file",
        "log min-level 2 destination disk", "log min-level", "log min-level 0", "log min-level 10",
        "log destination syslog min-level high", "log level 2"}) {
    const auto c = parse(line);
    EXPECT_THAT(c.complaints, SizeIs(1)) << line;
    EXPECT_EQ(c.log.destination, LogSettings::Destination::standard_error) << line;
    EXPECT_EQ(c.log.min_level, LogSettings::kWarnings) << line;
  }
}

}  // namespace
}  // namespace weft::sdp
