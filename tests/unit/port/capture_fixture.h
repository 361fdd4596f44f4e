// A folder for capture files, and a reader of them that shares nothing with their writer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/hex.h"

namespace weft::port {

class CaptureFixture : public ::testing::Test {
 protected:
  ~CaptureFixture() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // Made when it is asked for.
  const std::filesystem::path& folder() const {
    if (folder_.empty()) {
      std::string name = ::testing::TempDir() + "weft-capture-XXXXXX";
      EXPECT_NE(::mkdtemp(name.data()), nullptr);
      folder_ = name;
    }
    return folder_;
  }
  std::string path(const std::string& name) const { return folder() / name; }
  // The options of a process are read once, so what depends on them runs in an execution of its
  // own (a death test of the style "threadsafe"), which begins at the test's first line again.
  void set_trace_for_death_test(const std::string& name) const {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (::getenv("WEFT_TRACE") == nullptr) ::setenv("WEFT_TRACE", path(name).c_str(), 1);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{path(name)} << text;
  }
  std::string text(const std::string& name) const {
    std::ifstream in{path(name), std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

  // What a reader of pcapng finds.
  struct File {
    std::vector<test::Buffer> packets;
    std::vector<size_t> sizes;   // original lengths
    std::vector<int64_t> times;  // ns since 1970
    bool whole = false;          // the last block is complete
  };
  File read(const std::string& name) const {
    const test::Buffer bytes = test::from_text(text(name));
    const auto word = [&bytes](size_t at) {
      uint32_t v = 0;
      std::memcpy(&v, bytes.data() + at, sizeof v);
      return v;
    };
    File file;
    size_t at = 0;
    while (at + 12 <= bytes.size() && at + word(at + 4) <= bytes.size()) {
      const size_t length = word(at + 4);
      EXPECT_EQ(word(at + length - 4), length) << "a block's two lengths";
      constexpr uint32_t kPacket = 6;
      if (word(at) == kPacket) {
        const size_t kept = word(at + 20);
        const auto first = bytes.begin() + static_cast<ptrdiff_t>(at + 28);
        file.packets.emplace_back(first, first + static_cast<ptrdiff_t>(kept));
        file.sizes.push_back(word(at + 24));
        file.times.push_back(static_cast<int64_t>(uint64_t{word(at + 12)} << 32 | word(at + 16)));
      }
      at += length;
    }
    file.whole = at == bytes.size() && !bytes.empty();
    return file;
  }

 private:
  mutable std::filesystem::path folder_;
};

}  // namespace weft::port
