// What the tests of wdp::ReadRequester share: a session that reads, and a peer that answers
// whatever the test likes.
#pragma once

#include <set>

#include "tests/unit/wdp/uc_receive_fixture.h"
#include "wdp/read_requester.h"

namespace weft::wdp {

using work::Operation;
using work::Status;

struct ReadRequesterTest : UcReceiveTest {
  ReadRequesterTest() { start({.max_payload = 448, .rtt = 1ms}); }  // STRIDE 400

  void start(const UcParameters& p) {
    configure(p);
    sink = Buffer(40'000);
    source = pattern_bytes(sink.size(), 8);
    local = test::segment(host->host, sink);
    ids = 0;
    msn = 0;
  }
  void post(uint32_t length, uint32_t at = 0, bool fence = false) {
    host->host.post({.wr_id = ++ids,
                     .operation = Operation::read,
                     .signaled = true,
                     .fence = fence,
                     .remote_stag = Stag{0x77},
                     .remote_to = TaggedOffset{5000}},
                    {{local.address + at, length, local.lkey}});
  }
  struct Request {
    WdpData header;
    wire::WdpReadRange range;
  };
  std::vector<Request> requests() {
    std::vector<Request> all;
    each_said([&](const WdpData& h, Bytes d) {
      if (h.opcode != Opcode::read_request) return;
      all.push_back({h, wire::WdpReadRange::parse(d.data() + WdpData::kSize)});
    });
    return all;
  }
  // Segment `index` of the answer to `r`; the Read's bytes are source[at ..].
  void answer(const Request& r, uint32_t index, uint32_t at = 0, uint16_t stride = 400) {
    const uint32_t mo = index * stride;
    const uint32_t n = std::min<uint32_t>(stride, r.header.mlen - mo);
    give(encode({.psn = Psn{psn++},
                 .msn = Msn{++msn},
                 .mo = MessageOffset{mo},
                 .mlen = r.header.mlen,
                 .last = mo + n == r.header.mlen,
                 .opcode = Opcode::read_response,
                 .stride = stride,
                 .imm_or_read = r.header.imm_or_read,
                 .to = TaggedOffset{mo}},
                Bytes{source}.subspan(at + mo, n)));
  }
  void wait_for_deadline() {
    now = std::max(now, session->deadline());
    session->tick(now);
  }
  std::vector<std::pair<uint64_t, Status>> completed() const {
    std::vector<std::pair<uint64_t, Status>> all;
    for (const auto& d : host->host.sent) all.emplace_back(d.wr_id, d.status);
    return all;
  }

  Buffer sink;
  Buffer source;
  work::LocalSegment local;
  uint64_t ids = 0;
  uint32_t msn = 0;
};
using Done = std::vector<std::pair<uint64_t, Status>>;

}  // namespace weft::wdp
