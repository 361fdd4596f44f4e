#include "sdp/rules/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::sdp {
namespace {

using ::testing::HasSubstr;

class SentenceLogTest : public ::testing::Test {
 protected:
  SentenceLogTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-sdp-log-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~SentenceLogTest() override { std::filesystem::remove_all(folder_); }

  // As for a user.
  LogPlace place() const { return {folder_ / "own", "log"}; }
  std::string written() const {
    std::ostringstream text;
    text << std::ifstream{folder_ / "own/log"}.rdbuf();
    return text.str();
  }
  std::filesystem::path folder_;
};

TEST(LogPlace, RootsIsBelowVarLogAndAnybodyElsesIsTheirOwn) {
  EXPECT_EQ(LogPlace::of("sdp.log", 0).folder, "");
  EXPECT_EQ(LogPlace::of("sdp.log", 0).file, "/var/log/sdp.log");
  EXPECT_EQ(LogPlace::of("/srv/sdp.log", 0).file, "/srv/sdp.log");
  EXPECT_EQ(LogPlace::of("../../etc/passwd", 0).file, "/var/log/passwd");
  EXPECT_EQ(LogPlace::of("sdp.log", 1000).folder, "/tmp/sdp.log.1000");
  EXPECT_EQ(LogPlace::of("sdp.log", 1000).file, "log");
  EXPECT_EQ(LogPlace::of("/srv/sdp.log", 1000).folder, "/srv/sdp.log.1000");
}

TEST_F(SentenceLogTest, LinesAreAddedAndNobodyElseReadsThem) {
  EXPECT_TRUE(append_line(place(), "one"));
  EXPECT_TRUE(append_line(place(), "two"));
  const std::string start = "weft-sdp[" + std::to_string(getpid()) + "]: ";
  EXPECT_EQ(written(), start + "one\n" + start + "two\n");
  struct stat status {};
  ASSERT_EQ(stat((folder_ / "own/log").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(stat((folder_ / "own").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

TEST_F(SentenceLogTest, ALinkInItsPlaceIsNotFollowed) {
  std::ofstream{folder_ / "other"} << "";
  std::filesystem::create_directory(folder_ / "own");
  std::filesystem::permissions(folder_ / "own", std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(folder_ / "other", folder_ / "own/log");
  EXPECT_FALSE(append_line(place(), "one"));
  std::filesystem::remove(folder_ / "own/log");
  std::filesystem::create_hard_link(folder_ / "other", folder_ / "own/log");
  EXPECT_FALSE(append_line(place(), "one"));
  EXPECT_EQ(std::filesystem::file_size(folder_ / "other"), 0U);
}

TEST_F(SentenceLogTest, AFolderThatIsALinkIsNotFollowed) {
  std::filesystem::create_directory(folder_ / "other");
  std::filesystem::permissions(folder_ / "other", std::filesystem::perms::owner_all);
  std::filesystem::create_directory_symlink(folder_ / "other", folder_ / "own");
  EXPECT_FALSE(append_line(place(), "one"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "other"));
}

TEST_F(SentenceLogTest, WhatOthersMayReadIsNotUsed) {
  std::filesystem::create_directory(folder_ / "own");
  std::filesystem::permissions(folder_ / "own", std::filesystem::perms{0755});
  EXPECT_FALSE(append_line(place(), "one"));
  std::filesystem::permissions(folder_ / "own", std::filesystem::perms{0700});
  std::ofstream{folder_ / "own/log"} << "";
  std::filesystem::permissions(folder_ / "own/log", std::filesystem::perms{0640});
  EXPECT_FALSE(append_line(place(), "one"));
}

TEST_F(SentenceLogTest, WhatAnotherUserOwnsIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be several users";
  ASSERT_TRUE(append_line(place(), "one"));
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown((folder_ / "own/log").c_str(), kNobody, kNobody), 0);
  EXPECT_FALSE(append_line(place(), "two"));
}

TEST_F(SentenceLogTest, OnlyFromItsLevelAndErrnoStays) {
  LogSettings settings;
  settings.min_level = 7;
  const SentenceLog log{settings};
  EXPECT_TRUE(log.wants(LogLevel::error));
  EXPECT_TRUE(log.wants(LogLevel::summary));
  EXPECT_FALSE(log.wants(LogLevel::match));
  ::testing::internal::CaptureStderr();
  errno = EINTR;
  log.write(LogLevel::summary, "said");
  log.write(LogLevel::match, "not said");
  EXPECT_EQ(errno, EINTR);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "weft-sdp[" + std::to_string(getpid()) + "]: said\n");
}

TEST_F(SentenceLogTest, TheFileOfTheConfiguration) {
  const auto settings = parse("log destination file " + (folder_ / "sdp").string()).log;
  SentenceLog{settings}.write(LogLevel::error, "broken");
  const auto place = LogPlace::of(folder_ / "sdp", geteuid());
  std::ostringstream text;
  text
      << std::ifstream{place.folder.empty() ? place.file : place.folder + "/" + place.file}.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("broken\n"));
}

}  // namespace
}  // namespace weft::sdp
