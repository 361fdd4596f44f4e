#include "config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <map>
#include <set>

namespace weft::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Environment = std::map<std::string, std::string>;

Options parse_from(const Environment& environment, std::vector<std::string>* complaints = nullptr) {
  return parse(
      [&](const char* name) -> const char* {
        const auto found = environment.find(name);
        return found == environment.end() ? nullptr : found->second.c_str();
      },
      complaints);
}

const OptionInfo& info_of(std::string_view name) {
  for (const OptionInfo& info : table()) {
    if (info.name == name) return info;
  }
  ADD_FAILURE() << "the table has no option " << name;
  return table().front();
}

TEST(Parse, EmptyEnvironment_GivesDefaults) {
  std::vector<std::string> complaints;
  const Options o = parse_from({}, &complaints);
  for (const OptionInfo& info : table())
    EXPECT_EQ(value_of(o, info), info.default_text) << info.name;
  EXPECT_EQ(o.identity, Identity::ib);
  EXPECT_TRUE(o.crc);
  EXPECT_EQ(o.rnr_wait, std::chrono::seconds(10));
  EXPECT_EQ(o.takeover, std::chrono::milliseconds(1));
  EXPECT_EQ(o.private_data, 248U);
  EXPECT_EQ(o.log, log::Level::warn);
  EXPECT_THAT(complaints, IsEmpty());
}

TEST(Parse, EachKindOfValue_IsTaken) {
  std::vector<std::string> complaints;
  const Options o = parse_from({{"WEFT_IDENTITY", "ib-lid"}, {"WEFT_IP", "fe80::1%eth1"},
                                {"WEFT_LID", "0xbfff"},      {"WEFT_CRC", "off"},
                                {"WEFT_CRC_FIRST", "1"},     {"WEFT_EXT", "off"},
                                {"WEFT_COMPLETION", "llp"},  {"WEFT_BIG_FPDU", "on"},
                                {"WEFT_P2P", "on"},          {"WEFT_PRIVATE_DATA", "196"},
                                {"WEFT_PEER_CHECK", "gid"},  {"WEFT_CONNECT_TIMEOUT", "1500"},
                                {"WEFT_RNR_WAIT", "0"},      {"WEFT_RESPONDER_WAIT", "0"},
                                {"WEFT_ENGINES", "8"},       {"WEFT_SPIN", "7"},
                                {"WEFT_TAKEOVER", "250"},    {"WEFT_CONGESTION", "bbr"},
                                {"WEFT_SAME_HOST", "ring"},  {"WEFT_COALESCE", "20"},
                                {"WEFT_RC", "udp"},          {"WEFT_UC", "static"},
                                {"WEFT_UC_PORT", "4348"},    {"WEFT_DATAGRAM_CRC", "on"},
                                {"WEFT_UD_BIG", "1"},        {"WEFT_UD", "reliable"},
                                {"WEFT_RATE", "2.5"},        {"WEFT_COUNTERS", "off"},
                                {"WEFT_NO_HOOK", "1"},       {"WEFT_TRACE", "/tmp/t-%p.pcapng"},
                                {"WEFT_TRACE_SNAP", "64"},   {"WEFT_TRACE_SIZE", "2"},
                                {"WEFT_FAULT", "loss:0.5"},  {"WEFT_FAULT_LOG", "/tmp/lost-%p"},
                                {"WEFT_LOG", "debug"},       {"WEFT_PULL_FROM", "24576"},
                                {"WEFT_ECN", "off"},         {"WEFT_FIXED_RATE", "0.3"}},
                               &complaints);
  EXPECT_THAT(complaints, IsEmpty());
  EXPECT_EQ(o.identity, Identity::ib_lid);
  EXPECT_EQ(o.ip, "fe80::1%eth1");
  EXPECT_EQ(o.lid, 0xbfff);
  EXPECT_FALSE(o.crc);
  EXPECT_EQ(o.same_host, SameHost::ring);
  EXPECT_EQ(o.pull_from, 24'576U);
  EXPECT_EQ(o.ext, Extensions::off);
  EXPECT_EQ(o.completion, CompletionRule::llp);
  EXPECT_TRUE(o.big_fpdu);
  EXPECT_TRUE(o.p2p);
  EXPECT_EQ(o.private_data, 196U);
  EXPECT_EQ(o.peer_check, PeerCheck::gid);
  EXPECT_EQ(o.connect_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(o.rnr_wait, std::chrono::milliseconds(0));
  EXPECT_EQ(o.responder_wait, std::chrono::milliseconds(0));
  EXPECT_EQ(o.engines, 8U);
  EXPECT_EQ(o.spin, std::chrono::microseconds(7));
  EXPECT_EQ(o.takeover, std::chrono::microseconds(250));
  EXPECT_EQ(o.congestion, Congestion::bbr);
  EXPECT_EQ(o.coalesce, std::chrono::microseconds(20));
  EXPECT_EQ(o.rc, Rc::udp);
  EXPECT_FALSE(o.ecn);
  EXPECT_EQ(o.fixed_rate, 0.3);
  EXPECT_EQ(o.uc, UcBringUp::none);
  EXPECT_EQ(o.uc_port, 4348);
  EXPECT_TRUE(o.datagram_crc);
  EXPECT_EQ(o.ud, Ud::reliable);
  EXPECT_TRUE(o.ud_big);
  EXPECT_EQ(o.rate, 2.5);
  EXPECT_FALSE(o.counters);
  EXPECT_TRUE(o.no_hook);
  EXPECT_EQ(o.trace, "/tmp/t-%p.pcapng");
  EXPECT_EQ(o.trace_snap, 64U);
  EXPECT_EQ(o.trace_size, 2U);
  EXPECT_EQ(o.fault, FaultSpec{.loss = 0.5});
  EXPECT_EQ(o.fault_log, "/tmp/lost-%p");
  EXPECT_EQ(o.log, log::Level::debug);
  for (const OptionInfo& info : table()) {
    EXPECT_NE(value_of(o, info), info.default_text) << info.name << " was not covered by this test";
  }
}

TEST(Parse, WrongValue_KeepsTheDefaultAndNamesWhatIsAccepted) {
  std::vector<std::string> complaints;
  const Options o = parse_from(
      {{"WEFT_SPIN", "fast"}, {"WEFT_IDENTITY", "roce"}, {"WEFT_CRC", "off"}}, &complaints);
  EXPECT_EQ(o.spin, Options{}.spin);
  EXPECT_EQ(o.identity, Options{}.identity);
  EXPECT_FALSE(o.crc) << "a wrong neighbour must not keep a right value out";
  EXPECT_THAT(
      complaints,
      ElementsAre(
          "WEFT_IDENTITY=roce is not accepted: identity is ib, iwarp or ib-lid; the default "
          "ib is kept",
          "WEFT_SPIN=fast is not accepted: spin is 0..100000 us; the default 50 is kept"));
}

TEST(Parse, WrongFault_SaysWhatIsWrongWithIt) {
  std::vector<std::string> complaints;
  EXPECT_EQ(parse_from({{"WEFT_FAULT", "loss:2"}}, &complaints).fault, FaultSpec{});
  EXPECT_THAT(complaints,
              ElementsAre(HasSubstr("WEFT_FAULT=loss:2 is not accepted: '2' is no value for fault "
                                    "'loss', which takes a share from 0 to 1")));
}

TEST(Parse, NumberOutsideItsRangeOrWithATail_IsRefused) {
  for (const char* wrong : {"9", "-1", "1x", " 1", "1.5", "0x", "18446744073709551617", "+1"}) {
    std::vector<std::string> complaints;
    EXPECT_EQ(parse_from({{"WEFT_ENGINES", wrong}}, &complaints).engines, 0U) << wrong;
    EXPECT_EQ(complaints.size(), 1U) << wrong;
  }
}

TEST(Parse, ANumberThatNeedNotBeWhole) {
  EXPECT_EQ(parse_from({{"WEFT_RATE", "0.76"}}, nullptr).rate, 0.76);
  EXPECT_EQ(parse_from({{"WEFT_RATE", "1e2"}}, nullptr).rate, 100);
  for (const char* bad : {"-1", "1001", "nan", "inf", "1Gb", "", " 1", "1,5"}) {
    EXPECT_EQ(parse_from({{"WEFT_RATE", bad}}, nullptr).rate, 0) << bad;
  }
}

TEST(Parse, WrongRate_IsRefusedWithWhatIsAccepted) {
  std::vector<std::string> complaints;
  EXPECT_EQ(parse_from({{"WEFT_FIXED_RATE", "10G"}}, &complaints).fixed_rate, 0);
  EXPECT_THAT(complaints,
              ElementsAre("WEFT_FIXED_RATE=10G is not accepted: fixed_rate is 0..1000 Gb/s; the "
                          "default 0 is kept"));
}

TEST(Parse, EmptyValue_MeansNotSet) {
  std::vector<std::string> complaints;
  EXPECT_EQ(parse_from({{"WEFT_SPIN", ""}}, &complaints).spin, Options{}.spin);
  EXPECT_THAT(complaints, IsEmpty());
}

TEST(Table, EnvironmentNameIsWeftAndCapitals) {
  EXPECT_EQ(info_of("big_fpdu").env, "WEFT_BIG_FPDU");
  EXPECT_EQ(info_of("p2p").env, "WEFT_P2P");
}

TEST(Table, EveryLineIsComplete) {
  std::set<std::string_view> names;
  for (const OptionInfo& info : table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " is there twice";
    EXPECT_FALSE(info.accepted.empty()) << info.name;
    ASSERT_FALSE(info.sentence.empty()) << info.name;
    EXPECT_EQ(info.sentence.back(), '.') << info.name;
    Options o;
    EXPECT_TRUE(info.set(o, info.default_text)) << info.name << " does not accept its default";
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(info.sentence.front()))) << info.name;
  }
}

TEST(Table, TextOfAValue_IsReadBackAsTheSameValue) {
  Options o;
  o.identity = Identity::iwarp;
  o.congestion = Congestion::keep;
  o.connect_timeout = std::chrono::milliseconds(123);
  o.ip = "eth1";
  Environment environment;
  for (const OptionInfo& info : table()) environment[info.env] = value_of(o, info);
  const Options again = parse_from(environment);
  for (const OptionInfo& info : table())
    EXPECT_EQ(value_of(again, info), value_of(o, info)) << info.name;
}

TEST(UnknownVariables, NamesThoseThatAreNoOptions) {
  const char* const environment[] = {
      "PATH=/bin", "WEFT_SPIN=10", "WEFT_SPIM=10", "WEFT_SDP_CONFIG=x",
      "WEFT_",     "NOWEFT_X=1",   nullptr};
  EXPECT_THAT(unknown_variables(environment), ElementsAre(HasSubstr("WEFT_SPIM is not an option"),
                                                          HasSubstr("WEFT_ is not an option")));
  EXPECT_THAT(unknown_variables(nullptr), IsEmpty());
}

TEST(UnknownVariables, NameTheNearestOption) {
  const char* const environment[] = {"WEFT_SPIM=10", "WEFT_PEANUTS=1", nullptr};
  EXPECT_THAT(unknown_variables(environment),
              ElementsAre("WEFT_SPIM is not an option of weft and is ignored; did you mean "
                          "WEFT_SPIN?",
                          "WEFT_PEANUTS is not an option of weft and is ignored; `weft info "
                          "--options` lists them"));
}

// That all of them begin with WEFT_ does not make them alike.
TEST(UnknownVariables, NameNoOptionThatOnlyBeginsAsTheyDo) {
  const char* const environment[] = {"WEFT_NOPE=1", "WEFT_X=1", "WEFT_LIDS=1", nullptr};
  EXPECT_THAT(unknown_variables(environment),
              ElementsAre(HasSubstr("`weft info --options` lists them"),
                          HasSubstr("`weft info --options` lists them"),
                          HasSubstr("did you mean WEFT_LID?")));
}

TEST(Objection, IsAboutNamesAndValuesOfOptionsAlone) {
  EXPECT_EQ(objection("WEFT_CRCC", "off"),
            "WEFT_CRCC is not an option of weft; did you mean WEFT_CRC?");
  EXPECT_EQ(objection("WEFT_CRC", "of"), "WEFT_CRC=of is not accepted: crc is on, off, 1 or 0");
  EXPECT_THAT(objection("WEFT_FAULT", "los:1"), HasSubstr("no fault is called 'los:1'"));
  for (const char* good : {"on", "off", ""}) EXPECT_EQ(objection("WEFT_CRC", good), "") << good;
  for (const char* other :
       {"PATH", "WEFT_SDP_CONFIG", "WEFT_SIM_SEED", "WEFT_SIM_SEEDS", "MYWEFT_CRCC"}) {
    EXPECT_EQ(objection(other, "x"), "") << other;
  }
}

// The process's own options are read once, so each of these needs a process of its own.
TEST(ProcessOptionsDeathTest, ComplaintsAreLoggedOnceAndTheRestIsTaken) {
  EXPECT_EXIT(
      {
        setenv("WEFT_SPIN", "12", 1);
        setenv("WEFT_RNR_WAIT", "soon", 1);
        setenv("WEFT_NONSENSE", "1", 1);
        const bool taken =
            options().spin == std::chrono::microseconds(12) && &options() == &options();
        std::exit(taken ? 0 : 1);
      },
      ::testing::ExitedWithCode(0),
      AllOf(HasSubstr("warning: WEFT_RNR_WAIT=soon is not accepted: rnr_wait is 0..3600000 ms"),
            HasSubstr("warning: WEFT_NONSENSE is not an option"),
            ::testing::Not(::testing::ContainsRegex("soon.*\n.*soon"))));
}

TEST(ProcessOptionsDeathTest, LogOff_SilencesTheComplaints) {
  EXPECT_EXIT(
      {
        setenv("WEFT_LOG", "off", 1);
        setenv("WEFT_RNR_WAIT", "soon", 1);
        std::exit(options().log == log::Level::off ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), ::testing::Eq(""));
}

}  // namespace
}  // namespace weft::config
