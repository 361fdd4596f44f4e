#include "cm/stream_settings.h"

#include <gtest/gtest.h>

#include "config/options.h"

namespace weft::cm {
namespace {

TEST(StreamSettings, WhatWasAgreedAndWhatTheOptionsSay) {
  const mpa::Parameters agreed{.crc = false, .extension = true, .ird = 3, .ord = 5};
  const config::Options& o = config::options();
  for (const bool initiator : {true, false}) {
    const rdmap::StreamConfig c = stream_settings(agreed, initiator);
    EXPECT_EQ(c.initiator, initiator);
    EXPECT_FALSE(c.mpa.crc);
    EXPECT_EQ(c.mpa.ird, 3);
    EXPECT_EQ(c.mpa.ord, 5);
    EXPECT_EQ(c.rnr_wait, o.rnr_wait);
    EXPECT_EQ(c.responder_wait, o.responder_wait);
    EXPECT_EQ(c.llp_completion, o.completion == config::CompletionRule::llp);
  }
}

}  // namespace
}  // namespace weft::cm
