#include "weft/trace_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
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

// A block of pcapng; packets have 20 bytes in front of the IP header.
std::string block(uint32_t type, const std::string& body) {
  const auto length = static_cast<uint32_t>(12 + body.size());
  std::string text(12, '\0');
  std::memcpy(text.data(), &type, 4);
  std::memcpy(text.data() + 4, &length, 4);
  text.insert(8, body);
  std::memcpy(text.data() + text.size() - 4, &length, 4);
  return text;
}
std::string ip(char version, char protocol) {
  std::string packet(20 + 60, '\0');
  packet[20] = version;
  packet[20 + (version == 0x45 ? 9 : 6)] = protocol;
  return block(6, packet);
}

TEST_F(TraceFilesTest, SeesWhatIsInACapture) {
  const auto recorded = [this](const std::string& text) {
    std::ofstream{folder / "x", std::ios::binary} << block(0x0a0d0d0a, std::string(40, 'x'))
                                                  << text;
    const Recorded r = look_into(folder / "x");
    return std::string(r.streams ? "TCP " : "") + (r.datagrams ? "UDP" : "");
  };
  EXPECT_EQ(recorded(""), "");
  EXPECT_EQ(recorded(ip(0x45, 6)), "TCP ");
  EXPECT_EQ(recorded(ip(0x45, 17)), "UDP");
  EXPECT_EQ(recorded(ip(0x60, 17) + ip(0x60, 6)), "TCP UDP");
  EXPECT_EQ(recorded(ip(0x45, 6) + ip(0x45, 6) + ip(0x45, 17)), "TCP UDP");
  // Cut short, or something else.
  EXPECT_EQ(recorded(ip(0x45, 6) + ip(0x45, 17).substr(0, 30)), "TCP ");
  EXPECT_EQ(recorded(std::string(100, '\0')), "");
  EXPECT_EQ(recorded("no capture"), "");
  const Recorded none = look_into(folder / "not-there");
  EXPECT_FALSE(none.streams || none.datagrams);
}

TEST_F(TraceFilesTest, FindsTheDissector) {
  const auto put = [this](const fs::path& name) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream{folder / name} << "x";
    return (folder / name).string();
  };
  const std::string program = folder / "build/release/bin/weft";
  EXPECT_EQ(dissector_of(program), "packaging/wireshark/wdp.lua");
  const std::string built = put("packaging/wireshark/wdp.lua");
  EXPECT_EQ(dissector_of(program), built);
  const std::string installed = put("build/release/share/weft/wireshark/wdp.lua");
  EXPECT_EQ(dissector_of(program), installed);
}

}  // namespace
}  // namespace weft::tools
