#include "sdp/sockets/accept_queue.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "sdp/sockets/addresses.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/written_names.h"

namespace weft::sdp {
namespace {

// An accept() that is not this process's own has not come by then.
constexpr int kAcceptWaitMs = 500;
constexpr int kGreetingMs = 100;

}  // namespace

void AcceptQueue::await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                                 const Address& listener) {
  awaited_.insert(session.get());
  const auto heard = [this, peer, listener, waiting = std::weak_ptr(session)] {
    const auto s = waiting.lock();
    if (!s || awaited_.erase(s.get()) == 0) return;
    try {
      wake_listener(s, peer, listener);
    } catch (const std::bad_alloc&) {
      give_up(s);
      throw;
    }
  };
  {
    const std::lock_guard lock{session->lock};
    session->on_news = [this, heard, s = session.get()] {
      if (s->heard()) loop_.post(heard);
    };
    session->want(true);
    (void)session->rest();
    session->on_news();
  }
  loop_.later(kGreetingMs, heard);
}

void AcceptQueue::wake_listener(const std::shared_ptr<Session>& session, const Address& peer,
                                const Address& listener) {
  {
    const std::lock_guard lock{session->lock};
    session->on_news = nullptr;
    session->want(false);
  }
  Address to = listener;
  if (any_address(listener)) {
    to = own_address(session);
    to.set_port(listener.port());
  }
  Address from = to;
  from.set_port(0);
  File file = out_of_the_way(
      File{::socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)});
  std::optional<Address> name;
  if (file && ::bind(file.get(), &from.any, from.size()) == 0) name = name_of(file.get());
  if (!name) return fabric_.close(session);
  Name which{.name = shown_name(*name)};
  const int fd = file.get();
  {
    // Known before it can be accepted.
    const std::lock_guard lock{lock_};
    const sa_family_t family = listener.any.sa_family;
    which.number = ++last_;
    Pending& pending = pending_[which.name];
    pending = {which.number, session, std::move(file), in_family(to, family),
               in_family(peer, family)};
    pending.handover = std::make_unique<Handover>(
        loop_, *name, [this, which](const File& asker) { hand_over(which, asker); });
  }
  if (real().connect(fd, &to.any, to.size()) != 0 && errno != EINPROGRESS) {
    forget(which);
    return fabric_.close(session);
  }
  (void)loop_.watch(fd, EPOLLRDHUP, [this, which](uint32_t) { give_up(which); });
  loop_.later(kAcceptWaitMs, [this, which] { take_from_elsewhere(which); });
}

// With the lock.
AcceptQueue::Pending* AcceptQueue::find(const Name& which) {
  const auto found = pending_.find(which.name);
  const bool is = found != pending_.end() && found->second.number == which.number;
  return is ? &found->second : nullptr;
}

void AcceptQueue::forget(const Name& which) {
  std::optional<Pending> ended;
  const std::lock_guard lock{lock_};
  Pending* pending = find(which);
  if (pending == nullptr) return;
  ended = std::move(*pending);
  pending_.erase(which.name);
  if (ended->file) loop_.forget(ended->file.get());
}

// There was no memory for it.
void AcceptQueue::give_up(const std::shared_ptr<Session>& session) {
  std::optional<Name> which;
  {
    const std::lock_guard lock{lock_};
    for (const auto& [name, pending] : pending_) {
      if (pending.session == session) which = Name{name, pending.number};
    }
  }
  if (which) return give_up(*which);
  {
    const std::lock_guard lock{session->lock};
    session->abort();
  }
  fabric_.close(session);
}

// The listener was closed before anybody accepted it.
void AcceptQueue::give_up(const Name& which) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock{lock_};
    const Pending* pending = find(which);
    if (pending == nullptr || pending->relay) return;
    session = pending->session;
  }
  {
    const std::lock_guard lock{session->lock};
    session->abort();
  }
  forget(which);
  fabric_.close(session);
}

void AcceptQueue::give_up_all() {
  std::vector<Name> all;
  {
    const std::lock_guard lock{lock_};
    for (const auto& [name, pending] : pending_) all.push_back({name, pending.number});
  }
  for (const Name& which : all) give_up(which);
}

// Another process has accepted it, and gets a mirror's end in its place. Where the wake-up
// connection is the connection by now, it is told the peer's name alone.
void AcceptQueue::hand_over(const Name& which, const File& asker) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Pending* found = find(which);
    if (found == nullptr) return;
    Pending& pending = *found;
    SocketPair pair;
    if (pending.relay || !pair.open()) return Handover::answer(asker, pending.peer, File{});
    write_names(pair.outer.get(), {pending.own, pending.peer});
    Handover::answer(asker, pending.peer, pair.outer);
    loop_.forget(pending.file.get());
    // The wake-up connection stays open, since its name is that of all this.
    pending.relay = std::make_unique<Relay>(loop_, fabric_, pending.session, std::move(pair.inner),
                                            -1, Loop::ready([this, which] { forget(which); }));
    relay = pending.relay.get();
  }
  relay->start();
}

// Nobody who could ask has accepted it: the program keeps the wake-up connection.
void AcceptQueue::take_from_elsewhere(const Name& which) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Pending* found = find(which);
    if (found == nullptr || found->relay) return;
    Pending& pending = *found;
    loop_.forget(pending.file.get());
    pending.relay =
        std::make_unique<Relay>(loop_, fabric_, pending.session, std::move(pending.file), -1,
                                Loop::ready([this, which] { forget(which); }));
    relay = pending.relay.get();
  }
  relay->start();
}

std::optional<AcceptQueue::Taken> AcceptQueue::take(int fd, const Address& from) {
  const std::lock_guard lock{lock_};
  const auto found = pending_.find(shown_name(from));
  if (found == pending_.end()) return std::nullopt;
  Taken taken{.peer = found->second.peer};
  const auto ended = std::make_shared<Pending>();
  Loop::Ready forget = Loop::ready([this, ended] { loop_.forget(ended->file.get()); });
  if (found->second.relay || !taken.mirror.put_at(fd)) {
    RelayedNames::add(fd, taken.peer);
    return taken;
  }
  taken.session = found->second.session;
  *ended = std::move(found->second);
  pending_.erase(found);
  loop_.post(std::move(forget));
  return taken;
}

}  // namespace weft::sdp
