#include "port/tcp_tap.h"

#include <cerrno>

#include "base/wall_clock.h"
#include "port/capture.h"

namespace weft::port {

using trace::Way;

std::unique_ptr<TcpTap> TcpTap::of_process() {
  Capture* capture = Capture::of_process();
  return capture != nullptr ? std::make_unique<TcpTap>(*capture) : nullptr;
}

TcpTap::~TcpTap() {
  if (!flow_) return;
  flow_->close(now());
  capture_.release(flow_->local(), flow_->peer());
}

int64_t TcpTap::now() {
  return wall_clock_ns();
}

void TcpTap::meet(int64_t at, const Address& local, const Address& peer) {
  met_ = true;
  if (!local.valid() || !peer.valid()) return;
  const trace::Endpoint here{local.gid(), local.port()};
  const trace::Endpoint there{peer.gid(), peer.port()};
  if (!capture_.claim(here, there)) return;
  with_itself_ = here == there;
  flow_.emplace(capture_, here, there, active_, capture_.keep());
  flow_->open(at);
}

void TcpTap::moved(int64_t at, Way way, std::span<const IoVec> pieces, size_t bytes) {
  // A socket that is connected with itself receives what it has sent.
  if (flow_ && !(with_itself_ && way == Way::in)) flow_->moved(at, way, pieces, bytes);
}

void TcpTap::failed(int64_t at, int error) {
  if (flow_ && error == ECONNRESET) flow_->reset(at, Way::in);
}

void TcpTap::peer_finished(int64_t at) {
  if (flow_ && !with_itself_) flow_->finish(at, Way::in);
}

void TcpTap::finished(int64_t at) {
  if (flow_) flow_->finish(at, Way::out);
}

void TcpTap::reset(int64_t at) {
  if (flow_) flow_->reset(at, Way::out);
}

}  // namespace weft::port
