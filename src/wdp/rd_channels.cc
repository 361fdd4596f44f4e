#include "wdp/rd_channels.h"

#include <algorithm>
#include <utility>

namespace weft::wdp {

using wire::WdpDrop;

Offer RdChannels::offer() const {
  return {
      .service = wire::CtlService::rd_channel,
      .own_qpn = make_qpn(setup_->own_port, wire::kPortIndex),
      .max_payload = wire::kMaxUdpPayload,
      .features = {
          .data_crc = setup_->crc, .immediate = true, .responses = true, .starts = setup_->starts}};
}

ClientId RdChannels::add(RdClient& client) {
  clients_[++last_client_] = &client;
  return last_client_;
}

RdClient* RdChannels::client(ClientId id) {
  const auto it = clients_.find(id);
  return it == clients_.end() ? nullptr : it->second;
}

void RdChannels::receives_posted(uint8_t index) {
  const auto it = waiting_.find(index);
  if (it == waiting_.end()) return;
  // Those for which it is not enough come back by waits().
  const auto channels = std::exchange(it->second, {});
  waiting_.erase(it);
  for (RdChannel* channel : channels) channel->receives_posted(index);
}

void RdChannels::flush() {
  for (const auto& [token, channel] : by_token_) channel->flush();
}

RdChannel* RdChannels::find(const Path& path) const {
  const auto it = by_peer_.find(ChannelEnds::of(path));
  return it == by_peer_.end() || !it->second->is_usable() ? nullptr : it->second;
}

RdChannel* RdChannels::find(SessionToken token) const {
  const auto it = by_token_.find(token);
  return it == by_token_.end() ? nullptr : it->second;
}

void RdChannels::add(RdChannel& channel, const Path& path) {
  by_token_[channel.token()] = &channel;
  by_peer_[ChannelEnds::of(path)] = &channel;
  refused_.erase(ChannelEnds::of(path));
}

void RdChannels::leave(const RdChannel& channel, const ChannelEnds& ends) {
  if (const auto it = by_peer_.find(ends); it != by_peer_.end() && it->second == &channel) {
    by_peer_.erase(it);
  }
  by_token_.erase(channel.token());
  // Also one whose messages do not wait any more: it has given them up.
  for (auto& [index, channels] : waiting_) std::erase(channels, &channel);
  std::erase_if(waiting_, [](const auto& w) { return w.second.empty(); });
}

void RdChannels::remove(RdChannel& channel, Time now) {
  leave(channel, ChannelEnds::of(channel.path()));
  demux_.remove(channel.token(), now);
}

bool RdChannels::rest(RdChannel& channel, Time now) {
  const auto ends = ChannelEnds::of(channel.path());
  RestingChannel as = channel.rest();
  try {
    resting_.add(ends, std::move(as));
  } catch (const std::bad_alloc&) {
    channel.wake(ends, std::move(as), now);
    channel.put_off_rest(now);
    return false;
  }
  leave(channel, ends);
  return true;
}

void RdChannels::forget_old(Time now) {
  while (const auto ends = resting_.over(now)) demux_.remove(resting_.take(*ends).token, now);
}

void RdChannels::wake(const ChannelEnds& ends, RdChannel& channel, Time now) {
  const SessionToken token = resting_.at(ends).token;
  by_token_[token] = &channel;
  try {
    by_peer_[ends] = &channel;
  } catch (const std::bad_alloc&) {
    by_token_.erase(token);
    throw;
  }
  channel.wake(ends, resting_.take(ends), now);
}

void RdChannels::refused(const Path& path, Time now) {
  std::erase_if(refused_, [&](const auto& r) { return now >= r.second; });
  if (refused_.size() < kMostRefused) refused_[ChannelEnds::of(path)] = now + kAskAgain;
}

bool RdChannels::is_refused(const Path& path, Time now) const {
  const auto it = refused_.find(ChannelEnds::of(path));
  return it != refused_.end() && now < it->second;
}

std::optional<wire::WdpEnded> RdChannels::ended_when_idle(const Path& path) const {
  for (const auto& [token, channel] : by_token_) {
    if (ChannelEnds::of(channel->path()) != ChannelEnds::of(path)) continue;
    if (const auto ended = channel->ended_when_idle()) return ended;
  }
  return std::nullopt;
}

void RdChannels::waits(RdChannel& channel, uint8_t index) {
  auto& channels = waiting_[index];
  if (std::find(channels.begin(), channels.end(), &channel) == channels.end()) {
    channels.push_back(&channel);
  }
}

// All clients, and not by index: that of a connection that is leaving may be a later one's.
void RdChannels::ended(RdChannel& channel) {
  for (const auto& [id, client] : clients_) client->channel_ended(channel);
  // Peers that come and go leave no more than so much.
  size_t left = 0;
  each([&](const RdChannel& c) { left += c.left_bytes(); });
  if (channel.left_bytes() > 0 && left > kMostLeft) channel.give_up_what_is_left();
}

// What the same peer has sent by a channel that has ended is before this one's.
bool RdChannels::waits_behind_another(const RdChannel& channel, uint8_t index) const {
  const auto it = waiting_.find(index);
  return it != waiting_.end() &&
         std::any_of(it->second.begin(), it->second.end(), [&](const RdChannel* c) {
           return c != &channel && c->left_bytes() > 0 &&
                  ChannelEnds::of(c->path()) == ChannelEnds::of(channel.path());
         });
}

size_t RdChannels::half_open() const {
  return static_cast<size_t>(std::count_if(by_token_.begin(), by_token_.end(), [](const auto& c) {
    const Handshake* h = c.second->handshake();
    return h != nullptr && h->state() == Handshake::State::rep_sent;
  }));
}

// False: it is for a queue pair of UD, whatever that makes of it.
bool RdChannels::keep_start(const RdChannel& channel, const RdArrival& arrival, Bytes payload) {
  const wire::WdpData& d = arrival.header;
  if (!setup_->starts || demux_.find(make_qpn(setup_->own_port, d.didx)).ok()) return false;
  const auto offer =
      payload.size() < wire::RdOffer::kSize ? std::nullopt : wire::RdOffer::parse(payload.data());
  if (!offer || offer->qpn != arrival.source || offer->session == 0) {
    drops_.count(WdpDrop::wrong_address);
    return true;
  }
  const auto word = static_cast<wire::RdStreamWord>(d.imm_or_read);
  const auto is_of_it = [&](const RdStart& s) {
    return s.channel == channel.token() && s.index == d.didx && s.offer == *offer;
  };
  // A side that was stopped for a while hears of those alone that still stand.
  if (word == wire::RdStreamWord::cancel && std::erase_if(starts_, is_of_it) > 0) return true;
  // A peer that takes no answers sends no end of them. Who is not heard asks again.
  if (starts_.size() >= kMostStarts) return true;
  const Bytes frame = payload.subspan(wire::RdOffer::kSize);
  starts_.push_back({.word = word,
                     .channel = channel.token(),
                     .index = d.didx,
                     .caller = static_cast<uint16_t>(d.to.value()),
                     .offer = *offer,
                     .frame = {frame.begin(), frame.end()}});
  return true;
}

std::optional<RdStart> RdChannels::take_start() {
  if (starts_.empty()) return {};  // as nearly always
  const auto next = std::find_if(starts_.begin(), starts_.end(), [this](const RdStart& s) {
    const RdChannel* const channel = find(s.channel);
    return channel == nullptr || !channel->is_usable() || channel->out().has_room(kMostOfStart);
  });
  if (next == starts_.end()) return {};
  RdStart start = std::move(*next);
  starts_.erase(next);
  return start;
}

// spec/wdp-rd 4.4: what nobody here can take is dropped, and counts as delivered, as with any UD.
bool RdChannels::take(RdChannel& channel, const RdArrival& arrival, Bytes payload) {
  const wire::WdpData& d = arrival.header;
  const auto member = members_.find(d.didx);
  if (d.is_of_rd()) {
    if (member != members_.end()) {
      member->second->take(channel, arrival, payload);
    } else {
      drops_.count(WdpDrop::no_such_qp);
      // Once for a message.
      if (d.wants_response && d.mo == MessageOffset{} && !d.is_end()) {
        channel.out().respond({.qidx = d.sidx,
                               .ridx = d.didx,
                               .code = wire::WdpResponse::Code::not_ready,
                               .msn = d.msn});
      }
    }
    return true;
  }
  if (is_start(d) && keep_start(channel, arrival, payload)) return true;
  if (RdReceiver* const receiver = receivers_[d.didx]) {
    if (const auto v = receiver->take(channel, arrival, payload); !v.ok()) drops_.count(v.error());
    return true;
  }
  const auto queue = demux_.find(make_qpn(setup_->own_port, d.didx));
  if (!queue.ok()) {
    drops_.count(queue.error());
    return true;
  }
  if (waits_behind_another(channel, d.didx)) return false;
  return (*queue)->take(arrival, payload);
}

void RdChannels::answered(RdChannel& channel, const wire::WdpResponse& response) {
  const auto member = members_.find(response.qidx);
  if (member != members_.end()) member->second->answered(channel, response);
}

}  // namespace weft::wdp
