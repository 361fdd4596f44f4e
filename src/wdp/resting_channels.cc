#include "wdp/resting_channels.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {
namespace {

// Each look visits all of them.
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
  look_at_ = Time::never();
  for (const auto& [ends, channel] : by_ends_) {
    if (now >= channel.active + kRestingChannel) {
      look_at_ = now;  // there may be more
      return ends;
    }
    look_at_ = std::min(look_at_, channel.active + kRestingChannel);
  }
  if (!look_at_.is_never()) look_at_ = std::max(look_at_, now + kBetweenLooks);
  return std::nullopt;
}

}  // namespace weft::wdp
