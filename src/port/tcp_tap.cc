#include "port/tcp_tap.h"

#include <cerrno>

#include "base/wall_clock.h"
#include "port/capture.h"

namespace weft::port {

using trace::Direction;

std::unique_ptr<TcpTap> TcpTap::of_process() {
  Capture* capture = Capture::of_process();
  return capture != nullptr ? std::make_unique<TcpTap>(*capture) : nullptr;
}

TcpTap::~TcpTap() {
  record([](trace::TcpFlow& flow) { flow.close(now()); });
  if (flow_) forget();
}

template <class F>
void TcpTap::record(F&& f) {
  if (flow_ && !capture_.record([&] { f(*flow_); })) forget();
}

void TcpTap::forget() {
  capture_.release(flow_->local(), flow_->peer());
  flow_.reset();
}

int64_t TcpTap::now() {
  return wall_clock_ns();
}

void TcpTap::meet(int64_t at, const Address& local, const Address& peer) {
  met_ = true;
  if (!local.valid() || !peer.valid()) return;
  const trace::Endpoint here{local.gid(), local.port()};
  const trace::Endpoint there{peer.gid(), peer.port()};
  with_itself_ = here == there;
  (void)capture_.record([&] {
    if (!capture_.claim(here, there)) return;
    flow_.emplace(capture_, here, there, active_, capture_.keep());
  });
  record([at](trace::TcpFlow& flow) { flow.open(at); });
}

void TcpTap::moved(int64_t at, Direction direction, std::span<const IoVec> pieces, size_t bytes) {
  // A socket that is connected with itself receives what it has sent.
  if (with_itself_ && direction == Direction::in) return;
  record([&](trace::TcpFlow& flow) { flow.moved(at, direction, pieces, bytes); });
}

void TcpTap::failed(int64_t at, int error) {
  if (error != ECONNRESET) return;
  record([at](trace::TcpFlow& flow) { flow.reset(at, Direction::in); });
}

void TcpTap::peer_finished(int64_t at) {
  if (with_itself_) return;
  record([at](trace::TcpFlow& flow) { flow.finish(at, Direction::in); });
}

void TcpTap::finished(int64_t at) {
  record([at](trace::TcpFlow& flow) { flow.finish(at, Direction::out); });
}

void TcpTap::reset(int64_t at) {
  record([at](trace::TcpFlow& flow) { flow.reset(at, Direction::out); });
}

}  // namespace weft::port
