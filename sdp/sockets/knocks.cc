#include "sdp/sockets/knocks.h"

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
constexpr int kKnockMs = 500;
constexpr int kGreetingMs = 100;

}  // namespace

void Knocks::await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                            const Address& listener) {
  awaited_.insert(session.get());
  const auto heard = [this, peer, listener, waiting = std::weak_ptr(session)] {
    const auto s = waiting.lock();
    if (!s || awaited_.erase(s.get()) == 0) return;
    try {
      knock(s, peer, listener);
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

void Knocks::knock(const std::shared_ptr<Session>& session, const Address& peer,
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
    Knock& knock = knocks_[which.name];
    knock = {which.number, session, std::move(file), in_family(to, family),
             in_family(peer, family)};
    knock.door = std::make_unique<Door>(
        loop_, *name, [this, which](const File& asker) { hand_over(which, asker); });
  }
  if (real().connect(fd, &to.any, to.size()) != 0 && errno != EINPROGRESS) {
    forget(which);
    return fabric_.close(session);
  }
  (void)loop_.watch(fd, EPOLLRDHUP, [this, which](uint32_t) { give_up(which); });
  loop_.later(kKnockMs, [this, which] { take_from_elsewhere(which); });
}

// With the lock.
Knocks::Knock* Knocks::find(const Name& which) {
  const auto found = knocks_.find(which.name);
  const bool is = found != knocks_.end() && found->second.number == which.number;
  return is ? &found->second : nullptr;
}

void Knocks::forget(const Name& which) {
  std::optional<Knock> ended;
  const std::lock_guard lock{lock_};
  Knock* knock = find(which);
  if (knock == nullptr) return;
  ended = std::move(*knock);
  knocks_.erase(which.name);
  if (ended->file) loop_.forget(ended->file.get());
}

// There was no memory for it.
void Knocks::give_up(const std::shared_ptr<Session>& session) {
  std::optional<Name> which;
  {
    const std::lock_guard lock{lock_};
    for (const auto& [name, knock] : knocks_) {
      if (knock.session == session) which = Name{name, knock.number};
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
void Knocks::give_up(const Name& which) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock{lock_};
    const Knock* knock = find(which);
    if (knock == nullptr || knock->relay) return;
    session = knock->session;
  }
  {
    const std::lock_guard lock{session->lock};
    session->abort();
  }
  forget(which);
  fabric_.close(session);
}

void Knocks::give_up_all() {
  std::vector<Name> all;
  {
    const std::lock_guard lock{lock_};
    for (const auto& [name, knock] : knocks_) all.push_back({name, knock.number});
  }
  for (const Name& which : all) give_up(which);
}

// Another process has accepted it, and gets a mirror's end in its place. Where the knock itself is
// the connection by now, it is told the peer's name alone.
void Knocks::hand_over(const Name& which, const File& asker) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Knock* found = find(which);
    if (found == nullptr) return;
    Knock& knock = *found;
    SocketPair pair;
    if (knock.relay || !pair.open()) return Door::answer(asker, knock.peer, File{});
    write_names(pair.outer.get(), {knock.own, knock.peer});
    Door::answer(asker, knock.peer, pair.outer);
    loop_.forget(knock.file.get());
    // The knock stays open, since its name is that of all this.
    knock.relay = std::make_unique<Relay>(loop_, fabric_, knock.session, std::move(pair.inner), -1,
                                          Loop::ready([this, which] { forget(which); }));
    relay = knock.relay.get();
  }
  relay->start();
}

// Nobody has accepted it who could ask: then the knock itself is the connection.
void Knocks::take_from_elsewhere(const Name& which) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Knock* found = find(which);
    if (found == nullptr || found->relay) return;
    Knock& knock = *found;
    loop_.forget(knock.file.get());
    knock.relay = std::make_unique<Relay>(loop_, fabric_, knock.session, std::move(knock.file), -1,
                                          Loop::ready([this, which] { forget(which); }));
    relay = knock.relay.get();
  }
  relay->start();
}

std::optional<Knocks::Taken> Knocks::take(int fd, const Address& from) {
  const std::lock_guard lock{lock_};
  const auto found = knocks_.find(shown_name(from));
  if (found == knocks_.end()) return std::nullopt;
  Taken taken{.peer = found->second.peer};
  const auto ended = std::make_shared<Knock>();
  Loop::Ready forget = Loop::ready([this, ended] { loop_.forget(ended->file.get()); });
  if (found->second.relay || !taken.mirror.put_at(fd)) {
    RelayedNames::add(fd, taken.peer);
    return taken;
  }
  taken.session = found->second.session;
  *ended = std::move(found->second);
  knocks_.erase(found);
  loop_.post(std::move(forget));
  return taken;
}

}  // namespace weft::sdp
