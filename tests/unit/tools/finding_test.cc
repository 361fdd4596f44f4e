#include "weft/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

const Finding kOk{Severity::ok, "crc", "fast", ""};
const Finding kNote{Severity::note, "memory", "small", "raise it"};
const Finding kProblem{Severity::problem, "sockets", "none", "allow them"};

TEST(AsText, OneLineEachAndTheRemedyBelow) {
  const std::string text = as_text({kOk, kProblem});
  EXPECT_THAT(text, HasSubstr("ok       crc         fast\n"));
  EXPECT_THAT(text, HasSubstr("problem  sockets     none\n                     -> allow them\n"));
}

TEST(AsText, SumsUp) {
  EXPECT_THAT(as_text({kOk}), EndsWith("\nno problem found, 0 notes\n"));
  EXPECT_THAT(as_text({kNote, kProblem}), EndsWith("\n1 problem, 1 note\n"));
  EXPECT_THAT(as_text({kProblem, kProblem}), EndsWith("\n2 problems, 0 notes\n"));
}

TEST(AsJson, HasAllFieldsAndCounts) {
  const auto json = as_json({kOk, kNote, kProblem});
  EXPECT_EQ(json["problems"], 1);
  EXPECT_EQ(json["notes"], 1);
  ASSERT_EQ(json["findings"].size(), 3U);
  EXPECT_EQ(json["findings"][1], (nlohmann::json{{"severity", "note"},
                                                 {"check", "memory"},
                                                 {"sentence", "small"},
                                                 {"remedy", "raise it"}}));
}

TEST(HasProblem, NotesDoNotCount) {
  EXPECT_FALSE(has_problem({}));
  EXPECT_FALSE(has_problem({kOk, kNote}));
  EXPECT_TRUE(has_problem({kOk, kProblem}));
}

}  // namespace
}  // namespace weft::tools
