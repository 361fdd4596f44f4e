#include "kit/json_numbers.h"

#include <gtest/gtest.h>

#include "kit/failure.h"

namespace weft::kit {
namespace {

using nlohmann::json;

TEST(JsonNumbers, WhatDoesNotFitIsRefused) {
  const json document = {{"port", 65535}, {"beyond", 65536}, {"less", -1},
                         {"half", 0.5},   {"text", "7"},     {"nothing", nullptr}};
  EXPECT_EQ(number_at<uint16_t>(document, "port"), 65535);
  EXPECT_EQ(number_at<uint64_t>(document, "beyond"), 65536U);
  for (const char* key : {"beyond", "less", "half", "text", "nothing", "missing"}) {
    EXPECT_THROW((void)number_at<uint16_t>(document, key), Failure) << key;
  }
  EXPECT_THROW((void)number_at<uint16_t>(json::array({1}), "port"), Failure);
}

TEST(JsonNumbers, OneThatMayBeMissingIsStillInRange) {
  const json document = {{"a", 7}, {"null", nullptr}};
  EXPECT_EQ(number_or(document, "a", 7, 1), 7U);
  EXPECT_EQ(number_or(document, "b", 7, 1), 1U);
  EXPECT_THROW((void)number_or(document, "a", 6, 1), Failure);
  EXPECT_THROW((void)number_or(document, "null", 7, 1), Failure);
}

TEST(JsonNumbers, ArraysHoldNothingElse) {
  const json document = {
      {"good", {1, 2, 5}}, {"bad", {1, -2}}, {"one", 1}, {"none", json::array()}};
  EXPECT_EQ(numbers_at(document, "good", 5), (std::vector<uint64_t>{1, 2, 5}));
  EXPECT_EQ(numbers_at(document, "none", 5), std::vector<uint64_t>{});
  EXPECT_THROW((void)numbers_at(document, "good", 4), Failure);
  for (const char* key : {"bad", "one", "missing"}) {
    EXPECT_THROW((void)numbers_at(document, key, UINT64_MAX), Failure) << key;
  }
}

}  // namespace
}  // namespace weft::kit
