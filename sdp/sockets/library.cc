#include "sdp/sockets/library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "sdp/loop/handlers.h"
#include "sdp/sockets/fallbacks.h"
#include "sdp/sockets/keeper.h"
#include "sdp/sockets/mirror.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/port_map.h"
#include "sdp/sockets/real.h"
#include "sdp/sockets/recent.h"
#include "sdp/sockets/registrations.h"
#include "sdp/sockets/relayed_names.h"
#include "sdp/sockets/shown_name.h"
#include "sdp/sockets/written_names.h"

namespace weft::sdp {
namespace {

// A peer that does not answer for so long goes on by TCP.
constexpr int kConnectMs = 250;
// One without TCP to go on by fails.
constexpr int kConnectAloneMs = 10'000;
// An accept() that is not this process's own has not come by then.
constexpr int kKnockMs = 500;
constexpr int kGreetingMs = 100;
// A thread that has not taken its connection by then was jumped out of its call.
constexpr int kTakenMs = 10'000;
constexpr std::chrono::seconds kMostAtExit{10};

Mutex g_lock;
std::atomic<Library*> g_library{nullptr};
std::atomic<bool> g_without{false};

std::optional<Address> name_of(int fd) {
  Address address{};
  socklen_t size = sizeof address;
  if (real().getsockname(fd, &address.any, &size) != 0) return std::nullopt;
  if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6) return std::nullopt;
  return address;
}

// A knock brings no data, so that a listener with TCP_DEFER_ACCEPT would not be told of it.
// Programs set the option when the library hears already.
void accept_without_data(int listener) {
  const int no_time = 0;
  (void)real().setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &no_time, sizeof no_time);
}

bool any_address(const Address& a) {
  if (a.any.sa_family == AF_INET) return a.v4.sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&a.v6.sin6_addr);
}

// An IPv6 socket that speaks IPv4 has such names as well.
bool same_address(const Address& a, const Address& b) {
  return shown_name(a).address == shown_name(b).address;
}

// The same place as a socket of this family names it.
Address in_family(const Address& address, sa_family_t family) {
  if (address.any.sa_family != AF_INET || family != AF_INET6) return address;
  Address mapped{};
  mapped.any.sa_family = AF_INET6;
  const auto bytes = shown_name(address).address;
  std::memcpy(&mapped.v6.sin6_addr, bytes.data(), bytes.size());
  mapped.set_port(address.port());
  return mapped;
}

// Of the side of `session` that is here; the port is the adapter's.
Address own_address(const std::shared_ptr<Session>& session) {
  Address own{};
  const sockaddr* a = rdma_get_local_addr(session->id());
  std::memcpy(&own, a, a->sa_family == AF_INET ? sizeof own.v4 : sizeof own.v6);
  return own;
}

// Another worker of the same server often has it already.
bool is_free(const Address& at) {
  const File probe{::socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int one = 1;
  if (!probe) return false;
  (void)real().setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  return ::bind(probe.get(), &at.any, at.size()) == 0;
}

Fallback why(int error) {
  switch (error) {
    case ECONNREFUSED:
      return Fallback::refused;
    case ETIMEDOUT:
      return Fallback::silent;
    case EPROTO:
      return Fallback::stranger;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENODEV:
      return Fallback::unreachable;
    default:
      return Fallback::local;
  }
}

bool does_not_block(int fd) {
  return (::syscall(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK) != 0;
}

// Reserves a port for a client that has none, so that it has a name, as a connected socket has.
std::optional<Address> bound_name(int fd) {
  auto name = name_of(fd);
  if (!name || name->port() != 0) return name;
  // It may be bound to an address, and wait for connect() for its port.
  const int no = 0;
  int waits = 0;
  socklen_t size = sizeof waits;
  (void)real().getsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &waits, &size);
  if (waits != 0) (void)real().setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &no, sizeof no);
  const bool bound = ::bind(fd, &name->any, name->size()) == 0;
  if (waits != 0) {
    (void)real().setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &waits, sizeof waits);
  }
  return bound ? name_of(fd) : std::nullopt;
}

// The child's calls are the kernel's, so the parent moves the bytes from now on.
void relay_everything() {
  Table::relay_all();
}

// fork() leaves a child with neither the thread nor the connections. Their memory is never touched.
void forget_in_child() {
  // Another thread of the parent may have held it.
  new (&g_lock) Mutex;
  g_library = nullptr;
  g_without = false;
  Table::forget_all();
  Recent::forget_in_child();
  Fallbacks::forget_in_child();
  RelayedNames::go_on_in_child();
  Keeper::go_on_in_child();
  Shown::forget_in_child();
}

}  // namespace

Library* Library::existing() {
  return g_library.load(std::memory_order_acquire);
}

Library* Library::get() {
  if (Library* library = existing()) return library;
  if (g_without) return nullptr;
  const std::lock_guard lock{g_lock};
  if (Library* library = existing()) return library;
  Loop* loop = Loop::start();
  if (loop == nullptr) return nullptr;
  Handlers::guard_memory();
  std::unique_ptr<Library> library{new Library(*loop)};
  library->fabric_ = Fabric::open(*loop, [](const Address& peer, Violation violation) {
    log().write(LogLevel::error,
                "the connection with " + to_string(peer) + " was ended: " + text(violation));
  });
  if (!library->fabric_) {
    g_without = true;
    return nullptr;
  }
  static const int registered = ::pthread_atfork(relay_everything, nullptr, forget_in_child);
  (void)registered;
  g_library = library.release();
  return existing();
}

const LoadedRules& Library::rules() {
  // Never destroyed: programs connect while they end.
  static const auto* const loaded = [] {
    auto* rules = new LoadedRules(load_rules(RulesEnvironment::of_process()));
    const SentenceLog log{rules->configuration.log};
    for (const Complaint& complaint : rules->configuration.complaints) {
      log.write(LogLevel::warning, sentence(rules->file, complaint));
    }
    if (const auto wrong = ZcopyThreshold::wrong_in_process()) {
      log.write(LogLevel::warning, *wrong);
    }
    if (const auto wrong = OfferThreshold::wrong_in_process()) {
      log.write(LogLevel::warning, *wrong);
    }
    return rules;
  }();
  return *loaded;
}

const SentenceLog& Library::log() {
  // Never destroyed, as above.
  static const auto* const log = new SentenceLog(rules().configuration.log);
  return *log;
}

// With the lock.
Library::Connection& Library::adopt(const std::shared_ptr<Session>& session, Mirror mirror, int fd,
                                    const std::optional<Address>& own, const Address& peer) {
  const uint64_t cookie = mirror.cookie;
  const auto name = own ? own : name_of(mirror.shadow.get());
  if (name) write_names(fd, {*name, peer});
  {
    const std::lock_guard lock{session->lock};
    session->show(
        {.server = !own, .own = name ? shown_name(*name) : StatName{}, .peer = shown_name(peer)});
  }
  auto stream = std::make_shared<Stream>(loop_, *fabric_, session, std::move(mirror.inner),
                                         mirror.shadow, cookie, [this, cookie] { forget(cookie); });
  if (name) {
    const auto same = [](const Address& a, const Address& b) {
      return a.port() == b.port() && same_address(a, b);
    };
    const auto [first, end] = callers_.equal_range(peer.port());
    for (auto i = first; i != end; ++i) {
      const Connection& other = connections_.at(i->second);
      if (!same(*other.own, peer) || !same(other.peer, *name)) continue;
      stream->is_peer_of(other.stream);
      other.stream->is_peer_of(stream);
    }
  }
  if (own) callers_.emplace(own->port(), cookie);
  const auto [place, is_new] =
      connections_.emplace(cookie, Connection{stream, std::move(mirror.shadow), own, peer});
  ++count_;
  stream->take_buffer_sizes();
  stream->sending().take_zero_copy();
  stream->urgent().take_in_line();
  Table::put(fd, stream);
  // Another thread may have closed it before the table had it.
  if (cookie_of(fd) != cookie) Table::drop(fd);
  loop_.post([stream] { stream->start(); });
  return place->second;
}

// The adapter's threads call this library, too, so that none of its locks may be held where a
// session ends.
void Library::forget(uint64_t cookie) {
  std::optional<Connection> ended;
  const std::lock_guard lock{lock_};
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return;
  ended = std::move(found->second);
  Table::drop(*ended->stream);
  connections_.erase(found);
  if (ended->own) {
    const auto [first, end] = callers_.equal_range(ended->own->port());
    const auto own = std::find_if(first, end, [&](const auto& i) { return i.second == cookie; });
    if (own != end) callers_.erase(own);
  }
  --count_;
}

// A connection for `fd`, which stays what it is.
Library::Made Library::make(int fd, const Address& to, bool remember,
                            const Awaited::Patience& patience) {
  const auto port = sdp_port(to.port());
  if (!port) return {.why = Fallback::no_port};
  const StatName place = shown_name(to);
  if (remember && absent_.knows(place, Absent::Clock::now())) {
    return {.why = Fallback::remembered};
  }
  const auto from = bound_name(fd);
  if (!from) return {.why = Fallback::local};
  Address target = to;
  target.set_port(*port);
  const auto awaited = std::make_shared<Awaited>();
  const Fabric::Ways ways{.milliseconds = remember ? kConnectMs : kConnectAloneMs,
                          .receive_bytes = chosen_buffer_sizes(fd).receive,
                          .only_way = !remember};
  loop_.post([this, awaited, source = *from, target, ways] {
    fabric_->connect(source, target, ways,
                     [this, awaited](const std::shared_ptr<Session>& session, int error) {
                       const bool waits = awaited->put(session, error);
                       if (session == nullptr) return;
                       if (!waits) return fabric_->close(session);
                       close_unless_taken(awaited, session);
                     });
  });
  const auto [made, error] = awaited->take(patience);
  if (error == EINTR || error == EINPROGRESS) return {.why = Fallback::silent, .left = error};
  if (made == nullptr) {
    absent_.note(place, why(error), Absent::Clock::now());
    return {.why = why(error)};
  }
  absent_.forget(place);
  Address own = in_family(own_address(made), to.any.sa_family);
  own.set_port(from->port());
  return {.session = made, .own = own};
}

void Library::close_unless_taken(const std::shared_ptr<Awaited>& awaited,
                                 const std::weak_ptr<Session>& session) {
  loop_.later(kTakenMs, [this, awaited, session] {
    const auto still = session.lock();
    if (awaited->give_up() && still) fabric_->close(still);
  });
}

Library::Tried Library::connect(int fd, const Address& to, bool remember) {
  const HoldHandlers holding;
  const Handlers::Ran ran;
  // Nothing of this is for who does not block.
  const Awaited::Patience patience =
      does_not_block(fd) ? Awaited::Patience{} : Awaited::Patience{&ran, limit_of_sends(fd)};
  const uint64_t before = cookie_of(fd);
  const Made made = make(fd, to, remember, patience);
  if (cookie_of(fd) != before) {
    if (made.session) loop_.post([this, session = made.session] { fabric_->close(session); });
    return {Outcome::lost};
  }
  if (made.left != 0) return {Outcome::left, made.why, made.left};
  const auto& session = made.session;
  if (session == nullptr) return {Outcome::tcp, made.why};
  Mirror mirror;
  const auto registered = Registrations::take_out(fd);
  const bool placed = mirror.put_at(fd);
  Registrations::put_back(fd);
  if (!placed) {
    loop_.post([this, session] { fabric_->close(session); });
    return {Outcome::tcp, Fallback::local};
  }
  Registrations::end(fd);
  const std::lock_guard lock{lock_};
  Connection& connection = adopt(session, std::move(mirror), fd, made.own, to);
  if (!registered.empty()) connection.stream->waiting().about_to_wait(fd);
  for (const auto& [epoll, event] : registered) {
    connection.stream->waiting().registered(epoll, EPOLL_CTL_ADD, fd, &event);
  }
  connection.stream->waiting().take_owner(fd);
  connection.stream->greet();
  if (!does_not_block(fd)) return {Outcome::connected};
  connection.in_progress = true;
  return {Outcome::in_progress};
}

Library::Kept Library::connect_and_keep(File socket, const Address& to, bool remember) {
  const HoldHandlers holding;
  const Made made = make(socket.get(), to, remember, {});
  const auto& session = made.session;
  if (session == nullptr) return {File{}, made.why};
  SocketPair pair;
  if (!pair.open()) {
    loop_.post([this, session] { fabric_->close(session); });
    return {File{}, Fallback::local};
  }
  write_names(pair.outer.get(), {made.own, to});
  {
    const std::lock_guard lock{session->lock};
    session->show({.server = false, .own = shown_name(made.own), .peer = shown_name(to)});
    session->relayed();
    session->greet();
  }
  on_loop([&] {
    const auto kept = kept_.insert(kept_.end(), KeptRelay{});
    kept->socket = std::move(socket);
    kept->relay = std::make_unique<Relay>(loop_, *fabric_, session, std::move(pair.inner),
                                          kept->socket.get(), [this, kept] {
                                            kept_.erase(kept);
                                            count_kept_ = kept_.size();
                                          });
    count_kept_ = kept_.size();
    kept->relay->start();
  });
  return {std::move(pair.outer)};
}

std::optional<int> Library::connect_again(int fd) {
  const uint64_t cookie = cookie_of(fd);
  const std::lock_guard lock{lock_};
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return std::nullopt;
  return std::exchange(found->second.in_progress, false) ? 0 : EISCONN;
}

Library::Hearing* Library::listen(int fd, int backlog) {
  const auto name = name_of(fd);
  const auto port = name ? sdp_port(name->port()) : std::nullopt;
  if (!port) return nullptr;
  Address at = *name;
  at.set_port(*port);
  if (!is_free(at)) return nullptr;
  const auto receive_bytes = [fd, cookie = cookie_of(fd)] {
    // The number may be another socket's by then.
    return cookie_of(fd) == cookie ? chosen_buffer_sizes(fd).receive : 0;
  };
  const auto accepted = [this, fd, cookie = cookie_of(fd), name = *name](
                            const std::shared_ptr<Session>& session, const Address& peer) {
    if (cookie_of(fd) == cookie) accept_without_data(fd);
    await_greeting(session, peer, name);
  };
  Hearing* hearing = nullptr;
  on_loop([&] { hearing = fabric_->listen(at, backlog, receive_bytes, accepted); });
  return hearing;
}

void Library::stop_listening(Hearing* hearing) {
  on_loop([&] { fabric_->forget(hearing); });
}

void Library::later(int milliseconds, Loop::Task task) {
  loop_.post([this, milliseconds, task = std::move(task)] { loop_.later(milliseconds, task); });
}

// Waits until the loop's thread has done it.
void Library::on_loop(const Loop::Task& task) {
  if (loop_.on_this_thread()) return task();
  std::promise<void> done;
  loop_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

// The program gets it when the peer's has it (spec/sdp 3.4).
void Library::await_greeting(const std::shared_ptr<Session>& session, const Address& peer,
                             const Address& listener) {
  awaited_.insert(session.get());
  const auto heard = [this, peer, listener, waiting = std::weak_ptr(session)] {
    const auto s = waiting.lock();
    if (s && awaited_.erase(s.get()) > 0) knock(s, peer, listener);
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

void Library::knock(const std::shared_ptr<Session>& session, const Address& peer,
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
  if (!name) return fabric_->close(session);
  KnockName which{.name = shown_name(*name)};
  const int fd = file.get();
  {
    // Known before it can be accepted.
    const std::lock_guard lock{lock_};
    const sa_family_t family = listener.any.sa_family;
    which.number = ++last_knock_;
    Knock& knock = knocks_[which.name];
    knock = {which.number, session, std::move(file), in_family(to, family),
             in_family(peer, family)};
    knock.door = std::make_unique<Door>(
        loop_, *name, [this, which](const File& asker) { hand_over(which, asker); });
  }
  if (real().connect(fd, &to.any, to.size()) != 0 && errno != EINPROGRESS) {
    forget_knock(which);
    return fabric_->close(session);
  }
  (void)loop_.watch(fd, EPOLLRDHUP, [this, which](uint32_t) { give_up_knock(which); });
  loop_.later(kKnockMs, [this, which] { take_knock_from_elsewhere(which); });
}

// With the lock.
Library::Knock* Library::find_knock(const KnockName& which) {
  const auto found = knocks_.find(which.name);
  const bool is = found != knocks_.end() && found->second.number == which.number;
  return is ? &found->second : nullptr;
}

// The loop's thread.
void Library::forget_knock(const KnockName& which) {
  std::optional<Knock> ended;
  const std::lock_guard lock{lock_};
  Knock* knock = find_knock(which);
  if (knock == nullptr) return;
  ended = std::move(*knock);
  knocks_.erase(which.name);
  if (ended->file) loop_.forget(ended->file.get());
}

// The listener was closed before anybody accepted it.
void Library::give_up_knock(const KnockName& which) {
  std::shared_ptr<Session> session;
  {
    const std::lock_guard lock{lock_};
    const Knock* knock = find_knock(which);
    if (knock == nullptr || knock->relay) return;
    session = knock->session;
  }
  {
    const std::lock_guard lock{session->lock};
    session->abort();
  }
  forget_knock(which);
  fabric_->close(session);
}

// At the end of the process, which nobody accepts any more in.
void Library::give_up_knocks() {
  std::vector<KnockName> all;
  {
    const std::lock_guard lock{lock_};
    for (const auto& [name, knock] : knocks_) all.push_back({name, knock.number});
  }
  for (const KnockName& which : all) give_up_knock(which);
}

// Another process has accepted it, and gets a mirror's end in its place. Where the knock itself is
// the connection by now, it is told the peer's name alone.
void Library::hand_over(const KnockName& which, const File& asker) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Knock* found = find_knock(which);
    if (found == nullptr) return;
    Knock& knock = *found;
    SocketPair pair;
    if (knock.relay || !pair.open()) return Door::answer(asker, knock.peer, File{});
    write_names(pair.outer.get(), {knock.own, knock.peer});
    Door::answer(asker, knock.peer, pair.outer);
    loop_.forget(knock.file.get());
    // The knock stays open, since its name is that of all this.
    knock.relay = std::make_unique<Relay>(loop_, *fabric_, knock.session, std::move(pair.inner), -1,
                                          [this, which] { forget_knock(which); });
    relay = knock.relay.get();
  }
  relay->start();
}

// Nobody has accepted it who could ask: then the knock itself is the connection.
void Library::take_knock_from_elsewhere(const KnockName& which) {
  Relay* relay = nullptr;
  {
    const std::lock_guard lock{lock_};
    Knock* found = find_knock(which);
    if (found == nullptr || found->relay) return;
    Knock& knock = *found;
    loop_.forget(knock.file.get());
    knock.relay = std::make_unique<Relay>(loop_, *fabric_, knock.session, std::move(knock.file), -1,
                                          [this, which] { forget_knock(which); });
    relay = knock.relay.get();
  }
  relay->start();
}

std::optional<Address> Library::accepted(int fd) {
  Address from{};
  socklen_t size = sizeof from;
  if (real().getpeername(fd, &from.any, &size) != 0) return std::nullopt;
  const std::lock_guard lock{lock_};
  const auto found = knocks_.find(shown_name(from));
  if (found == knocks_.end()) return std::nullopt;
  const Address peer = found->second.peer;
  Mirror mirror;
  if (found->second.relay || !mirror.put_at(fd)) {
    RelayedNames::add(fd, peer);
    return peer;
  }
  const auto session = found->second.session;
  const std::shared_ptr<Knock> ended{new Knock(std::move(found->second))};
  knocks_.erase(found);
  loop_.post([this, ended] { loop_.forget(ended->file.get()); });
  adopt(session, std::move(mirror), fd, std::nullopt, peer);
  return peer;
}

std::optional<Names> Library::names(int fd) const {
  const uint64_t cookie = cookie_of(fd);
  if (cookie == 0) return std::nullopt;
  const std::lock_guard lock{lock_};
  const auto found = connections_.find(cookie);
  if (found == connections_.end()) return std::nullopt;
  const Connection& c = found->second;
  return Names{c.shadow.get(), c.own, c.peer};
}

// What another process has of them goes on, and this one waits for that. Other threads run until
// the process is gone, and may use their numbers: something inert takes their places, on which
// reads wait, and writes once its buffer is full.
void Library::close_own_descriptors() {
  int inert[2];  // until the end
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, inert) != 0) return;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> own;
  while (const dirent* entry = ::readdir(folder)) {
    int fd = -1;
    const char* name = entry->d_name;
    const char* end = name + std::strlen(name);
    if (std::from_chars(name, end, fd).ptr == end && names(fd)) own.push_back(fd);
  }
  ::closedir(folder);
  for (const int fd : own) {
    Table::drop(fd);
    (void)::syscall(SYS_dup3, inert[0], fd, O_CLOEXEC);
  }
}

bool Library::drained() const {
  const std::lock_guard lock{lock_};
  return connections_.empty() && count_kept_ == 0 && fabric_->sending() == 0;
}

void Library::at_exit() {
  Library* library = existing();
  // Nor in a child that has this process's memory only (vfork), or was made behind libc's back.
  if (library == nullptr || library->process_ != ::getpid()) return;
  if (library->loop_.on_this_thread() || library->drained()) return;
  library->close_own_descriptors();
  library->loop_.post([library] { library->give_up_knocks(); });
  const auto end = std::chrono::steady_clock::now() + kMostAtExit;
  while (!library->drained() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

}  // namespace weft::sdp
