#include "bench/channel.h"

#include <gtest/gtest.h>

#include <string>

#include "kit/failure.h"

namespace weft::bench {
namespace {

TEST(Channel, KeepsDocumentsApartAndInOrder) {
  const auto [one, other] = make_channel();
  one.send({{"a", 1}});
  one.send("b");
  EXPECT_EQ(other.receive(), (nlohmann::json{{"a", 1}}));
  EXPECT_EQ(other.receive(), "b");
}

TEST(Channel, CarriesLongDocuments) {
  const auto [one, other] = make_channel();
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += static_cast<char>('a' + i % 26);
  one.send(text);
  EXPECT_EQ(other.receive(), text);
}

TEST(Channel, SaysWhenTheOtherEndIsGone) {
  auto [one, other] = make_channel();
  other.close();
  EXPECT_THROW(one.send("anybody?"), kit::Failure);
  EXPECT_THROW((void)one.receive(), kit::Failure);
}

}  // namespace
}  // namespace weft::bench
