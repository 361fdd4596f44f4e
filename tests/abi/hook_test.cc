// What libraries see of weft0's files, and that nobody else sees anything
// (abi/ibverbs/file_hook.h).
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace weft::test {
namespace {

constexpr char kFile[] = "/dev/infiniband/uverbs0";
constexpr char kType[] = "/sys/class/infiniband/weft0/ports/1/gid_attrs/types/";
constexpr char kInterface[] = "/sys/class/infiniband/weft0/ports/1/gid_attrs/ndevs/";

void look_for_devices() {
  ibv_free_device_list(ibv_get_device_list(nullptr));
}

// hook_probe.cc under one of its names.
class Probe {
 public:
  explicit Probe(const char* name)
      : handle_(dlopen((std::string{WEFT_PROBES} + "/" + name).c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~Probe() { dlclose(handle_); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // 0 and the mode, or errno.
  int stat(const std::string& path, mode_t* mode = nullptr) const {
    struct stat found {};
    if (call<int(const char*, struct stat*)>("probe_stat")(path.c_str(), &found) != 0) return errno;
    if (mode != nullptr) *mode = found.st_mode;
    return 0;
  }
  int access(const std::string& path, int mode) const {
    return call<int(const char*, int)>("probe_access")(path.c_str(), mode) == 0 ? 0 : errno;
  }
  int open(const std::string& path, int flags, mode_t mode = 0) const {
    return call<int(const char*, int, mode_t)>("probe_open")(path.c_str(), flags, mode);
  }
  // What is read there, or "errno N".
  std::string read(const std::string& path) const {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return "errno " + std::to_string(errno);
    char text[100];
    const ssize_t n = ::read(fd, text, sizeof text);
    ::close(fd);
    return {text, static_cast<size_t>(n)};
  }
  std::string read_stream(const std::string& path, const char* mode) const {
    FILE* file = call<FILE*(const char*, const char*)>("probe_fopen")(path.c_str(), mode);
    if (file == nullptr) return "errno " + std::to_string(errno);
    char text[100];
    const size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    return {text, n};
  }

  // What realpath(3) gives with memory of its own, and with the caller's; they are the same. Or
  // "errno N".
  std::string resolve(const std::string& path) const {
    auto* const realpath = call<char*(const char*, char*)>("probe_realpath");
    char room[PATH_MAX] = "";
    errno = 0;
    char* const in_room = realpath(path.c_str(), room);
    const int error = errno;
    char* const own = realpath(path.c_str(), nullptr);
    EXPECT_EQ(in_room == nullptr, own == nullptr) << path;
    if (own == nullptr || in_room == nullptr) return "errno " + std::to_string(error);
    EXPECT_EQ(in_room, room);
    EXPECT_STREQ(own, room);
    free(own);
    return room;
  }

  const link_map& map() const { return *static_cast<const link_map*>(handle_); }

 private:
  template <class Function>
  Function* call(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  void* handle_;
};

class HookTest : public testing::Test {
 protected:
  void SetUp() override {
    // Not by access(2): this program uses verbs, and is shown weft's.
    if (syscall(SYS_faccessat, AT_FDCWD, kFile, F_OK) == 0)
      GTEST_SKIP() << "this host has the kernel's " << kFile;
  }
};

// Names of UCX, Open MPI, NCCL, RCCL, and PyTorch, which has NCCL in it; and one of another name
// that uses verbs. libucweft is bound call by call, libmcaweft at once, and then read-only.
class EachLibrary : public HookTest, public testing::WithParamInterface<const char*> {};

std::string name_of(const testing::TestParamInfo<const char*>& library) {
  return std::string{library.param}.substr(3, 2);
}

INSTANTIATE_TEST_SUITE_P(Hook, EachLibrary,
                         testing::Values("libucweft_test.so", "libmcaweft_test.so",
                                         "libnccl-weft_test.so", "librccl-weft_test.so",
                                         "libtorch_weft_test.so", "libasks_test.so"),
                         name_of);

TEST_P(EachLibrary, TheDeviceFileIsACharacterDevice) {
  const Probe probe{GetParam()};
  EXPECT_EQ(probe.stat(kFile), ENOENT);
  EXPECT_EQ(probe.access(kFile, R_OK | W_OK), ENOENT);
  look_for_devices();
  mode_t mode = 0;
  EXPECT_EQ(probe.stat(kFile, &mode), 0);
  EXPECT_TRUE(S_ISCHR(mode)) << std::oct << mode;
  EXPECT_EQ(probe.access(kFile, R_OK | W_OK), 0);
  const int fd = probe.open(kFile, O_RDWR | O_CLOEXEC);
  EXPECT_GE(fd, 0);
  close(fd);
}

// Slots that nobody has called through lead to the dynamic linker.
TEST_P(EachLibrary, AlsoWhereNoCallWasMadeBefore) {
  const Probe probe{GetParam()};
  look_for_devices();
  EXPECT_EQ(probe.stat(kFile), 0);
  EXPECT_EQ(probe.access(kFile, R_OK | W_OK), 0);
}

TEST_P(EachLibrary, TheTypeOfAGid) {
  const Probe probe{GetParam()};
  look_for_devices();
  const std::string folder = kType;
  EXPECT_EQ(probe.read(folder + "0"), "RoCE v2\n");
  EXPECT_EQ(probe.read(folder + "0"), "RoCE v2\n") << "once more";
  EXPECT_EQ(probe.read_stream(folder + "0", "r"), "RoCE v2\n");
  const std::string none = "errno " + std::to_string(ENOENT);
  for (const char* index : {"256", "4294967296", "-1", "", "0x0", "0/", "x"}) {
    EXPECT_EQ(probe.read(folder + index), none) << index;
  }
  EXPECT_EQ(probe.open(folder + "0", O_RDWR), -1);
  EXPECT_EQ(errno, EACCES);
  EXPECT_EQ(probe.read_stream(folder + "0", "r+"), "errno " + std::to_string(EACCES));
}

// The interfaces of all GIDs, by libibverbs.
std::vector<std::string> interfaces() {
  std::vector<std::string> names;
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  ibv_gid_entry entries[256] = {};
  const ssize_t n = ibv_query_gid_table(context, entries, 256, 0);
  for (ssize_t i = 0; i < n; ++i) {
    char name[IF_NAMESIZE] = "";
    EXPECT_NE(if_indextoname(entries[i].ndev_ifindex, name), nullptr);
    names.emplace_back(name);
  }
  ibv_close_device(context);
  return names;
}

// UCX asks for it before it calls a peer reachable.
TEST_P(EachLibrary, TheInterfaceOfAGid) {
  const Probe probe{GetParam()};
  look_for_devices();
  const std::string folder = kInterface;
  const std::vector<std::string> names = interfaces();
  ASSERT_FALSE(names.empty());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(probe.read(folder + std::to_string(i)), names[i] + "\n") << i;
  }
  EXPECT_EQ(probe.read_stream(folder + "0", "r"), names[0] + "\n");
  const std::string none = "errno " + std::to_string(ENOENT);
  EXPECT_EQ(probe.read(folder + std::to_string(names.size())), none);
  for (const char* index : {"", "x", "0/"}) EXPECT_EQ(probe.read(folder + index), none) << index;
  EXPECT_EQ(probe.open(folder + "0", O_RDWR), -1);
  EXPECT_EQ(errno, EACCES);
}

// As of any software adapter: a link to a folder among the virtual devices.
TEST_P(EachLibrary, TheFolderOfTheDevice) {
  const Probe probe{GetParam()};
  const std::string link = "/sys/class/infiniband/weft0";
  const std::string none = "errno " + std::to_string(ENOENT);
  EXPECT_EQ(probe.resolve(link), none);
  look_for_devices();
  const std::string folder = "/sys/devices/virtual/infiniband/weft0";
  for (const char* same : {"", "/", "/.", "//", "/ports/..", "/../weft0", "/ports/1/../.././"}) {
    EXPECT_EQ(probe.resolve(link + same), folder) << same;
  }
  // Mooncake takes its name for the bus's.
  EXPECT_EQ(probe.resolve(link + "/../.."), "/sys/devices/virtual");
  EXPECT_EQ(probe.resolve(link + "/../../../.."), "/sys");
  for (const char* nothing : {"/device", "/ports", "/../weft1", "0", "0/../..", "x"}) {
    EXPECT_EQ(probe.resolve(link + nothing), none) << nothing;
  }
  EXPECT_EQ(probe.resolve("/sys/class/../class"), "/sys/class");
}

TEST_P(EachLibrary, OtherFilesAreAsTheyAre) {
  const Probe probe{GetParam()};
  look_for_devices();
  for (const char* other :
       {"/dev/infiniband/uverbs1", "/dev/infiniband/uverbs00", "/dev/infiniband/",
        "dev/infiniband/uverbs0", "/dev/infiniband/uverbs", ""}) {
    EXPECT_EQ(probe.stat(other), ENOENT) << other;
    EXPECT_EQ(probe.access(other, F_OK), ENOENT) << other;
    EXPECT_EQ(probe.open(other, O_RDONLY), -1) << other;
  }
  for (const char* other : {"gids/0", "types", "ndevs", ""}) {
    EXPECT_EQ(probe.read(std::string{"/sys/class/infiniband/weft0/ports/1/gid_attrs/"} + other),
              "errno " + std::to_string(ENOENT))
        << other;
  }
  EXPECT_EQ(probe.read("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0"),
            "errno " + std::to_string(ENOENT));

  char folder[] = "/tmp/weft-hook-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string{folder} + "/file";
  const mode_t mask = umask(0);
  const int fd = probe.open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
  umask(mask);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(write(fd, "text", 4), 4);
  close(fd);
  mode_t mode = 0;
  EXPECT_EQ(probe.stat(path, &mode), 0);
  EXPECT_EQ(mode, S_IFREG | 0640U) << "the mode of open(2) went astray";
  EXPECT_EQ(probe.read(path), "text");
  EXPECT_EQ(probe.read_stream(path, "r"), "text");
  unlink(path.c_str());
  rmdir(folder);
}

TEST_P(EachLibrary, WhatWasReadOnlyIsAgain) {
  const Probe probe{GetParam()};
  look_for_devices();
  struct Found {
    uintptr_t base;
    uintptr_t begin = 0;
    uintptr_t end = 0;
  } found{.base = probe.map().l_addr};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* to) {
        auto& f = *static_cast<Found*>(to);
        for (int i = 0; object->dlpi_addr == f.base && i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& p = object->dlpi_phdr[i];
          if (p.p_type != PT_GNU_RELRO) continue;
          f.begin = object->dlpi_addr + p.p_vaddr;
          f.end = f.begin + p.p_memsz;
        }
        return 0;
      },
      &found);
  ASSERT_NE(found.begin, found.end);
  std::ifstream maps{"/proc/self/maps"};
  size_t seen = 0;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char rights[5] = "";
    ASSERT_EQ(sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights), 3);
    // The loader protects whole pages only.
    if (begin < found.begin / 4096 * 4096 || begin >= found.end / 4096 * 4096) continue;
    ++seen;
    EXPECT_STREQ(rights, "r--p") << line;
  }
  EXPECT_GT(seen, 0U);
}

TEST_F(HookTest, AProgramThatUsesVerbsSeesTheFiles) {
  look_for_devices();
  struct stat found {};
  EXPECT_EQ(stat(kFile, &found), 0);
  EXPECT_TRUE(S_ISCHR(found.st_mode));
  FILE* file = fopen((std::string{kType} + "0").c_str(), "r");
  ASSERT_NE(file, nullptr);
  char type[20] = "";
  EXPECT_EQ(fgets(type, sizeof type, file), type);
  EXPECT_STREQ(type, "RoCE v2\n");
  fclose(file);
}

TEST_F(HookTest, LibrariesThatUseNoVerbsSeeNothing) {
  const Probe probe{"libweft_test.so"};
  look_for_devices();
  EXPECT_EQ(probe.stat(kFile), ENOENT);
  EXPECT_EQ(probe.access(kFile, R_OK | W_OK), ENOENT);
  EXPECT_EQ(probe.read(std::string{kType} + "0"), "errno " + std::to_string(ENOENT));
  EXPECT_EQ(probe.resolve("/sys/class/infiniband/weft0"), "errno " + std::to_string(ENOENT));
}

TEST_F(HookTest, FromManyThreadsWhileLibrariesComeAndGo) {
  const Probe stays{"libucweft_test.so"};
  look_for_devices();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        if (t % 2 == 0) {
          const Probe comes{"libmcaweft_test.so"};
          look_for_devices();
          if (comes.stat(kFile) != 0) ++wrong;
        } else {
          look_for_devices();
        }
        if (stays.stat(kFile) != 0 || stays.access("/dev/null", R_OK) != 0) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong.load(), 0);
}

using HookDeathTest = HookTest;

TEST_F(HookDeathTest, NotWithTheOptionNoHook) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process of its own reads the option
  setenv("WEFT_NO_HOOK", "1", 1);
  EXPECT_EXIT(
      {
        const Probe probe{"libucweft_test.so"};
        look_for_devices();
        _exit(probe.stat(kFile) == ENOENT && probe.access(kFile, F_OK) == ENOENT ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  unsetenv("WEFT_NO_HOOK");
}

}  // namespace
}  // namespace weft::test
