#include "stream/control.h"

#include <gtest/gtest.h>

#include "kit/failure.h"

namespace weft::stream {
namespace {

TEST(ShapeInJson, EachFormatHasItsName) {
  for (const Format format : kFormats) {
    const nlohmann::json json = Shape{.format = format};
    EXPECT_EQ(json.at("format"), name_of(format));
    EXPECT_EQ(json.get<Shape>().format, format);
  }
}

TEST(ShapeInJson, AFormatThatNobodyKnowsIsRefused) {
  for (const nlohmann::json& word :
       {nlohmann::json("lofar3"), nlohmann::json(""), nlohmann::json(1)}) {
    const nlohmann::json json = {{"format", word}};
    EXPECT_ANY_THROW((void)json.get<Shape>()) << word;
  }
}

}  // namespace
}  // namespace weft::stream
