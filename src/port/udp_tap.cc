#include "port/udp_tap.h"

#include <algorithm>

#include "base/wall_clock.h"
#include "port/capture.h"
#include "port/cut.h"
#include "port/route.h"

namespace weft::port {

using trace::Direction;

namespace {

// Destinations whose source is remembered. A socket of UD may have thousands; routes change.
constexpr size_t kMostSources = 1024;

}  // namespace

std::unique_ptr<UdpTap> UdpTap::of_process() {
  Capture* capture = Capture::of_process();
  return capture != nullptr ? std::make_unique<UdpTap>(*capture) : nullptr;
}

int64_t UdpTap::now() {
  return wall_clock_ns();
}

uint16_t UdpTap::own_port(const UdpSocket& socket) {
  if (own_port_ == 0) own_port_ = socket.local().port();
  return own_port_;
}

// Which address the kernel takes where the socket leaves the choice to it. Unknown: the one that
// says so.
Gid UdpTap::source_towards(const Address& to) {
  if (sources_.size() >= kMostSources) sources_.clear();
  const auto [known, fresh] = sources_.try_emplace(to.gid());
  if (fresh) {
    const auto source =
        port::source_towards(Address::from_gid(to.gid(), to.port(), to.scope()), {});
    known->second = source.ok() ? source->gid() : to.gid().is_ipv4() ? Gid::from_ipv4(0) : Gid{};
  }
  return known->second;
}

void UdpTap::datagrams(const Flow& flow, std::span<const IoVec> pieces, size_t bytes,
                       size_t segment) {
  size_t at = 0;
  do {
    const size_t size = segment > 0 ? std::min(segment, bytes - at) : bytes;
    cut_.clear();
    cut(pieces, at, size, cut_);
    const trace::Headers headers = trace::udp_headers(flow.from, flow.to, size, flow.tos);
    capture_.packet({.at = flow.at,
                     .direction = flow.direction,
                     .headers = headers.bytes(),
                     .payload = cut_,
                     .kept = capture_.keep() > 0 ? std::min(capture_.keep(), size) : size,
                     .size = size});
    at += size;
  } while (at < bytes);
}

void UdpTap::sent(int64_t at, const UdpSocket& socket, const UdpSocket::Train& train,
                  const UdpSocket::Sent& sent) {
  const bool empty_one = total(train.pieces) == 0 && !sent.would_block && sent.error == 0;
  if (sent.bytes == 0 && !empty_one) return;
  (void)capture_.record([&] {
    const Gid from = train.from.is_zero() ? source_towards(*train.to) : train.from;
    const Flow flow{.at = at,
                    .direction = Direction::out,
                    .from = {from, own_port(socket)},
                    .to = {train.to->gid(), train.to->port()},
                    .tos = train.tos};
    capture_.sends_from(flow.from);
    datagrams(flow, train.pieces, sent.bytes, train.segment);
  });
}

void UdpTap::received(int64_t at, const UdpSocket& socket, const UdpSocket::Received& received,
                      Bytes buffer) {
  if (received.would_block || received.error != 0) return;
  const Flow flow{.at = at,
                  .direction = Direction::in,
                  .from = {received.from.gid(), received.from.port()},
                  .to = {received.to, own_port(socket)},
                  .tos = received.tos};
  // Both ends are here: it is in the file since it was sent.
  if (capture_.has_sent_from(flow.from)) return;
  const IoVec piece{const_cast<std::byte*>(buffer.data()), received.bytes};
  (void)capture_.record([&] { datagrams(flow, {&piece, 1}, received.bytes, received.segment); });
}

}  // namespace weft::port
