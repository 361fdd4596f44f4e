#include "cm/lingering_close.h"

#include <algorithm>
#include <array>

#include "cm/first_frame.h"
#include "rdmap/limits.h"
#include "wire/ddp_header.h"

namespace weft::cm {
namespace {

// As many as are due before the end.
constexpr auto kKicks = static_cast<size_t>(
    std::ranges::count_if(rdmap::kKickAfter, [](Duration d) { return d < rdmap::kRtrSettles; }));
constexpr int kMostDrained = 64;  // times 4 KB: a peer that never stops is not read for ever

void write_terminate(wire::TermError error, mpa::FpduWriter& writer, mpa::TxBatch& batch) {
  std::byte message[wire::UntaggedHeader::kSize + wire::Terminate::kMaxSize];
  wire::UntaggedHeader{.control = {.last = true, .opcode = wire::Opcode::terminate},
                       .qn = kTerminateQueue,
                       .msn = Msn{1}}
      .encode(message);
  const size_t size = wire::Terminate{.error = error}.encode(message + wire::UntaggedHeader::kSize);
  writer.write(batch, Bytes{message, wire::UntaggedHeader::kSize + size});
}

}  // namespace

using engine::Token;

LingeringClose::LingeringClose(Started& started, std::optional<wire::TermError> error)
    : tcp_(std::move(started.tcp)), error_(error) {
  writer_.configure(started.parameters.crc, started.parameters.send_markers);
}

void LingeringClose::give_up(Token& token, Started started, std::optional<wire::TermError> error) {
  if (!started.owes_rtr) {
    LingeringClose{started, error}.close(token);
    return;
  }
  token.runtime().guard(
      token,
      [&] {
        auto owned = std::unique_ptr<LingeringClose>{new LingeringClose(started, error)};
        LingeringClose& f = *owned;
        token.runtime().add(token, std::move(owned), -1, false, false);
        f.begin(token, started.parameters.rtr);
      },
      [&] { started.tcp.close(); });
}

void LingeringClose::begin(Token& token, mpa::Rtr rtr) {
  begun_ = token.now();
  token.runtime().set_deadline(token, *this, next());
  token.runtime().closes_at(token, begun_ + rdmap::kRtrSettles);
  mpa::TxBatch batch;
  write_first_frame(rtr, writer_, batch);
  say(batch);
}

void LingeringClose::close(Token& token) {
  if (error_) {
    mpa::TxBatch batch;
    write_terminate(*error_, writer_, batch);
    say(batch);
    stats::count(token.runtime().counters().terminate_sent, wire::index_of(*error_));
    tcp_.shut_write();
    drain();
  }
  tcp_.close();
}

// What is left unread would make a reset of the end, which may overtake the Terminate.
void LingeringClose::drain() {
  std::array<std::byte, 4096> unread;
  const IoVec piece{unread.data(), unread.size()};
  for (int i = 0; i < kMostDrained && tcp_.receive({&piece, 1}).bytes > 0; ++i) {
  }
}

// A fresh socket takes a frame at once, or is broken.
void LingeringClose::say(mpa::TxBatch& batch) {
  (void)tcp_.send(batch.pieces());
}

// A kick that comes late, where the process did not run, puts off the end: the peer may have slept
// until then.
Time LingeringClose::next() const {
  if (kicks_ < kKicks) return begun_ + rdmap::kKickAfter[kicks_];
  return std::max(begun_ + rdmap::kRtrSettles,
                  kicked_ + (rdmap::kRtrSettles - rdmap::kKickAfter[kKicks - 1]));
}

void LingeringClose::on_deadline(Token& token) {
  if (kicks_ == kKicks) {
    close(token);
    token.runtime().remove(token, *this);
    return;
  }
  token.runtime().counters().kicks.add();
  // First: what follows needs memory.
  ++kicks_;
  kicked_ = token.now();
  token.runtime().set_deadline(token, *this, next());
  if (kicks_ == kKicks) token.runtime().closes_at(token, next());
  mpa::TxBatch batch;
  write_empty_write(writer_, batch);
  say(batch);
}

}  // namespace weft::cm
