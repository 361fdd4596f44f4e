#include "tests/support/uc_pair.h"

#include <cstring>

#include "base/draw.h"
#include "tests/support/append.h"
#include "wdp/pieces.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;

constexpr SessionToken kTokenA{0xa1b2c3d4};
constexpr SessionToken kTokenB{0x0badcafe};
constexpr wdp::Endpoint kA{Gid::from_ipv4(0x0a000001), 50000};
constexpr wdp::Endpoint kB{Gid::from_ipv4(0x0a000002), 40000};

sim::DatagramOptions with_checksum(const UcPairOptions& o) {
  sim::DatagramOptions link = o.link;
  if (!o.crc) link.checksum = true;  // spec/wdp 2.3: without CRC, UDP's checksum is mandatory
  return link;
}

}  // namespace

wdp::UcParameters UcSide::parameters(const UcPairOptions& o, bool first) {
  // PSNs that wrap soon on one side.
  const Psn psn_a{0xfffffff0U + static_cast<uint32_t>(o.seed % 64)};
  const Psn psn_b{0x1000};
  wdp::UcParameters p{.path = {.to = first ? kB : kA},
                      .peer_token = first ? kTokenB : kTokenA,
                      .own_token = first ? kTokenA : kTokenB,
                      .own_qpn = make_qpn(first ? kA.port : kB.port, first ? 9 : 5),
                      .peer_qpn = make_qpn(first ? kB.port : kA.port, first ? 5 : 9),
                      .first_psn = first ? psn_a : psn_b,
                      .crc = o.crc,
                      .immediate = o.immediate,
                      .reads = o.reads,
                      .ird = o.ird,
                      .ord = o.ord,
                      .max_payload = o.max_payload,
                      .receive_buffer = o.receive_buffer,
                      .retry_count = o.retry_count,
                      .window = o.window,
                      .close_by = o.close_by,
                      .rtt = 60us,
                      .is_static = o.is_static};
  if (!o.is_static) p.peer_first_psn = first ? psn_b : psn_a;
  if (o.tune) o.tune(p, first);
  return p;
}

UcSide::UcSide(sim::Scheduler& scheduler, sim::DatagramEnd& end, const UcPairOptions& options,
               bool first)
    : random_(options.seed * 2 + (first ? 1 : 0)),
      consumer(options.send_capacity),
      session(consumer, parameters(options, first), random_, windows_, scheduler.now()),
      scheduler_(scheduler),
      end_(end),
      direct_(options.direct),
      stall_(options.stall),
      swap_(options.swap),
      alarm_(scheduler,
             [this] {
               session.tick(scheduler_.now());
               pump();
             }),
      room_(scheduler,
            [this] {
              blocked_ = false;
              pump();
            }),
      late_(scheduler, [this] { send_overtaken(); }) {
  end_.on_event([this] { pump(); });
  session.open();
}

void UcSide::pump() {
  while (const auto d = end_.receive()) receive(*d);
  write();
  alarm_.set(session.deadline());
}

void UcSide::receive(Bytes datagram) {
  const auto common = wire::WdpCommon::parse(datagram);
  // What demux does: token and index (spec/wdp 2.5).
  const wdp::UcParameters& own = session.parameters();
  if (!common.ok() || common->token != own.own_token ||
      (common->didx != own.own_index() && !(own.from_listener && common->didx == 0))) {
    ++foreign;
    return;
  }
  if (common->wdp_class == wire::WdpClass::ctl) {
    const auto ctl = wire::WdpCtl::parse(*common, datagram);
    if (ctl.ok()) {
      session.received(*ctl, scheduler_.now());
    } else {
      ++foreign;
    }
  } else if (!draw_chance(random_, direct_) || !receive_direct(*common, datagram)) {
    session.received(*common, datagram, scheduler_.now());
  }
}

bool UcSide::receive_direct(const wire::WdpCommon& common, Bytes datagram) {
  PieceList places;
  const Bytes front = datagram.first(std::min(datagram.size(), wire::WdpData::kLook));
  if (!session.direct(common, front, datagram.size(), places)) return false;
  EXPECT_TRUE(wdp::place(datagram.subspan(wire::WdpData::kSize), places));
  session.direct_received(scheduler_.now());
  return true;
}

void UcSide::write() {
  while (!blocked_) {
    if (train_.empty()) {
      if (!session.ready(scheduler_.now())) return;
      session.fill(train_, scheduler_.now());
      if (train_.empty()) return;
      ++trains;
      if (draw_chance(random_, stall_)) {
        blocked_ = true;
        room_.set(scheduler_.now() + draw_up_to(random_, 50us));
        return;
      }
    }
    send_train();
    train_.clear();
    session.llp_took_all(scheduler_.now());
  }
}

void UcSide::send_train() {
  std::vector<Buffer> all;
  train_.each_datagram([&](std::span<const IoVec> pieces) {
    Buffer& d = all.emplace_back();
    append(d, pieces);
  });
  if (overtaken_.empty() && draw_chance(random_, swap_)) {
    overtaken_ = std::move(all);
    late_.set(scheduler_.now() + 20us);
    return;
  }
  for (const Buffer& d : all) end_.send(d);
  send_overtaken();
}

void UcSide::send_overtaken() {
  for (const Buffer& d : overtaken_) end_.send(d);
  overtaken_.clear();
  late_.cancel();
}

UcPair::UcPair(const UcPairOptions& options)
    : link(scheduler, options.seed, with_checksum(options)),
      a(scheduler, link.a(), options, true),
      b(scheduler, link.b(), options, false) {}

void UcPair::drive(Duration limit) {
  a.pump();
  b.pump();
  const Time end = scheduler.now() + limit;
  // The first keepalive comes after 10 s, and nothing else waits so long.
  while (scheduler.next() <= end && scheduler.next() < scheduler.now() + 5s) scheduler.step();
}

}  // namespace weft::test
