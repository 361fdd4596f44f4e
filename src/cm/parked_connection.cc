#include "cm/parked_connection.h"

#include <array>

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
}

}  // namespace weft::cm
