#include "cm/channel_start.h"

#include <cerrno>

#include "base/undo.h"
#include "config/options.h"

namespace weft::cm {

using engine::Token;
using stats::DialEnd;

namespace {

using namespace std::chrono_literals;
// For a channel to open: then TCP is tried, which may pass where UDP does not.
constexpr Duration kChannelWithin = 500ms;
// For the Reply: then the channel is asked whether it is the peer's yet (spec/wdp-rd 7.1).
constexpr Duration kReplyWithin = 20ms;

}  // namespace

ChannelStart::ChannelStart(ChannelStartHandler& handler, drive::DatagramDriver& driver,
                           ChannelStartPlan plan)
    : DatagramSender(config::options().ud_big),
      handler_(handler),
      driver_(driver),
      plan_(std::move(plan)),
      initiator_(plan_.offer),
      request_(initiator_.request(plan_.private_data, false, true)),
      stream_(std::make_unique<wdp::RdStream>(driver.wdp_socket().channels(),
                                              static_cast<wdp::RdStreamOwner&>(*this), plan_.own)) {
  Undo unknown{[&] { stream_->forsake(); }};
  if (plan_.caller) {
    stream_->call_listener(plan_.path, *plan_.caller);
  } else {
    stream_->call(plan_.path);
  }
  unknown.done();
}

ChannelStart::~ChannelStart() {
  if (!begun_) stream_->forsake();
}

ChannelStart& ChannelStart::start(Token& token, ChannelStartHandler& handler,
                                  drive::DatagramDriver& driver, ChannelStartPlan plan) {
  auto owned = std::unique_ptr<ChannelStart>{new ChannelStart(handler, driver, std::move(plan))};
  ChannelStart& s = *owned;
  s.until_ = token.now() + s.plan_.timeout;
  s.step_by_ = token.now() + kChannelWithin;
  token.runtime().add(token, std::move(owned), -1, false, false);
  s.begun_ = true;
  token.runtime().set_deadline(token, s, std::min(s.until_, s.step_by_));
  driver.schedule_settling(s);
  return s;
}

void ChannelStart::settled(Token& token) {
  if (state_ == State::replied) {
    judge(token);
  } else {
    proceed(token);
  }
}

void ChannelStart::proceed(Token& token) {
  if (stream_->error() != 0) {
    return no_channel(token, driver_.wdp_socket().channels().is_refused(plan_.path, token.now()));
  }
  if (state_ != State::opening) return;
  if (stream_->needs_channel()) open_channel(token);
  if (!stream_->has_channel()) return;
  wdp::RdChannel& channel = *stream_->channel();
  if (channel.state() == wdp::RdChannel::State::setting_up) return stream_->want_room();
  if (!channel.has_starts()) return no_channel(token, true);
  if (!stream_->request(plan_.to, request_)) return;
  state_ = State::awaiting_reply;
  token.runtime().counters().channel_starts.add();
  step_by_ = token.now() + kReplyWithin;
  token.runtime().set_deadline(token, *this, std::min(until_, step_by_));
}

void ChannelStart::open_channel(Token& token) {
  if (plan_.interface != 0) driver_.set_interface(plan_.path.from, plan_.interface);
  driver_.open_channel(token, plan_.path);
}

void ChannelStart::no_channel(Token& token, bool silent) {
  end(token);
  handler_.no_channel(token, *this, silent);
}

void ChannelStart::begin_stream(const wire::RdOffer& peer) {
  const size_t most = drive::RdBytes::most_between(plan_.own, peer);
  if (plan_.caller) {
    stream_->begin_there(peer, most);
  } else {
    stream_->begin(peer, *stream_->channel(), most);
  }
}

// What comes behind it is the stream's, at once.
void ChannelStart::replied(Bytes frame) {
  if (state_ == State::replied) return;
  outcome_ = initiator_.received(frame);
  state_ = State::replied;
  if (outcome_ && outcome_->rejected) stream_->refused();
  if (outcome_ && outcome_->accepted && outcome_->rd && outcome_->rd->session != 0) {
    begin_stream(*outcome_->rd);
  }
  driver_.schedule_settling(*this);
}

void ChannelStart::judge(Token& token) {
  if (stream_->begun()) {
    Started started;
    started.bytes = std::make_unique<drive::RdBytes>(driver_, std::move(stream_));
    started.parameters = outcome_->accepted->parameters;
    started.private_data = std::move(outcome_->accepted->private_data);
    end(token);
    return handler_.channel_started(token, *this, std::move(started));
  }
  if (outcome_ && outcome_->rejected) {
    return fail(token, DialEnd::rejected,
                {.kind = ActiveStartFailure::Kind::rejected,
                 .error = ECONNREFUSED,
                 .private_data = std::move(outcome_->rejected->private_data)});
  }
  fail(token, DialEnd::bad_reply, {.kind = ActiveStartFailure::Kind::protocol, .error = EPROTO});
}

void ChannelStart::on_deadline(Token& token) {
  if (state_ == State::opening) return no_channel(token, true);
  if (token.now() < until_) {
    // A queue pair that is not ready has its peer wait, too.
    if (stream_->channel() != nullptr) (void)stream_->channel()->ask_peer();
    token.runtime().set_deadline(token, *this, until_);
    driver_.settle(token);
    return;
  }
  fail(token, DialEnd::timed_out,
       {.kind = ActiveStartFailure::Kind::timed_out, .error = ETIMEDOUT});
}

void ChannelStart::on_no_memory(Token& token) {
  fail(token, DialEnd::no_memory, {.kind = ActiveStartFailure::Kind::unreachable, .error = ENOMEM});
}

void ChannelStart::cancel(Token& token) {
  end(token);
}

// A peer that was asked, and has not said no, may have a connection by now.
void ChannelStart::end(Token& token) {
  if (stream_ != nullptr) stream_->forsake();
  driver_.remove(token, *this);
  driver_.settle(token);
  token.runtime().remove(token, *this);
}

void ChannelStart::fail(Token& token, DialEnd why, ActiveStartFailure&& failure) {
  stats::count(token.runtime().counters().dial_failed, why);
  end(token);
  handler_.channel_start_failed(token, *this, std::move(failure));
}

}  // namespace weft::cm
