// conformance_peer ADDRESS PORT: the peer under test. Listens on that TCP port for a driver, does
// what its lines say, one after the other, and answers each with one line: "ok ..." or "error ...".
// Ends when the driver closes its connection. Bytes are written in hexadecimal, "-" is none.
//
//   reset MS                           keys of fresh memory; nothing else is left over. No
//   completion
//                                      within the time is an error
//   listen                             the port
//   request RECEIVES SIZE MS           a connection request within the time, or "none"; makes its
//                                      queue pair
//   accept IRD ORD DATA    reject DATA
//   connect PORT RECEIVES SIZE IRD ORD DATA      to the driver's address
//   event                              the next one of librdmacm
//   disconnect  break  drop
//   receives N SIZE
//   send KIND SIZE WORD                KIND: plain, se, inv, se_inv, imm
//   remote KIND STAG TO SIZE VALUE     KIND: write, read, write_imm, fetch_add, compare_swap
//   bind                               the key of a type 2 window
//   done   got                         the next completion of a request, of a receive
//   window OFFSET SIZE   sink SIZE     bytes
//   poke OFFSET DATA                   sets bytes of the window
//   changed                            how many bytes differ, in the window and around it
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iostream>
#include <sstream>

#include "side.h"

namespace weft::conformance {
namespace {

Octets from_hex(const std::string& text) {
  Octets bytes;
  if (text == "-") return bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

// The words of a line, one after the other.
class Words {
 public:
  explicit Words(const std::string& line) : in_(line) {}
  std::string text() {
    std::string word;
    if (!(in_ >> word)) throw Failure("a word is missing");
    return word;
  }
  uint64_t number() { return std::stoull(text()); }
  int64_t offset() { return std::stoll(text()); }
  int small() { return std::stoi(text()); }
  Octets bytes() { return from_hex(text()); }

 private:
  std::istringstream in_;
};

std::string perform(Side& side, const std::string& driver, const std::string& line) {
  Words w(line);
  const std::string verb = w.text();
  // Braces in an initializer have an order; arguments of a call have none.
  if (verb == "reset") return side.reset(w.small());
  if (verb == "listen") return std::to_string(side.listen());
  if (verb == "event") return side.event();
  if (verb == "done") return side.next_done();
  if (verb == "got") return side.next_received();
  if (verb == "changed") return side.changed();
  if (verb == "bind") return std::to_string(side.bind_window());
  if (verb == "sink") return side.sink(w.number());
  if (verb == "request") {
    const size_t receives = w.number();
    const size_t size = w.number();
    return side.request(receives, size, w.small());
  }
  if (verb == "window") {
    const int64_t offset = w.offset();
    return side.window(offset, w.number());
  }
  if (verb == "disconnect") {
    side.disconnect();
  } else if (verb == "break") {
    side.break_pair();
  } else if (verb == "drop") {
    side.drop();
  } else if (verb == "reject") {
    side.reject(w.bytes());
  } else if (verb == "accept") {
    const int ird = w.small();
    const int ord = w.small();
    side.accept(ird, ord, w.bytes());
  } else if (verb == "connect") {
    const auto port = static_cast<uint16_t>(w.number());
    const size_t receives = w.number();
    const size_t size = w.number();
    const int ird = w.small();
    const int ord = w.small();
    side.connect(driver, port, receives, size, ird, ord, w.bytes());
  } else if (verb == "receives") {
    const size_t n = w.number();
    side.post_receives(n, w.number());
  } else if (verb == "send") {
    const std::string kind = w.text();
    const size_t size = w.number();
    side.send(kind, size, static_cast<uint32_t>(w.number()));
  } else if (verb == "remote") {
    const std::string kind = w.text();
    const auto stag = static_cast<uint32_t>(w.number());
    const uint64_t to = w.number();
    const size_t size = w.number();
    side.remote(kind, stag, to, size, w.number());
  } else if (verb == "poke") {
    const int64_t offset = w.offset();
    side.poke(offset, w.bytes());
  } else {
    throw Failure("'" + verb + "' is no word of the peer's");
  }
  return "";
}

void answer(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (n <= 0) throw Failure("the driver is gone");
    at += static_cast<size_t>(n);
  }
}

void serve(int fd, const std::string& driver, const std::string& address) {
  Side side(address);
  std::string kept;
  char some[4096];
  for (ssize_t n = 0; (n = recv(fd, some, sizeof some, 0)) > 0;) {
    kept.append(some, static_cast<size_t>(n));
    for (size_t end = 0; (end = kept.find('\n')) != std::string::npos; kept.erase(0, end + 1)) {
      std::string text;
      try {
        text = "ok " + perform(side, driver, kept.substr(0, end));
      } catch (const std::exception& e) {
        text = std::string("error ") + e.what();
      }
      answer(fd, text + "\n");
    }
  }
}

int run(int count, char** words) {
  if (count != 3) {
    std::cerr << "conformance_peer ADDRESS PORT\n";
    return 2;
  }
  const std::string address = words[1];
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(std::stoul(words[2])));
  inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  try {
    if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
        listen(listener, 1) != 0) {
      fail_call("listen for the driver");
    }
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC);
    if (fd < 0) fail_call("accept the driver");
    char driver[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &from.sin_addr, driver, sizeof driver);
    serve(fd, driver, address);
  } catch (const std::exception& e) {
    std::cerr << "conformance_peer: " << e.what() << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace weft::conformance

int main(int count, char** words) {
  return weft::conformance::run(count, words);
}
