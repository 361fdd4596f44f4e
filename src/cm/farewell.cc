#include "cm/farewell.h"

#include <algorithm>

#include "rdmap/limits.h"
#include "wire/ddp_header.h"
#include "wire/rdmap_messages.h"

namespace weft::cm {
namespace {

void write_empty_write(mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  std::byte header[wire::TaggedHeader::kSize];
  wire::TaggedHeader{.control = {.tagged = true, .last = true, .opcode = wire::Opcode::write},
                     .stag = Stag{1}}
      .encode(header);
  writer.write(batch, header, {});
}

void write_rtr(mpa::Rtr rtr, mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  std::byte header[wire::UntaggedHeader::kSize + wire::ReadRequest::kSize];
  switch (rtr) {
    case mpa::Rtr::write:
      write_empty_write(writer, batch);
      break;
    case mpa::Rtr::read:
      wire::UntaggedHeader{.control = {.last = true, .opcode = wire::Opcode::read_request},
                           .qn = kReadRequestQueue,
                           .msn = Msn{1}}
          .encode(header);
      wire::ReadRequest{.source_stag = Stag{1}}.encode(header + wire::UntaggedHeader::kSize);
      writer.write(batch, header, {});
      break;
    case mpa::Rtr::fpdu:
      writer.write(batch, {}, {});
      break;
    case mpa::Rtr::none:
      break;
  }
}

}  // namespace

using engine::Token;

void Farewell::give_up(Token& token, Started started) {
  if (!started.owes_rtr) {
    started.tcp.close();
    return;
  }
  token.engine().guard(
      token,
      [&] {
        auto owned = std::unique_ptr<Farewell>{new Farewell(std::move(started.tcp))};
        Farewell& f = *owned;
        f.begun_ = token.now();
        f.writer_.configure(started.parameters.crc, started.parameters.send_markers);
        mpa::TxBatch batch;
        write_rtr(started.parameters.rtr, f.writer_, batch);
        f.say(batch);
        token.engine().add(token, std::move(owned), -1, false, false);
        token.engine().set_deadline(token, f, f.next());
        token.engine().closes_at(token, f.begun_ + rdmap::kRtrSettles);
      },
      [&] { started.tcp.close(); });
}

// A fresh socket takes a frame at once, or is broken.
void Farewell::say(mpa::TxBatch& batch) {
  (void)tcp_.send(batch.pieces());
}

Time Farewell::next() const {
  const Time close = begun_ + rdmap::kRtrSettles;
  return kicks_ < rdmap::kKickAfter.size() ? std::min(close, begun_ + rdmap::kKickAfter[kicks_])
                                           : close;
}

void Farewell::on_deadline(Token& token) {
  if (token.now() >= begun_ + rdmap::kRtrSettles) {
    token.engine().remove(token, *this);
    tcp_.close();
    return;
  }
  token.engine().counters().kicks.add();
  // First: what follows needs memory.
  ++kicks_;
  token.engine().set_deadline(token, *this, next());
  mpa::TxBatch batch;
  write_empty_write(writer_, batch);
  say(batch);
}

}  // namespace weft::cm
