#include "cm/listener.h"

#include "base/undo.h"

namespace weft::cm {

using engine::Token;

Listener& Listener::start(Token& token, ListenerHandler& handler, port::TcpListener& tcp) {
  auto owned = std::unique_ptr<Listener>{new Listener(handler, tcp)};
  Listener& l = *owned;
  // Without a descriptor of its own: the acceptor watches the socket.
  token.runtime().add(token, std::move(owned), -1, false, false);
  Undo begun{[&] { l.stop(token); }};
  l.acceptor_ = &Acceptor::start(token, l, l.tcp_);
  begun.done();
  return l;
}

void Listener::stop(Token& token) {
  if (acceptor_ != nullptr) acceptor_->stop(token);
  token.runtime().remove(token, *this);
}

// spec/mpa 2.3.4: an Initiator that hears no Reply tries again without weft's extension, and there
// a request is complete before it has arrived. So want of memory is a rejection, and not a
// connection that closes.
void Listener::request_came(Token& token, PassiveStart& start,
                            const mpa::Responder::Request& request) {
  token.runtime().guard(
      token, [&] { handler_.connection_requested(token, start, request); },
      [&] {
        count_no_memory(token);
        start.reject(token, {});
      });
}

}  // namespace weft::cm
