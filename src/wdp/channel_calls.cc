#include "wdp/channel_calls.h"

#include <new>

namespace weft::wdp {

using wire::RejReason;
using wire::WdpCtl;

void ChannelCalls::called(const WdpCtl& req, size_t size, const UdReception& how, Time now,
                          WdpSocketOwner& owner) {
  const Path path = back_to(how);
  RdChannel* known = channels_.find(path);
  if (const auto ends = ChannelEnds::of(path); channels_.resting().has(ends)) {
    known = wake(ends, now, owner);
  }
  const bool sure = gate_.validated(req, how.from, now);
  if (known != nullptr && known->requested_again(req, size, sure, now)) return;
  // Who has a channel and asks for another one has begun anew, or somebody speaks in its name: it
  // has to show that it is there before the channel goes.
  const size_t waiting =
      known != nullptr ? RequestGate::kMostHalfOpen : demux_.half_open() + channels_.half_open();
  const auto admission = gate_.judge(req, how.from, waiting, now);
  if (!admission.admitted) return answers_.say(admission.answer, how);
  if (known != nullptr) known->replaced(req, now);
  RdChannel* const channel = owner.channel_called();
  if (channel == nullptr) return answers_.refuse(req, RejReason::no_resources, how);
  Offer offer = channels_.offer();
  offer.token = demux_.fresh_token(random_, now);
  try {
    channel->answer(req, path, size, admission.validated, offer, now);
    enter(*channel, offer.token, path);
  } catch (const std::bad_alloc&) {
    channel->forget();
    throw;
  }
}

void ChannelCalls::connect(RdChannel& channel, const Path& path, Qpn destination, Time now) {
  Offer offer = channels_.offer();
  offer.token = demux_.fresh_token(random_, now);
  if (const auto ended = channels_.ended_when_idle(path)) {
    const auto tlv = ended->encode();
    offer.tlvs.assign(tlv.begin(), tlv.end());
  }
  try {
    channel.call(offer, path, destination, now);
    enter(channel, offer.token, path);
  } catch (const std::bad_alloc&) {
    channel.forget();
    throw;
  }
}

void ChannelCalls::wake(const ChannelEnds& ends, RdChannel& channel, Time now) {
  try {
    channels_.wake(ends, channel, now);
  } catch (const std::bad_alloc&) {
    channel.forget();
    throw;
  }
}

void ChannelCalls::resume(const ChannelEnds& ends, RdChannel& channel, Time now) {
  const bool was_short = now < channels_.resting().at(ends).active + kShortRest;
  wake(ends, channel, now);
  channel.put_off_rest(now);
  if (!was_short) channel.call_again(channels_.offer(), now);
}

RdChannel* ChannelCalls::wake(const ChannelEnds& ends, Time now, WdpSocketOwner& owner) {
  RdChannel* const channel = owner.channel_called();
  if (channel != nullptr) wake(ends, *channel, now);
  return channel;
}

void ChannelCalls::enter(RdChannel& channel, SessionToken token, const Path& path) {
  demux_.add(token, {.from = path.to, .any_index = true});
  channels_.add(channel, path);
}

}  // namespace weft::wdp
