// What this process counts from one moment on (docs/counters.md), read as `weft stat` would.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>

#include "observe/counter_reader.h"

namespace weft::test {

class Counted {
 public:
  using Kinds = std::map<std::string, uint64_t>;

  // `family`: the word before the point, such as "start_refused".
  explicit Counted(std::string family) : family_(std::move(family)), before_(now()) {}

  // The kinds that have grown, and by how much.
  Kinds grown() const {
    Kinds grown = now();
    for (const auto& [kind, n] : before_) grown[kind] -= n;
    std::erase_if(grown, [](const auto& row) { return row.second == 0; });
    return grown;
  }
  // These and no others. Whoever counts may do so a moment after the peer has its answer.
  void expect(const Kinds& wanted) const {
    for (int i = 0; i < 500 && grown() != wanted; ++i) usleep(10'000);
    EXPECT_EQ(grown(), wanted) << family_;
  }
  // This kind and no other, once or more: whoever asks again is answered again.
  void expect_some(const std::string& kind) const {
    for (int i = 0; i < 500 && grown().empty(); ++i) usleep(10'000);
    const Kinds all = grown();
    EXPECT_TRUE(all.size() == 1 && all.contains(kind)) << family_ << ": not " << kind << " alone";
  }

 private:
  Kinds now() const {
    Kinds kinds;
    const auto read = observe::read_process(0);
    EXPECT_TRUE(read.ok());
    if (!read.ok()) return kinds;
    for (size_t i = 0; i < read->device.size(); ++i) {
      const stats::Row& row = stats::table()[i];
      if (row.family == family_) kinds[row.kind] = read->device[i];
    }
    EXPECT_FALSE(kinds.empty()) << "there is no family " << family_;
    return kinds;
  }

  std::string family_;
  Kinds before_;
};

}  // namespace weft::test
