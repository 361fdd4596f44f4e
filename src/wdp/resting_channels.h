// The channels of a socket that are at rest (spec/wdp-rd 2.5), until something passes or their time
// is over.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "wdp/resting_channel.h"

namespace weft::wdp {

// Engine holder only.
class RestingChannels {
 public:
  // Throws std::bad_alloc; then nothing has changed.
  void add(const ChannelEnds& ends, RestingChannel&& channel);
  bool has(const ChannelEnds& ends) const { return by_ends_.contains(ends); }
  // Which one has this token.
  std::optional<ChannelEnds> find(SessionToken token) const;
  const RestingChannel& at(const ChannelEnds& ends) const { return by_ends_.at(ends); }
  // It does not rest any more.
  RestingChannel take(const ChannelEnds& ends);
  size_t size() const { return by_ends_.size(); }
  // One that something has passed by since then, if there is any.
  std::optional<ChannelEnds> active_since(Time then) const;

  // When to look for those whose time is over.
  Time deadline() const { return look_at_; }
  // One whose time is over; the caller takes it. None: the next look is put off.
  std::optional<ChannelEnds> over(Time now);

 private:
  using ByEnds = std::map<ChannelEnds, RestingChannel>;

  ByEnds by_ends_;
  std::unordered_map<SessionToken, ByEnds::iterator> by_token_;
  Time look_at_ = Time::never();
  // A look that has found some that are over: how far it has come, and when the first of those that
  // it has passed is over.
  std::optional<ChannelEnds> looked_at_;
  Time next_over_ = Time::never();
};

}  // namespace weft::wdp
