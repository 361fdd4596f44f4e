#include "kit/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::kit {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-program-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string file(const std::string& name, const std::string& text, mode_t mode = 0755) {
    const fs::path path = root_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path.string();
  }
  std::string in_path(const std::string& a, const std::string& b) const {
    return (root_ / a).string() + ":" + (root_ / b).string();
  }

  fs::path root_;
};

TEST_F(ProgramTest, FirstInPathWins) {
  const std::string first = file("a/tool", "one");
  file("b/tool", "two");
  const auto found = find_program("tool", in_path("a", "b"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, first);
}

TEST_F(ProgramTest, PassesOverWhatIsNotExecutable) {
  file("a/tool", "one", 0644);
  fs::create_directories(root_ / "a0" / "tool");
  const std::string second = file("b/tool", "two");
  const auto found = find_program("tool", (root_ / "a0").string() + ":" + in_path("a", "b"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, second);
}

TEST_F(ProgramTest, OnlyUnexecutable_Is126) {
  const std::string path = file("a/tool", "one", 0644);
  const auto found = find_program("tool", in_path("a", "b"));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().status, 126);
  EXPECT_THAT(found.error().sentence, HasSubstr("chmod +x " + path));
}

TEST_F(ProgramTest, Nowhere_Is127) {
  for (const std::string name : {"tool", "", "./tool"}) {
    const auto found = find_program(name, in_path("a", "b"));
    ASSERT_FALSE(found.ok()) << name;
    EXPECT_EQ(found.error().status, 127) << name;
  }
}

TEST_F(ProgramTest, EmptyElementIsTheCurrentFolder) {
  file("tool", "one");
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  for (const std::string path : {"", ":/nowhere", "/nowhere:", "/nowhere::/nowhere2"}) {
    const auto found = find_program("tool", path);
    EXPECT_TRUE(found.ok() && *found == "./tool") << path;
  }
  fs::current_path(before);
}

TEST_F(ProgramTest, ScriptLeadsToInterpreter) {
  const std::string interpreter = file("bin/interpreter",
                                       "\x7f"
                                       "ELF");
  EXPECT_EQ(follow_interpreters(file("plain", "#!" + interpreter + "\n"), ""), interpreter);
  EXPECT_EQ(follow_interpreters(file("argument", "#! \t" + interpreter + " -x -y\nmore\n"), ""),
            interpreter);
  EXPECT_EQ(follow_interpreters(file("no_end", "#!" + interpreter), ""), interpreter);
  EXPECT_EQ(follow_interpreters(interpreter, ""), interpreter);
}

TEST_F(ProgramTest, EnvLeadsToItsArgument) {
  const std::string interpreter = file("bin/interpreter",
                                       "\x7f"
                                       "ELF");
  const std::string path = (root_ / "bin").string();
  EXPECT_EQ(follow_interpreters(file("s1", "#!/usr/bin/env interpreter\n"), path), interpreter);
  for (const std::string arguments :
       {"-S A=1 interpreter -x", "-Sinterpreter -x", "--split-string=interpreter", "-i interpreter",
        "-S -u HOME interpreter", "-S --unset HOME -C /tmp interpreter", "-S -uHOME interpreter",
        "-S --chdir /tmp A=1 -- interpreter"}) {
    const std::string script = file("s2", "#!/usr/bin/env " + arguments + "\n");
    EXPECT_EQ(follow_interpreters(script, path), interpreter) << arguments;
  }
}

TEST_F(ProgramTest, ScriptsOfScripts) {
  const std::string interpreter = file("bin/interpreter",
                                       "\x7f"
                                       "ELF");
  std::string previous = interpreter;
  for (int i = 0; i < 4; ++i) previous = file("script" + std::to_string(i), "#!" + previous + "\n");
  EXPECT_EQ(follow_interpreters(previous, ""), interpreter);
}

TEST_F(ProgramTest, CircleOfScriptsEnds) {
  const std::string script = (root_ / "script").string();
  EXPECT_EQ(follow_interpreters(file("script", "#!" + script + "\n"), ""), script);
}

TEST_F(ProgramTest, StaysAtScriptWithoutInterpreter) {
  for (const std::string text :
       {"#!/no/such/interpreter\n", "#!\n", "#!", "echo\n", "", "#!/usr/bin/env\n"}) {
    const std::string script = file("script", text);
    EXPECT_EQ(follow_interpreters(script, ""), script) << text;
  }
}

TEST_F(ProgramTest, SetuidChangesRightsOfOthersOnly) {
  const std::string path = file("tool", "one", 04755);
  const unsigned owner = geteuid();
  const unsigned group = getegid();
  EXPECT_EQ(secure_execution_reason(path, owner + 1, group), "setuid");
  EXPECT_EQ(secure_execution_reason(path, owner, group), std::nullopt);
  EXPECT_EQ(secure_execution_reason(path, 0, group), std::nullopt);
}

TEST_F(ProgramTest, SetgidCountsWithGroupExecuteOnly) {
  const std::string path = file("tool", "one", 02755);
  const unsigned group = getegid();
  EXPECT_EQ(secure_execution_reason(path, geteuid(), group + 1), "setgid");
  EXPECT_EQ(secure_execution_reason(path, geteuid(), group), std::nullopt);
  const std::string locking = file("locking", "one", 02745);
  EXPECT_EQ(secure_execution_reason(locking, geteuid(), group + 1), std::nullopt);
}

TEST_F(ProgramTest, PlainProgramIsNotSecure) {
  EXPECT_EQ(secure_execution_reason(file("tool", "one"), geteuid() + 1, getegid() + 1),
            std::nullopt);
  EXPECT_EQ(secure_execution_reason("/no/such/file", 1, 1), std::nullopt);
}

}  // namespace
}  // namespace weft::kit
