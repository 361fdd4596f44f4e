#include "doctor/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::doctor {
namespace {

using ::testing::HasSubstr;

const Finding kOk{Severity::ok, "crc", "fast", ""};
const Finding kNote{Severity::note, "memory", "small", "raise it"};
const Finding kUntested{Severity::untested, "path", "unknown", "listen there"};
const Finding kProblem{Severity::problem, "sockets", "none", "allow them"};

TEST(AsText, OneLineEachAndTheRemedyBelow) {
  const std::string text = as_text({kOk, kProblem}, Scope::this_host);
  EXPECT_THAT(text, HasSubstr("ok       crc         fast\n"));
  EXPECT_THAT(text, HasSubstr("problem  sockets     none\n                     -> allow them\n"));
}

// Peers and processes have their words in it.
TEST(AsText, HasNoControlCharacters) {
  const Finding hostile{Severity::note, "path", "it says \x1b[2J\r", "kill \x1b]0;x\a"};
  const std::string text = as_text({hostile}, Scope::this_host);
  EXPECT_THAT(text, HasSubstr("it says ?[2J?\n"));
  EXPECT_THAT(text, HasSubstr("-> kill ?]0;x?\n"));
}

std::string last_line(const std::vector<Finding>& findings, Scope scope) {
  const std::string text = as_text(findings, scope);
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

TEST(AsText, SumsUp) {
  constexpr Scope kBoth = Scope::this_host_and_peer;
  EXPECT_EQ(last_line({kOk}, kBoth), "no problem found, 0 notes\n");
  EXPECT_EQ(last_line({kNote, kProblem}, kBoth), "1 problem, 1 note\n");
  EXPECT_EQ(last_line({kProblem, kProblem}, kBoth), "2 problems, 0 notes\n");
}

TEST(AsText, ClaimsNothingOfWhatWasNotTested) {
  EXPECT_EQ(last_line({kOk, kUntested}, Scope::this_host_and_peer),
            "no problem found in what was tested, 0 notes; 1 not tested\n");
  EXPECT_EQ(last_line({kUntested, kProblem}, Scope::this_host_and_peer),
            "1 problem, 0 notes; 1 not tested\n");
  EXPECT_EQ(last_line({kOk}, Scope::this_host),
            "no problem found on this host, 0 notes; the way to other hosts was not looked at "
            "(--peer)\n");
}

TEST(AsJson, HasAllFieldsAndCounts) {
  const auto json = as_json({kOk, kNote, kProblem, kUntested});
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["notes"], 1);
  EXPECT_EQ(json["untested"], 1);
  ASSERT_EQ(json["findings"].size(), 4U);
  EXPECT_EQ(json["findings"][1], (nlohmann::json{{"severity", "note"},
                                                 {"check", "memory"},
                                                 {"sentence", "small"},
                                                 {"remedy", "raise it"}}));
}

TEST(AllWell, NotesDoNotCountAndWhatNobodyKnowsDoes) {
  EXPECT_TRUE(all_well({}));
  EXPECT_TRUE(all_well({kOk, kNote}));
  EXPECT_FALSE(all_well({kOk, kProblem}));
  EXPECT_FALSE(all_well({kOk, kUntested}));
}

}  // namespace
}  // namespace weft::doctor
