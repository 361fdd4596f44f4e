#include "sim/seeds.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace weft::sim {
namespace {

// Puts WEFT_SIM_SEED back as it was.
class Environment {
 public:
  Environment() {
    if (const char* value = std::getenv("WEFT_SIM_SEED")) {
      had_ = true;
      before_ = value;
    }
    unsetenv("WEFT_SIM_SEED");
  }
  ~Environment() { had_ ? setenv("WEFT_SIM_SEED", before_.c_str(), 1) : unsetenv("WEFT_SIM_SEED"); }

 private:
  bool had_ = false;
  std::string before_;
};

TEST(Seeds, CountFromOneUnlessOneIsAskedFor) {
  const Environment environment;
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{1, 2, 3}));
  setenv("WEFT_SIM_SEED", "17", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{17}));
  setenv("WEFT_SIM_SEED", "0xfeedfacecafef00d", 1);
  EXPECT_EQ(seeds(3), (std::vector<uint64_t>{0xfeedfacecafef00d}));
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
