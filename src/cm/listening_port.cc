#include "cm/listening_port.h"

#include "base/log.h"
#include "base/undo.h"
#include "config/options.h"

namespace weft::cm {

using engine::Token;

namespace {

bool may_start_in_channels() {
  const config::Options& o = config::options();
  return o.rc == config::Rc::udp && o.ext != config::Extensions::off;
}

}  // namespace

// spec/wdp 4.9: A PS_TCP listener binds UDP as well, for UC; where that port is taken ... it serves
// RC alone and says so.
//
// listen(2) is the last step: a socket that listens cannot stop that and keep its number.
int ListeningPort::start(Token& token, BoundPort& port, const port::Address& at,
                         const Settings& settings) {
  at_ = at;
  Undo begun{[&] { stop(token); }};
  tcp_ = &Listener::start(token, *this, port.tcp());
  std::optional<port::SystemError> no_udp;
  if (!settings.only_rc) {
    auto udp = port.share_udp(at, settings.one_family);
    if (udp.ok()) {
      udp_ = &DatagramListener::start(token, *this, wire::CtlService::uc, std::move(*udp));
      if (may_start_in_channels()) udp_->take_channels(at.port());
    } else {
      no_udp = udp.error();
    }
  }
  const int error = port.listen(at, settings.backlog, settings.type_of_service);
  if (error != 0) return error;
  begun.done();
  port.close_udp();
  if (no_udp) {
    WEFT_LOG(warn, "rdma_listen: UDP port %u: %s; RC alone is served there, and no UC", at.port(),
             no_udp->to_string().c_str());
  }
  return 0;
}

void ListeningPort::resume(Token& token) {
  if (tcp_ != nullptr) tcp_->pause(token, false);
  if (udp_ != nullptr) udp_->resume(token);
}

void ListeningPort::stop(Token& token) {
  if (tcp_ != nullptr) std::exchange(tcp_, nullptr)->stop(token);
  if (udp_ != nullptr) std::exchange(udp_, nullptr)->stop(token);
}

void ListeningPort::connection_requested(Token& token, PassiveStart& start,
                                         const mpa::Responder::Request& request) {
  PendingRequestHandler* const child =
      handler_.connection_requested(token, {.pending = PendingRequest{start},
                                            .local = start.tcp().local(),
                                            .peer = start.tcp().peer(),
                                            .ird = request.ird,
                                            .ord = request.ord,
                                            .private_data = request.private_data});
  if (child == nullptr) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
    start.reject(token, {});
    return;
  }
  start.hand_over(*child);
  if (handler_.crowded()) {
    stats::count(token.runtime().counters().accept_paused, stats::AcceptPause::backlog);
    tcp_->pause(token, true);
  }
}

void ListeningPort::channel_requested(Token& token, ChannelRequest& request,
                                      const mpa::Responder::Request& frame) {
  const wdp::Path& path = request.path();
  PendingRequestHandler* const child =
      handler_.connection_requested(token, {.pending = PendingRequest{request},
                                            .local = address(path.from, at_.port()),
                                            .peer = address(path.to.address, request.caller()),
                                            .ird = frame.ird,
                                            .ord = frame.ord,
                                            .private_data = frame.private_data});
  if (child != nullptr) return request.hand_over(*child);
  stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
  request.reject(token, {});
}

std::optional<wire::RejReason> ListeningPort::datagram_requested(Token& token,
                                                                 const DatagramCall& call,
                                                                 const wdp::Handshake& handshake) {
  if (handler_.crowded()) return wire::RejReason::no_resources;
  const wire::WdpCtl& req = handshake.peer();
  const wdp::Path& path = handshake.path();
  const bool taken =
      handler_.connection_requested(token, {.pending = PendingRequest{call},
                                            .local = address(path.from, at_.port()),
                                            .peer = address(path.to.address, path.to.port),
                                            .ird = req.ird,
                                            .ord = req.ord,
                                            .private_data = req.private_data}) != nullptr;
  if (taken) return {};
  stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::channel_gone);
  return wire::RejReason::application;
}

}  // namespace weft::cm
