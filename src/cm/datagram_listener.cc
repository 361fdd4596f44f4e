#include "cm/datagram_listener.h"

#include "base/undo.h"
#include "config/options.h"
#include "port/udp_socket.h"
#include "verbs/transport.h"

namespace weft::cm {

using engine::Token;

DatagramListener& DatagramListener::start(Token& token, DatagramListenerHandler& handler,
                                          wire::CtlService service, port::Fd udp) {
  auto owned = std::unique_ptr<DatagramListener>{new DatagramListener(handler, service)};
  DatagramListener& l = *owned;
  // Without a descriptor of its own: the driver watches the socket.
  token.runtime().add(token, std::move(owned), -1, false, false);
  Undo begun{[&] { l.stop(token); }};
  l.driver_ = &drive::DatagramDriver::start(
      token, l, std::make_unique<port::UdpSocket>(std::move(udp), drive::DatagramDriver::kBuffer));
  begun.done();
  return l;
}

std::optional<wire::RejReason> DatagramListener::requested(Token& token, drive::DatagramDriver&,
                                                           const wdp::RequestKey& key,
                                                           const wdp::Handshake& handshake) {
  if (handler_ == nullptr) return wire::RejReason::no_listener;
  if (handshake.peer().service != service_) return wire::RejReason::service_mismatch;
  const auto no = handler_->datagram_requested(
      token, {.listener = this, .key = key, .path = handshake.path()}, handshake);
  if (!no) ++waiting_;
  return no;
}

void DatagramListener::call_over(Token& token) {
  --waiting_;
  driver_->settle(token);
  end_if_unused(token);
}

void DatagramListener::take_channels(uint16_t port) {
  channels_ =
      std::make_unique<ChannelListener>(*driver_, static_cast<ChannelListenerHandler&>(*this));
  driver_->enable_channels(port, config::options().datagram_crc, true);
}

void DatagramListener::stop(Token& token) {
  handler_ = nullptr;
  if (channels_) channels_->stop(token);
  end_if_unused(token);
}

void DatagramListener::end_if_unused(Token& token) {
  if (gone_ || handler_ != nullptr || waiting_ != 0) return;
  if (channels_ && channels_->waited_for()) return;
  gone_ = true;
  if (channels_) channels_->leave(token);
  if (driver_ != nullptr) driver_->close(token);
  token.runtime().remove(token, *this);
}

bool DatagramCall::accept(Token& token, verbs::DatagramCaller& caller,
                          const wdp::Offer& offer) const {
  const bool there = caller.accept(token, listener->driver(), key, offer);
  listener->call_over(token);
  return there;
}

void DatagramCall::tell(Token& token, const wdp::Offer& offer) const {
  (void)listener->driver().wdp_socket().tell(key, offer, token.now());
  listener->call_over(token);
}

void DatagramCall::reject(Token& token, wire::RejReason reason, Bytes private_data) const {
  (void)listener->driver().wdp_socket().reject(key, reason, private_data);
  listener->call_over(token);
}

}  // namespace weft::cm
