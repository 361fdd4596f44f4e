// What handlers share on an engine.
#include "engine/local_data.h"

#include <gtest/gtest.h>

namespace weft::engine {
namespace {

struct Counted {
  static inline int alive = 0;
  Counted() { ++alive; }
  ~Counted() { --alive; }
  int value = 0;
};
struct Other {
  int value = 7;
};

TEST(LocalData, HasOneObjectOfEachType) {
  LocalData data;
  data.get<Counted>().value = 3;
  EXPECT_EQ(data.get<Other>().value, 7) << "a type of its own, though it looks the same";
  data.get<Other>().value = 8;
  EXPECT_EQ(data.get<Counted>().value, 3);
  EXPECT_EQ(data.get<Other>().value, 8);
  EXPECT_EQ(Counted::alive, 1);
}

TEST(LocalData, GoesWithItsEngine) {
  {
    LocalData first;
    LocalData second;
    first.get<Counted>().value = 1;
    EXPECT_EQ(second.get<Counted>().value, 0) << "each engine has its own";
    EXPECT_EQ(Counted::alive, 2);
  }
  EXPECT_EQ(Counted::alive, 0);
}

}  // namespace
}  // namespace weft::engine
