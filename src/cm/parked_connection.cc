#include "cm/parked_connection.h"

#include <array>

#include "cm/first_frame.h"
#include "cm/lingering_close.h"

namespace weft::cm {
namespace {

// A peer that sends before anybody listens has the rest wait in the kernel.
constexpr size_t kMostEarly = 64 * 1024;

}  // namespace

using engine::Token;

ParkedConnection& ParkedConnection::start(Token& token, ParkedConnectionHandler& handler,
                                          Started started) {
  auto owned = std::unique_ptr<ParkedConnection>{new ParkedConnection(handler, std::move(started))};
  ParkedConnection& t = *owned;
  const int fd = t.started_.tcp.fd();
  token.runtime().add(token, std::move(owned), fd, true, false);
  return t;
}

Started ParkedConnection::release(Token& token) {
  token.runtime().remove(token, *this);
  return std::move(started_);
}

// With memory agreed on, the peer looks for a byte on TCP, which wakes it up (spec/same-host 3.4).
void ParkedConnection::say_ready() {
  if (!started_.parameters.established_later) return;
  if (started_.segment) {
    std::byte wake_up{};
    const IoVec piece{&wake_up, 1};
    return send({&piece, 1});
  }
  mpa::FpduWriter writer;
  writer.configure(started_.parameters.crc, started_.parameters.send_markers);
  mpa::TxBatch batch;
  write_first_frame(started_.parameters.rtr, writer, batch);
  send(batch.pieces());
}

// A socket that has sent no more than its Request takes it, or is broken and says so later.
void ParkedConnection::send(std::span<const IoVec> pieces) {
  (void)started_.tcp.send(pieces);
}

// What comes before the stream: the Initiator's answer to an offer of memory (spec/same-host 2.2).
bool ParkedConnection::stream_has_begun() const {
  return started_.early.size() > (started_.segment ? 1U : 0U);
}

void ParkedConnection::close(Token& token) {
  token.runtime().remove(token, *this);
  LingeringClose::give_up(token, std::move(started_));
}

void ParkedConnection::on_ready(Token& token, bool readable, bool) {
  if (!readable) return;
  std::array<std::byte, 4096> buffer;
  const IoVec piece{buffer.data(), buffer.size()};
  const auto t = started_.tcp.receive({&piece, 1});
  if (t.would_block) return;
  if (t.end || t.error != 0) {
    started_.owes_rtr = false;  // nobody waits for it any more
    close(token);
    handler_.parked_connection_lost(token);
    return;
  }
  started_.early.insert(started_.early.end(), buffer.begin(),
                        buffer.begin() + static_cast<ptrdiff_t>(t.bytes));
  if (started_.early.size() >= kMostEarly) token.runtime().want_read(token, *this, false);
  if (!heard_ && stream_has_begun()) {
    heard_ = true;
    handler_.parked_connection_heard(token);
  }
}

}  // namespace weft::cm
