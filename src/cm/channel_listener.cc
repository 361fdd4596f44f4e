#include "cm/channel_listener.h"

#include <algorithm>
#include <utility>

namespace weft::cm {

using engine::Token;

namespace {

// As a queue of TCP: those that do not fit hear nothing, and ask by TCP.
constexpr size_t kMostInCrowd = 4096;
// Until those whose peers' first words have come are forgotten.
constexpr Duration kLooksEach = std::chrono::milliseconds{100};

}  // namespace

ChannelListener::ChannelListener(drive::DatagramDriver& driver, ChannelListenerHandler& handler)
    : DatagramSender(false),
      driver_(driver),
      handler_(handler),
      client_(driver.wdp_socket().channels().add(static_cast<wdp::RdClient&>(*this))) {}

void ChannelListener::start_came(Token& token, const wdp::RdStart& start) {
  if (start.word == wire::RdStreamWord::cancel) return taken_back(token, start);
  if (!stopped_ && (!crowd_.empty() || handler_.crowded())) {
    if (crowd_.empty()) {
      stats::count(token.runtime().counters().accept_paused, stats::AcceptPause::backlog);
    }
    if (crowd_.size() < kMostInCrowd) crowd_.push_back(start);
    return;
  }
  take(token, start);
}

void ChannelListener::take(Token& token, const wdp::RdStart& start) {
  const auto came = ChannelRequest::start(token, *this, driver_, start);
  if (came.request == nullptr) return;
  ChannelRequest& request = *came.request;
  // Another index is that of a queue pair that has had this port.
  if (stopped_ || start.index != wdp::kListenerIndex) return request.reject(token, {});
  const auto ask = [&] {
    waiting_.push_back(&request);
    request.is_kept_by(*this);
    handler_.channel_requested(token, request, came.frame);
  };
  token.runtime().guard(token, ask, [&] {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::no_memory);
    request.reject(token, {});
  });
}

void ChannelListener::resume(Token& token) {
  while (!crowd_.empty() && !handler_.crowded()) {
    const wdp::RdStart start = std::move(crowd_.front());
    crowd_.pop_front();
    take(token, start);
  }
  driver_.settle(token);
}

void ChannelListener::stop(Token& token) {
  stopped_ = true;
  for (const wdp::RdStart& start : std::exchange(crowd_, {})) take(token, start);
  driver_.settle(token);
}

void ChannelListener::leave(Token& token) {
  for (Accepted& a : accepted_) a.given_up.reset();
  forget_those_that_came();
  driver_.wdp_socket().channels().remove(client_);
  driver_.remove(token, *this);
  token.runtime().forget(token, *this);
}

void ChannelListener::taken_back(Token& token, const wdp::RdStart& start) {
  std::erase_if(crowd_, [&](const wdp::RdStart& s) {
    return s.channel == start.channel && s.offer == start.offer;
  });
  for (const Accepted& a : accepted_) {
    if (a.channel == start.channel && a.peer == start.offer) a.given_up->store(true);
  }
  const auto it = std::find_if(waiting_.begin(), waiting_.end(),
                               [&](const ChannelRequest* r) { return r->is_cancelled_by(start); });
  if (it != waiting_.end()) (*it)->gone(token);
}

// --- requests that are kept

void ChannelListener::request_accepted(Token& token, const ChannelRequest& request,
                                       drive::GivenUp given_up) {
  if (accepted_.empty()) token.runtime().set_deadline(token, *this, token.now() + kLooksEach);
  accepted_.push_back(
      {.channel = request.by(), .peer = request.peer(), .given_up = std::move(given_up)});
  if (wdp::RdChannel* const by = driver_.wdp_socket().channels().find(request.by())) by->enter();
}

void ChannelListener::forget_those_that_came() {
  std::erase_if(accepted_, [&](const Accepted& a) {
    if (a.given_up.use_count() > 1) return false;
    if (wdp::RdChannel* const by = driver_.wdp_socket().channels().find(a.channel)) by->leave();
    return true;
  });
}

void ChannelListener::on_deadline(Token& token) {
  forget_those_that_came();
  driver_.settle(token);
  token.runtime().set_deadline(token, *this,
                               accepted_.empty() ? Time::never() : token.now() + kLooksEach);
}

void ChannelListener::request_over(Token& token, ChannelRequest& request) {
  std::erase(waiting_, &request);
  handler_.channel_request_over(token);
}

// Inside a call into the channel.
void ChannelListener::channel_ended(const wdp::RdChannel& channel) {
  for (const Accepted& a : accepted_) {
    if (a.channel == channel.token()) a.given_up->store(true);
  }
  const bool concerned = std::any_of(waiting_.begin(), waiting_.end(),
                                     [&](const auto* r) { return r->by() == channel.token(); });
  if (concerned) driver_.schedule_settling(*this);
}

void ChannelListener::settled(Token& token) {
  const auto next = [&] {
    return std::find_if(waiting_.begin(), waiting_.end(),
                        [](const ChannelRequest* r) { return r->channel_has_ended(); });
  };
  for (auto it = next(); it != waiting_.end(); it = next()) (*it)->gone(token);
}

}  // namespace weft::cm
