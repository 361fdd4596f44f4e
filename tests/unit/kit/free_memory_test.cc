#include "kit/free_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace weft::kit {
namespace {

namespace fs = std::filesystem;

// A machine's folders.
class FreeMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    put("proc/meminfo", "MemTotal:  24000000 kB\nMemFree:  100 kB\nMemAvailable:    2000 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& name, const std::string& text) const {
    const fs::path file = root_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void put_group(const std::string& path, const std::string& most, const std::string& used,
                 const std::string& inactive_file) const {
    const std::string group = "sys/fs/cgroup" + path;
    put(group + "/memory.max", most + "\n");
    put(group + "/memory.current", used + "\n");
    put(group + "/memory.stat", "anon 5\ninactive_file " + inactive_file + "\nactive_file 7\n");
  }
  uint64_t now() const { return free_memory(root_.string()); }

 private:
  fs::path root_;
};

constexpr uint64_t kOfMachine = 2000 << 10;

TEST_F(FreeMemory, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(now(), kOfMachine);
}

TEST_F(FreeMemory, IsNotLimitedWhereTheKernelDoesNotSay) {
  put("proc/meminfo", "MemTotal:  24000000 kB\n");
  EXPECT_EQ(now(), UINT64_MAX);
}

TEST_F(FreeMemory, IsLimitedByTheOwnGroup) {
  put("proc/self/cgroup", "1:cpu:/elsewhere\n0::/user.slice/one\n");
  put_group("/user.slice/one", "900000", "500000", "100000");
  EXPECT_EQ(now(), 500'000U);
  put_group("/user.slice/one", "900000", "950000", "0");
  EXPECT_EQ(now(), 0U);
  put_group("/user.slice/one", "max", "500000", "0");
  EXPECT_EQ(now(), kOfMachine);
}

TEST_F(FreeMemory, IsLimitedByGroupsAboveTheOwn) {
  put("proc/self/cgroup", "0::/user.slice/one\n");
  put_group("/user.slice/one", "900000", "500000", "0");
  put_group("/user.slice", "1000000", "700000", "0");
  EXPECT_EQ(now(), 300'000U);
  // That of a container is its root.
  put("proc/self/cgroup", "0::/\n");
  put_group("", "800000", "600000", "0");
  EXPECT_EQ(now(), 200'000U);
}

}  // namespace
}  // namespace weft::kit
