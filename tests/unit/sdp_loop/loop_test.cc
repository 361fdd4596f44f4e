#include "sdp/loop/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

namespace weft::sdp {
namespace {

constexpr std::chrono::seconds kLong{60};

// The loop's thread is never joined: what its tasks write to stays.
std::shared_ptr<std::promise<void>> promise() {
  return std::make_shared<std::promise<void>>();
}

bool is_kept(const std::future<void>& future) {
  return future.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

TEST(Rest, BeginsBehindWhatWasPostedBefore) {
  Loop* loop = Loop::start();
  ASSERT_NE(loop, nullptr);
  const auto before = promise();
  const auto behind = promise();
  const auto before_ran = before->get_future();
  const auto behind_ran = behind->get_future();
  {
    loop->post([before] { before->set_value(); });
    const Loop::Rest rest{*loop, kLong};
    EXPECT_TRUE(is_kept(before_ran));
    loop->post([behind] { behind->set_value(); });
    EXPECT_FALSE(is_kept(behind_ran));
  }
  EXPECT_EQ(behind_ran.wait_for(kLong), std::future_status::ready);
}

TEST(Rest, IsNotWaitedForWithoutEnd) {
  Loop* loop = Loop::start();
  ASSERT_NE(loop, nullptr);
  const auto over = promise();
  const auto ended = promise();
  const auto has_ended = ended->get_future();
  loop->post([over, ended] {
    over->get_future().wait();
    ended->set_value();
  });
  {
    const Loop::Rest rest{*loop, std::chrono::milliseconds{1}};
    EXPECT_FALSE(is_kept(has_ended));
  }
  over->set_value();
  EXPECT_EQ(has_ended.wait_for(kLong), std::future_status::ready);
}

}  // namespace
}  // namespace weft::sdp
