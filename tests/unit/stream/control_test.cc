#include "stream/control.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

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

std::string refusal_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const kit::Failure& failed) {
    return failed.what();
  }
  return "taken";
}

TEST(ShapeInJson, EachByteOrderHasItsWord) {
  for (const ByteOrder order : {ByteOrder::big, ByteOrder::little}) {
    const nlohmann::json json = Shape{.number = {.at = 3, .bytes = 2, .order = order}};
    EXPECT_EQ(json.get<Shape>().number.order, order);
  }
}

TEST(ShapeInJson, AByteOrderThatIsNotKnownIsRefused) {
  nlohmann::json json = Shape{.number = {.at = 3, .bytes = 2}};
  for (const nlohmann::json& word : {nlohmann::json("me"), nlohmann::json(""), nlohmann::json(1)}) {
    json["number"]["order"] = word;
    EXPECT_EQ(refusal_of([&] { (void)json.get<Shape>(); }),
              "'order' is " + word.dump() +
                  ", and the known words are be, le. Run the same version of weft on both sides");
  }
}

TEST(TransportInJson, EachHasItsWord) {
  for (const Transport t : {Transport::tcp, Transport::udp, Transport::rc, Transport::uc}) {
    EXPECT_EQ(nlohmann::json(t).get<Transport>(), t);
  }
}

TEST(TransportInJson, AWordThatIsNotKnownIsRefused) {
  EXPECT_EQ(refusal_of([] { (void)nlohmann::json("ud").get<Transport>(); }),
            "'transport' is \"ud\", and the known words are tcp, udp, rc, uc. Run the same version "
            "of weft on both sides");
}

}  // namespace
}  // namespace weft::stream
