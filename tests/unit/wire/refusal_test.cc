#include "wire/refusal.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "wire/term_errors.h"

namespace weft::wire {
namespace {

bool is_counter_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string::npos;
}

TEST(Refusal, HasANameAndASentenceOfItsOwn) {
  std::set<std::string> names, sentences;
  for (size_t i = 0; i < kRefusalCount; ++i) {
    const auto why = static_cast<Refusal>(i);
    EXPECT_TRUE(is_counter_name(counter_name(why))) << counter_name(why);
    EXPECT_TRUE(names.insert(counter_name(why)).second) << counter_name(why);
    EXPECT_TRUE(sentences.insert(to_string(why)).second) << to_string(why);
  }
  EXPECT_STREQ(counter_name(static_cast<Refusal>(kRefusalCount)), "?");
  EXPECT_STREQ(to_string(static_cast<Refusal>(kRefusalCount)), "?");
}

// The reason rides on the error, and is no part of what is compared or sent.
TEST(Refusal, RidesOnAnError) {
  constexpr TermError e = term::kTaggedBounds.because(Refusal::write_bounds);
  EXPECT_EQ(e.why, Refusal::write_bounds);
  EXPECT_EQ(term::kTaggedBounds.why, Refusal::other);
  EXPECT_TRUE(e == term::kTaggedBounds);
  EXPECT_FALSE(e == term::kTaggedToWrap.because(Refusal::write_bounds));
  std::byte with[Terminate::kMaxSize];
  std::byte without[Terminate::kMaxSize];
  const size_t n = Terminate{.error = e}.encode(with);
  ASSERT_EQ(n, Terminate{.error = term::kTaggedBounds}.encode(without));
  EXPECT_TRUE(std::equal(with, with + n, without));
}

TEST(Refusal, SurvivesInAResult) {
  for (size_t i = 0; i < kRefusalCount; ++i) {
    const TermError e{Layer::llp, 0x0f, 0xff, static_cast<Refusal>(i)};
    const Result<Ok, TermError> r = fail(e);
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error(), e);
    EXPECT_EQ(r.error().why, e.why);
  }
}

TEST(TermErrors, EachHasItsPlaceAndName) {
  std::set<std::string> names;
  for (size_t i = 0; i < kTermErrorCount; ++i) {
    EXPECT_EQ(index_of(term_error(i).error), i) << term_error(i).name;
    EXPECT_TRUE(is_counter_name(term_error(i).name));
    EXPECT_TRUE(names.insert(term_error(i).name).second) << term_error(i).name;
    // "RDMAP error type 1 code 0x02": the sentence shows the same numbers.
    char numbers[16];
    std::snprintf(numbers, sizeof numbers, "(%u/%u/%02x)",
                  static_cast<unsigned>(term_error(i).error.layer), term_error(i).error.etype,
                  term_error(i).error.code);
    EXPECT_NE(std::string(term_error(i).sentence).find(numbers), std::string::npos)
        << term_error(i).sentence;
  }
  EXPECT_STREQ(term_error(kOtherTermError).name, "other");
}

TEST(TermErrors, WhatNoRfcNamesIsOther) {
  EXPECT_EQ(index_of({Layer::ddp, 3, 0}), kOtherTermError);
  EXPECT_EQ(index_of({Layer::llp, 15, 0xff}), kOtherTermError);
  EXPECT_EQ(index_of(term::kMpaCrc.because(Refusal::crc)), index_of(term::kMpaCrc));
  EXPECT_STREQ(term_error(kOtherTermError + 7).name, "other");
}

}  // namespace
}  // namespace weft::wire
