// A folder that stands for /sys or /proc in a test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::measure {

class FakeTree {
 public:
  FakeTree() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-measure-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree() { std::filesystem::remove_all(root_); }

  std::string root() const { return root_.string(); }
  // As the kernel does, with a line end.
  void write(const std::string& file, const std::string& text) const {
    const auto path = root_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << text << '\n';
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ / path); }
  void make_folder(const std::string& path) const {
    std::filesystem::create_directories(root_ / path);
  }

 private:
  std::filesystem::path root_;
};

// A clock that stands where it was put.
struct FakeClock {
  double now = 100;
  auto function() {
    return [this] { return now; };
  }
};

}  // namespace weft::measure
