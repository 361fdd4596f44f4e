#include "sim/seeds.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace weft::sim {
namespace {

// Takes a variable out of the environment, and puts it back as it was.
class WithoutVariable {
 public:
  explicit WithoutVariable(const char* name) : name_(name) {
    if (const char* value = std::getenv(name)) before_ = value;
    unsetenv(name);
  }
  ~WithoutVariable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Seeds, CountFromOneUnlessOneIsAskedFor) {
  const WithoutVariable one("WEFT_SIM_SEED"), most("WEFT_SIM_SEEDS");
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{1, 2, 3}));
  setenv("WEFT_SIM_SEED", "17", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{17}));
  setenv("WEFT_SIM_SEED", "0xfeedfacecafef00d", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{0xfeedfacecafef00d}));
}

TEST(Seeds, AreNoMoreThanTheEnvironmentWants) {
  const WithoutVariable one("WEFT_SIM_SEED"), most("WEFT_SIM_SEEDS");
  setenv("WEFT_SIM_SEEDS", "2", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(seeds(1), (std::vector<uint64_t>{1}));
  setenv("WEFT_SIM_SEEDS", "none", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{1})) << "a test without a seed would assert nothing";
}

TEST(Seeds, ARangeIsMoreThanTheTestHas) {
  const WithoutVariable one("WEFT_SIM_SEED"), most("WEFT_SIM_SEEDS");
  setenv("WEFT_SIM_SEEDS", "7..10", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{7, 8, 9, 10}));
  setenv("WEFT_SIM_SEEDS", "7..2", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{7}));
}

TEST(Seeds, AFailureNamesItsSeed) {
  EXPECT_NONFATAL_FAILURE(
      {
        WEFT_SIM_TRACE(4711);
        ADD_FAILURE() << "on purpose";
      },
      "WEFT_SIM_SEED=4711");
}

}  // namespace
}  // namespace weft::sim
