#include "verbs/rc_path.h"

#include "config/options.h"
#include "drive/loop_bytes.h"
#include "drive/rd_bytes.h"
#include "shared/pull_cost.h"
#include "shared/stream.h"
#include "verbs/queue_pair.h"

namespace weft::verbs {
namespace {

using namespace std::chrono_literals;
// Bytes. What waits in the socket for the window leaves on the processor on which acknowledgements
// come in, beside what this thread sends, and they overtake each other: design/20.
constexpr int kUnsentMost = 16 * 1024;

void prepare(EstablishedStream& stream) {
  port::TcpStream& tcp = stream.tcp;
  tcp.choose_congestion_control();
  tcp.limit_unsent(kUnsentMost);
  tcp.keep_alive(stream.keepalive);
  stream.config.emss = tcp.emss();
  if (rdmap::fpdu_segment(stream.config) != 0) tcp.keep_calls_apart();
}

// What completes when it is out has to be out, and not where it was.
size_t refer_from(const rdmap::StreamConfig& config) {
  return config.llp_completion ? shared::kNeverPull : shared::pull_from(config::options());
}

// What the driver gets, and as what it knows it besides.
struct Route {
  template <class B>
  Route(std::unique_ptr<B> b) : bytes(std::move(b)) {}
  Route(std::unique_ptr<drive::RdBytes> b) : rd(b.get()) { bytes = std::move(b); }
  Route(std::unique_ptr<drive::LoopBytes> b) : loop(b.get()) { bytes = std::move(b); }

  std::unique_ptr<port::ByteStream> bytes;
  drive::RdBytes* rd = nullptr;
  drive::LoopBytes* loop = nullptr;
};

// By TCP; or, where the ends share memory, through that.
Route make_route(engine::Token& token, EstablishedStream& stream, QueuePair& qp) {
  if (stream.loop) return std::make_unique<drive::LoopBytes>(*stream.loop);
  if (stream.bytes) return std::move(stream.bytes);
  if (stream.rd) {
    const port::Address own = stream.tcp.local();
    const drive::RdRoute route{
        .from = own.gid(), .scope = own.scope(), .segment = stream.tcp.emss()};
    return std::make_unique<drive::RdBytes>(
        qp.adapter().ports().datagrams(token, stream.rd->own.qpn),
        std::make_unique<port::TcpStream>(std::move(stream.tcp)), route, *stream.rd);
  }
  if (!stream.segment) return std::make_unique<port::TcpStream>(std::move(stream.tcp));
  using Role = shared::Stream::Role;
  return std::make_unique<shared::Stream>(
      std::move(stream.tcp), std::move(*stream.segment),
      stream.config.initiator ? Role::initiator : Role::responder, refer_from(stream.config),
      stream.early, token.runtime().counters());
}

}  // namespace

drive::StreamDriver& open_rc_path(engine::Token& token, EstablishedStream& stream,
                                  const RcPathUsers& users) {
  if (stream.bytes) {
    stream.config.emss = stream.bytes->segment();
  } else if (!stream.loop) {
    prepare(stream);
  }
  stream.config.own_peer = stream.loop.has_value();
  SystemRandom random;
  const int fd = stream.tcp.fd();
  Route route = make_route(token, stream, users.qp);
  auto owned = std::make_unique<drive::StreamDriver>(
      users.owner, std::move(route.bytes), users.consumer, stream.config,
      static_cast<uint32_t>(random.next()), token.now());
  drive::StreamDriver& driver = *owned;
  token.runtime().add(token, std::move(owned), fd, true, false);
  if (route.rd != nullptr) driver.goes_by(*route.rd);
  if (route.loop != nullptr) driver.goes_round(*route.loop);
  return driver;
}

}  // namespace weft::verbs
