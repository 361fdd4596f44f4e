#include "cm/retrying_start.h"

#include <utility>

namespace weft::cm {
namespace {

using namespace std::chrono_literals;
constexpr Duration kRefusalStands = 300ms;
constexpr Duration kFirstPause = 2ms;

}  // namespace

using engine::Token;

void RetryingStart::begin(Token& token, ActiveStartPlan plan, port::Fd bound, bool asks_again) {
  plan_ = std::move(plan);
  refusals_until_ = asks_again ? token.now() + kRefusalStands : token.now();
  pause_ = kFirstPause;
  start_ = &ActiveStart::start(token, *this, plan_, std::move(bound));
}

void RetryingStart::cancel(Token& token) {
  if (start_ != nullptr) std::exchange(start_, nullptr)->cancel(token);
  token.runtime().forget(token, *this);
}

void RetryingStart::start_connected(Token& token, ActiveStart&, Started&& started) {
  start_ = nullptr;
  handler_.stream_started(token, std::move(started));
}

void RetryingStart::start_failed(Token& token, ActiveStart&, ActiveStartFailure&& failure) {
  start_ = nullptr;
  if (failure.kind == ActiveStartFailure::Kind::refused && token.now() + pause_ < refusals_until_) {
    token.runtime().set_deadline(token, *this, token.now() + pause_);
    pause_ *= 2;
    return;
  }
  handler_.stream_not_started(token, std::move(failure));
}

void RetryingStart::on_deadline(Token& token) {
  start_ = &ActiveStart::start(token, *this, plan_);
}

}  // namespace weft::cm
