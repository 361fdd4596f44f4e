#include "sdp/rules/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/sdp_rules/endpoints.h"

namespace weft::sdp {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "weft-sdp-rules-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    unset();
  }
  ~LoadTest() override {
    std::filesystem::remove_all(folder_);
    unset();
  }

  std::string file(const std::string& text) {
    std::ofstream{folder_ / "rules"} << text;
    return folder_ / "rules";
  }
  std::filesystem::path folder_;

 private:
  static void unset() {
    for (const char* const name : {"LIBSDP_CONFIG_FILE", "SIMPLE_LIBSDP", "ALWAYS_USE_SDP"})
      unsetenv(name);
  }
};

Decision decision(const LoadedRules& loaded) {
  return loaded.configuration.rules.decide(SocketRole::client, "prog", at("192.0.2.1", 80));
}

TEST_F(LoadTest, TheFileThatTheEnvironmentNames) {
  setenv("LIBSDP_CONFIG_FILE", file("\nuse tcp client * *:*").c_str(), 1);
  const auto loaded = load_rules(RulesEnvironment::of_process());
  EXPECT_THAT(loaded.configuration.complaints, SizeIs(0));
  EXPECT_EQ(decision(loaded), (Decision{Use::tcp, 2}));
  EXPECT_EQ(loaded.file, folder_ / "rules");
}

TEST_F(LoadTest, SdpAlwaysReadsNoFile) {
  for (const char* const name : {"SIMPLE_LIBSDP", "ALWAYS_USE_SDP"}) {
    setenv("LIBSDP_CONFIG_FILE", file("use tcp client * *:*").c_str(), 1);
    setenv(name, "", 1);
    const auto loaded = load_rules(RulesEnvironment::of_process());
    EXPECT_EQ(decision(loaded), (Decision{Use::sdp, 0})) << name;
    EXPECT_EQ(loaded.file, "") << name;
    unsetenv(name);
  }
}

TEST_F(LoadTest, WithoutTheVariableItIsInEtc) {
  const auto environment = RulesEnvironment::of_process();
  EXPECT_EQ(environment.file, "/etc/libsdp.conf");
  EXPECT_FALSE(environment.always_sdp);
}

TEST_F(LoadTest, AFileThatNobodyNamedNeedNotBeThere) {
  const auto loaded =
      load_rules({.file = folder_ / "none", .file_is_named = false, .always_sdp = false});
  EXPECT_THAT(loaded.configuration.complaints, SizeIs(0));
  EXPECT_EQ(decision(loaded), (Decision{Use::both, 0}));
}

TEST_F(LoadTest, ANamedFileThatIsNotThereIsToldAndAllIsBoth) {
  const auto loaded =
      load_rules({.file = folder_ / "none", .file_is_named = true, .always_sdp = false});
  ASSERT_THAT(loaded.configuration.complaints, SizeIs(1));
  EXPECT_THAT(sentence(loaded.file, loaded.configuration.complaints[0]),
              HasSubstr("none: cannot be opened: No such file or directory"));
  EXPECT_EQ(decision(loaded), (Decision{Use::both, 0}));
}

// A pipe that nobody writes to would stop the program.
TEST_F(LoadTest, WhatIsNoFileIsRefusedAtOnce) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& name : {pipe, folder_.string()}) {
    const auto loaded = load_rules({.file = name, .file_is_named = true, .always_sdp = false});
    ASSERT_THAT(loaded.configuration.complaints, SizeIs(1)) << name;
    EXPECT_THAT(loaded.configuration.complaints[0].text, HasSubstr("is no file of rules")) << name;
  }
}

TEST_F(LoadTest, AHugeFileIsRefused) {
  const auto loaded = load_rules({.file = file(std::string(size_t{2} << 20, '\n')),
                                  .file_is_named = true,
                                  .always_sdp = false});
  ASSERT_THAT(loaded.configuration.complaints, SizeIs(1));
  EXPECT_THAT(loaded.configuration.complaints[0].text, HasSubstr("more than 1 MiB"));
}

TEST(Sentence, NamesFileAndLine) {
  EXPECT_EQ(sentence("/etc/libsdp.conf", {7, "wrong"}), "/etc/libsdp.conf:7: wrong");
  EXPECT_EQ(sentence("/etc/libsdp.conf", {0, "wrong"}), "/etc/libsdp.conf: wrong");
}

}  // namespace
}  // namespace weft::sdp
