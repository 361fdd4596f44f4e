#include "port/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/as_user.h"
#include "tests/unit/port/capture_fixture.h"

namespace weft::port {
namespace {

// CaptureFixture is a folder that goes with the test.
class OwnFile : public CaptureFixture {
 protected:
  std::string text(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void make(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  int refusal(const std::string& name) const {
    const auto file = append_to_own_file(path(name));
    return file.ok() ? 0 : file.error().code;
  }
};

TEST_F(OwnFile, IsMadeForItsOwnerAlone) {
  const auto file = append_to_own_file(path("new"));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  struct stat s {};
  ASSERT_EQ(::fstat(file->get(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600U);
}

TEST_F(OwnFile, IsWrittenBehindWhatItHas) {
  make("log", "before,");
  const auto file = append_to_own_file(path("log"));
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  ASSERT_EQ(::write(file->get(), "behind", 6), 6);
  EXPECT_EQ(text("log"), "before,behind");
}

TEST_F(OwnFile, LinksAreNotFollowed) {
  make("victim", "mine");
  std::filesystem::create_symlink(path("victim"), path("link"));
  std::filesystem::create_symlink(path("nothing"), path("dangling"));
  EXPECT_EQ(refusal("link"), ELOOP);
  EXPECT_EQ(refusal("dangling"), ELOOP);
  EXPECT_FALSE(std::filesystem::exists(path("nothing")));
  std::filesystem::create_hard_link(path("victim"), path("hard"));
  EXPECT_EQ(refusal("hard"), EPERM);
  EXPECT_EQ(text("victim"), "mine");
}

TEST_F(OwnFile, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal("fifo"), ENXIO) << "nobody reads it";
  const Fd reader{::open(path("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  EXPECT_EQ(refusal("fifo"), EPERM);
  EXPECT_EQ(append_to_own_file("/dev/null").error().code, EPERM);
  EXPECT_EQ(append_to_own_file(folder()).error().code, EISDIR);
}

TEST_F(OwnFile, ThatOfAnotherUserIsRefused) {
  if (!test::many_users()) GTEST_SKIP() << "only root can be several users";
  ASSERT_EQ(::chmod(folder().c_str(), 01777), 0);
  test::as_user(test::kSomeUser, [&] { make("theirs", "bait"); });
  ASSERT_EQ(text("theirs"), "bait");
  const int refused = refusal("theirs");
  // A kernel with fs.protected_regular refuses it by itself.
  EXPECT_TRUE(refused == EPERM || refused == EACCES) << refused;
  EXPECT_EQ(text("theirs"), "bait");
}

}  // namespace
}  // namespace weft::port
