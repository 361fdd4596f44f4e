#include "weft/trace_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TraceFilesTest : public ::testing::Test {
 protected:
  TraceFilesTest() {
    std::string name = ::testing::TempDir() + "weft-traces-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder = fs::canonical(name);
  }
  ~TraceFilesTest() override { fs::remove_all(folder); }
  void make(const std::string& name) const { std::ofstream{folder / name} << name; }
  // The names without the folder.
  std::vector<std::string> present(const std::string& pattern) const {
    std::vector<std::string> names;
    const auto files = TraceFiles::named(folder / pattern);
    EXPECT_TRUE(files.ok());
    for (const std::string& path : files->present()) names.push_back(fs::path(path).filename());
    return names;
  }
  fs::path folder;
};

TEST_F(TraceFilesTest, ProcessesAndTakenNames) {
  for (const char* name : {"t-1.pcapng", "t-22.pcapng", "t-22-2.pcapng", "t-.pcapng", "t-x.pcapng",
                           "at-1.pcapng", "t-1.pcapng.gz", "t-1xpcapng"}) {
    make(name);
  }
  EXPECT_THAT(present("t-%p.pcapng"), ElementsAre("t-1.pcapng", "t-22-2.pcapng", "t-22.pcapng"));
}

TEST_F(TraceFilesTest, WithoutAProcessAndWithoutAnExtension) {
  for (const char* name :
       {"a.b.c", "a.b-2.c", "a-2.b.c", "trace", "trace-7", "trace-x", ".x", ".x-2"})
    make(name);
  EXPECT_THAT(present("a.b.c"), ElementsAre("a.b-2.c", "a.b.c"));
  EXPECT_THAT(present("trace"), ElementsAre("trace", "trace-7"));
  EXPECT_THAT(present(".x"), ElementsAre(".x", ".x-2"));
}

TEST_F(TraceFilesTest, CharactersOfPatternsStandForThemselves) {
  make("a+(b).x");
  make("aab.x");
  EXPECT_THAT(present("a+(b).x"), ElementsAre("a+(b).x"));
}

TEST_F(TraceFilesTest, ARelativeNameIsMadeAbsolute) {
  const auto files = TraceFiles::named("t.pcapng");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->pattern(), (fs::current_path() / "t.pcapng").string());
}

TEST_F(TraceFilesTest, PlacesThatCannotBe) {
  EXPECT_THAT(TraceFiles::named(folder / "no" / "t").error(),
              HasSubstr("no file can be made there"));
  EXPECT_THAT(TraceFiles::named(folder).error(), HasSubstr("is a folder"));
  EXPECT_THAT(TraceFiles::named(folder / "").error(), HasSubstr("is a folder"));
  EXPECT_THAT(TraceFiles::named(folder / "%p" / "t").error(), HasSubstr("belongs into the file's"));
}

}  // namespace
}  // namespace weft::tools
