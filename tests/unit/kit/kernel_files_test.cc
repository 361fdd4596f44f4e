#include "kit/kernel_files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace {

// Entries of a folder that can be read before it is gone; below 0: it stays. Of this thread.
thread_local int g_entries_left = -1;

}  // namespace

// In front of libc's, for the C++ library's iterator.
extern "C" __attribute__((visibility("default"))) dirent* readdir(DIR* folder) {
  static const auto libc = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
  if (g_entries_left == 0) {
    errno = ESRCH;
    return nullptr;
  }
  if (g_entries_left > 0) --g_entries_left;
  return libc(folder);
}

namespace weft::kit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class KernelFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(fs::path(folder_) / name) << text;
    return folder_ + "/" + name;
  }
  std::string folder_;
};

TEST_F(KernelFilesTest, Words) {
  EXPECT_THAT(*read_words(file("f", "32768\t60999\n")), ElementsAre("32768", "60999"));
  EXPECT_THAT(*read_words(file("f", "")), IsEmpty());
  EXPECT_FALSE(read_words(folder_ + "/none").has_value());
}

TEST_F(KernelFilesTest, Numbers) {
  EXPECT_THAT(*read_numbers(file("f", "4194304\n")), ElementsAre(4194304));
  EXPECT_THAT(*read_numbers(file("f", "32768\t60999\n")), ElementsAre(32768, 60999));
  EXPECT_THAT(*read_numbers(file("f", "\n")), IsEmpty());
  for (const char* text : {"4 MiB", "x", "-1", "4x", "99999999999999999999"}) {
    EXPECT_FALSE(read_numbers(file("f", text)).has_value()) << text;
  }
  EXPECT_FALSE(read_numbers(folder_ + "/none").has_value());
}

TEST_F(KernelFilesTest, Names) {
  EXPECT_THAT(names_in(folder_), IsEmpty());
  file("siw1", "");
  file("mlx5_0", "");
  EXPECT_THAT(names_in(folder_), ElementsAre("mlx5_0", "siw1"));
  EXPECT_THAT(names_in(folder_ + "/none"), IsEmpty());
}

// As that of a process that ends while it is looked at.
TEST_F(KernelFilesTest, NamesOfAFolderThatGoesAwayMeanwhile) {
  for (const char* name : {"3", "4", "5"}) file(name, "");
  std::vector<std::string> names;
  g_entries_left = 4;  // "." and ".." are among them
  EXPECT_NO_THROW(names = names_in(folder_));
  g_entries_left = -1;
  EXPECT_THAT(names, SizeIs(::testing::Le(3U)));
  EXPECT_THAT(names, ::testing::IsSubsetOf({"3", "4", "5"}));
}

TEST_F(KernelFilesTest, LocalPorts) {
  std::set<uint16_t> ports;
  add_local_ports(file("tcp",
                       "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                       "retrnsmt   uid  timeout inode\n"
                       "   0: 0100007F:8124 00000000:0000 0A 00000000:00000000 00:00000000 "
                       "00000000     0        0 1\n"
                       "  10: 020200C0:FFFE 010200C0:01BB 01 00000000:00000000 00:00000000 "
                       "00000000     0        0 2\n"),
                  ports);
  EXPECT_THAT(ports, ElementsAre(0x8124, 0xfffe));
  add_local_ports(
      file(
          "tcp6",
          "  sl  local_address                         remote_address\n"
          "   0: 00000000000000000000000000000000:1538 00000000000000000000000000000000:0000 0A\n"),
      ports);
  EXPECT_THAT(ports, ElementsAre(0x1538, 0x8124, 0xfffe));
}

TEST_F(KernelFilesTest, LocalPortsOfDamagedTable) {
  std::set<uint16_t> ports;
  add_local_ports(
      file("tcp", "headings\n\n:\n0:\n0: \n0: 00:\n0: 00:12\n0: 00:xyzw\nno colon at all\n"),
      ports);
  add_local_ports(folder_ + "/none", ports);
  EXPECT_THAT(ports, IsEmpty());
}

}  // namespace
}  // namespace weft::kit
