#include "wdp/resting_channels.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {
namespace {

// A look visits each of them once, however many are over.
constexpr Duration kBetweenLooks = 1s;

}  // namespace

void RestingChannels::add(const ChannelEnds& ends, RestingChannel&& channel) {
  const Time over = channel.active + kRestingChannel;
  const SessionToken token = channel.token;
  by_token_.reserve(by_token_.size() + 1);
  const auto [at, fresh] = by_ends_.try_emplace(ends, std::move(channel));
  try {
    by_token_.emplace(token, at);
  } catch (const std::bad_alloc&) {
    channel = std::move(at->second);
    by_ends_.erase(at);
    throw;
  }
  look_at_ = std::min(look_at_, over);
  if (looked_at_) next_over_ = std::min(next_over_, over);  // the look may have passed its place
}

std::optional<ChannelEnds> RestingChannels::find(SessionToken token) const {
  const auto it = by_token_.find(token);
  if (it == by_token_.end()) return std::nullopt;
  return it->second->first;
}

RestingChannel RestingChannels::take(const ChannelEnds& ends) {
  const auto it = by_ends_.find(ends);
  RestingChannel channel = std::move(it->second);
  by_token_.erase(channel.token);
  by_ends_.erase(it);
  return channel;
}

std::optional<ChannelEnds> RestingChannels::active_since(Time then) const {
  const auto it = std::find_if(by_ends_.begin(), by_ends_.end(),
                               [&](const auto& c) { return c.second.active >= then; });
  if (it == by_ends_.end()) return std::nullopt;
  return it->first;
}

std::optional<ChannelEnds> RestingChannels::over(Time now) {
  if (now < look_at_) return std::nullopt;
  auto it = looked_at_ ? by_ends_.upper_bound(*looked_at_) : by_ends_.begin();
  for (; it != by_ends_.end(); ++it) {
    const Time over = it->second.active + kRestingChannel;
    if (now >= over) {
      looked_at_ = it->first;
      look_at_ = now;  // the look goes on behind it
      return it->first;
    }
    next_over_ = std::min(next_over_, over);
  }
  looked_at_.reset();
  const Time next = std::exchange(next_over_, Time::never());
  look_at_ = next.is_never() ? next : std::max(next, now + kBetweenLooks);
  return std::nullopt;
}

}  // namespace weft::wdp
