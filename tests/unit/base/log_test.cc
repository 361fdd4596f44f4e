#include "base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace weft {
namespace {

class Log : public testing::Test {
 protected:
  ~Log() override { log::set_level(log::Level::warn); }

  template <class F>
  static std::string said(F&& f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  }
  static std::string prefix(const char* level) {
    return "weft[" + std::to_string(getpid()) + "] " + level + ": ";
  }
};

TEST_F(Log, WritesALineWithLevelAndProcess) {
  EXPECT_EQ(said([] { WEFT_LOG(error, "QP %06x: %s", 0x9c4002, "no route"); }),
            prefix("error") + "QP 9c4002: no route\n");
  EXPECT_EQ(said([] { WEFT_LOG(warn, "twice"); }), prefix("warning") + "twice\n");
}

TEST_F(Log, SaysWhatTheLevelAsksForAndNoMore) {
  const auto all = [] {
    WEFT_LOG(error, "e");
    WEFT_LOG(warn, "w");
    WEFT_LOG(info, "i");
    WEFT_LOG(debug, "d");
  };
  const std::string lines[] = {prefix("error") + "e\n", prefix("warning") + "w\n",
                               prefix("info") + "i\n", prefix("debug") + "d\n"};
  std::string expected;
  const log::Level levels[] = {log::Level::off, log::Level::error, log::Level::warn,
                               log::Level::info, log::Level::debug};
  for (size_t i = 0; i < std::size(levels); ++i) {
    if (i > 0) expected += lines[i - 1];
    log::set_level(levels[i]);
    EXPECT_EQ(said(all), expected) << "level " << i;
  }
}

TEST_F(Log, DoesNotEvaluateWhatItDoesNotSay) {
  int evaluated = 0;
  log::set_level(log::Level::error);
  EXPECT_EQ(said([&] { WEFT_LOG(debug, "%d", ++evaluated); }), "");
  EXPECT_EQ(evaluated, 0);
}

TEST_F(Log, CutsALongLineButNotItsEnd) {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i % 23);
  for (size_t n = 960; n < 1060; ++n) {
    const std::string line = said([&] { WEFT_LOG(error, "%s", text.substr(0, n).c_str()); });
    const std::string whole = prefix("error") + text.substr(0, n);
    ASSERT_EQ(line, whole.substr(0, 1022) + "\n") << n;
  }
}

TEST_F(Log, LeavesErrnoAlone) {
  const int keep = dup(STDERR_FILENO);
  ASSERT_GE(keep, 0);
  close(STDERR_FILENO);
  errno = ENOTCONN;
  WEFT_LOG(error, "to nobody");
  const int after = errno;
  ASSERT_EQ(dup2(keep, STDERR_FILENO), STDERR_FILENO);
  close(keep);
  EXPECT_EQ(after, ENOTCONN);
}

}  // namespace
}  // namespace weft
