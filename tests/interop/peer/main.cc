// interop_peer ADDRESS PORT [--times N] WORD...: does what the words say, one after the other, and
// ends with status 1 and a sentence at the first thing that is not so. After `listen` the rest is
// done N times.
//
//   listen                    on ADDRESS and PORT
//   request[:N]               a connection request with N bytes of private data comes
//   accept[:N]  reject[:N]    with so much private data
//   resolve  connect[:N]      to ADDRESS and PORT
//   reads:N                   no more Reads each way than this, in what comes next; 8 at first
//   resolve_bare  responded   as a program that brings its own queue pair and has not got it yet
//   established[:N]           it worked; N bytes of private data came with it
//   rejected[:N]              it did not, for this reason
//   connect_in_vain[:N]       it does not, for any reason
//   disconnect  disconnected  fail_pair  drop  exit
//   recv:N  send:N  send_se:N
//   write:N  read:N  write_imm:N  send_imm:N  fetch_add  compare_swap
//   send_inv:N                               invalidates the peer's window
//   inv_bad:N  write_bad:N  read_bad:N       they name memory that the peer does not have
//   write_beyond  read_beyond                they begin inside the peer's window and end outside
//   done[:STATUS]             the next request completed so; success when it is not said
//   done_anyhow               the next request completed, well or not
//   got:N                     the next receive has a message of N bytes, all of them right
//   received:STATUS           the next receive completed so
//   was_read:N  was_written:N the bytes are right
//   read_scattered:N  was_scattered:N        a Read of three places in memory, and its bytes
//   repeat:N:WORDS            WORDS, with ',' between, N times
//   together:WORDS            requests, posted with one call
//   sleep:MS  wait_for_end    the latter until it is killed
//   signalled                 SIGUSR1 comes
//
// N is 12 for private data unless given, which is what the place of the window takes.
#include <csignal>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <thread>

#include "endpoint.h"

namespace weft::interop {
namespace {

constexpr size_t kNameOfWindow = 12;

ibv_wc_status status_named(const std::string& name) {
  static const std::map<std::string, ibv_wc_status> kNames = {
      {"", IBV_WC_SUCCESS},
      {"success", IBV_WC_SUCCESS},
      {"flushed", IBV_WC_WR_FLUSH_ERR},
      {"local_qp", IBV_WC_LOC_QP_OP_ERR},
      {"local_length", IBV_WC_LOC_LEN_ERR},
      {"remote_access", IBV_WC_REM_ACCESS_ERR},
      {"remote_request", IBV_WC_REM_INV_REQ_ERR},
      {"remote_operation", IBV_WC_REM_OP_ERR},
      {"rnr", IBV_WC_RNR_RETRY_EXC_ERR},
      {"fatal", IBV_WC_FATAL_ERR},
      {"general", IBV_WC_GENERAL_ERR},
  };
  const auto found = kNames.find(name);
  if (found == kNames.end()) throw Unexpected("'" + name + "' is no status");
  return found->second;
}

void wait_for_signal() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  const timespec patience{20, 0};
  if (sigtimedwait(&one, nullptr, &patience) != SIGUSR1) throw Unexpected("no signal came");
}

void run(Endpoint& end, const std::string& word);

// "N:WORDS"
void repeat(Endpoint& end, const std::string& what) {
  const size_t colon = what.find(':');
  const std::string words = what.substr(colon + 1);
  for (unsigned long i = 0; i < std::stoul(what); ++i) {
    for (size_t at = 0; at <= words.size();) {
      const size_t comma = std::min(words.find(',', at), words.size());
      run(end, words.substr(at, comma - at));
      at = comma + 1;
    }
  }
}

void run(Endpoint& end, const std::string& word) {
  const size_t colon = std::min(word.find(':'), word.size());
  const std::string verb = word.substr(0, colon);
  const std::string text = colon < word.size() ? word.substr(colon + 1) : "";
  const auto number = [&text](size_t otherwise) {
    return text.empty() ? otherwise : std::stoul(text);
  };
  const size_t n = text.empty() || text[0] < '0' || text[0] > '9' ? 0 : std::stoul(text);
  const std::map<std::string, std::function<void()>> verbs = {
      {"listen", [&] { end.listen(); }},
      {"request", [&] { end.request(number(kNameOfWindow)); }},
      {"accept", [&] { end.accept(number(kNameOfWindow)); }},
      {"reject", [&] { end.reject(n); }},
      {"resolve", [&] { end.resolve(true); }},
      {"resolve_bare", [&] { end.resolve(false); }},
      {"responded", [&] { end.expect_response(); }},
      {"reads", [&] { end.limit_reads(static_cast<uint8_t>(n)); }},
      {"connect", [&] { end.connect(number(kNameOfWindow)); }},
      {"accepted", [&] { end.expect_established(); }},
      {"established", [&] { end.expect_established(number(kNameOfWindow)); }},
      {"rejected", [&] { end.expect_rejected(n); }},
      {"connect_in_vain", [&] { end.connect_in_vain(number(kNameOfWindow)); }},
      {"disconnect", [&] { end.disconnect(); }},
      {"disconnected", [&] { end.expect_disconnected(); }},
      {"fail_pair", [&] { end.fail_pair(); }},
      {"drop", [&] { end.drop(); }},
      {"exit", [] { std::exit(0); }},  // without a word to the libraries
      {"recv", [&] { end.post_receive(n); }},
      {"send", [&] { end.post_send(IBV_WR_SEND, n, 0); }},
      {"send_se", [&] { end.post_send(IBV_WR_SEND, n, IBV_SEND_SOLICITED); }},
      {"send_imm", [&] { end.post_send(IBV_WR_SEND_WITH_IMM, n, 0); }},
      {"send_inv", [&] { end.post_send(IBV_WR_SEND_WITH_INV, n, 0); }},
      {"inv_bad", [&] { end.post_send(IBV_WR_SEND_WITH_INV, n, 0, true); }},
      {"write", [&] { end.post_remote(IBV_WR_RDMA_WRITE, n, {}); }},
      {"write_imm", [&] { end.post_remote(IBV_WR_RDMA_WRITE_WITH_IMM, n, {}); }},
      {"read", [&] { end.post_remote(IBV_WR_RDMA_READ, n, {}); }},
      {"fetch_add", [&] { end.post_remote(IBV_WR_ATOMIC_FETCH_AND_ADD, 8, {}); }},
      {"compare_swap", [&] { end.post_remote(IBV_WR_ATOMIC_CMP_AND_SWP, 8, {}); }},
      {"write_bad", [&] { end.post_remote(IBV_WR_RDMA_WRITE, n, {.wrong_key = true}); }},
      {"read_bad", [&] { end.post_remote(IBV_WR_RDMA_READ, n, {.wrong_key = true}); }},
      {"write_beyond",
       [&] { end.post_remote(IBV_WR_RDMA_WRITE, 8, {.offset = Endpoint::kWindow - 4}); }},
      {"read_beyond",
       [&] { end.post_remote(IBV_WR_RDMA_READ, 8, {.offset = Endpoint::kWindow - 4}); }},
      {"done", [&] { end.expect_done(status_named(text)); }},
      {"done_anyhow", [&] { end.expect_completion(); }},
      {"got", [&] { end.expect_message(n); }},
      {"received", [&] { end.expect_receive(status_named(text)); }},
      {"read_scattered", [&] { end.post_scattered_read(n); }},
      {"was_scattered", [&] { end.expect_scattered(n); }},
      {"was_read", [&] { end.expect_read(n); }},
      {"was_written", [&] { end.expect_written(n); }},
      {"repeat", [&] { repeat(end, text); }},
      {"together",
       [&] {
         end.hold();
         repeat(end, "1:" + text);
         end.post_held();
       }},
      {"sleep", [&] { std::this_thread::sleep_for(std::chrono::milliseconds{n}); }},
      {"signalled", [] { wait_for_signal(); }},
      {"wait_for_end", [] { std::this_thread::sleep_for(std::chrono::minutes{2}); }},
  };
  const auto found = verbs.find(verb);
  if (found == verbs.end()) throw Unexpected("this is no word of the script's");
  std::cout << word << std::endl;
  found->second();
}

int play(int count, char** words) {
  if (count < 3) {
    std::cerr << "interop_peer ADDRESS PORT [--times N] WORD...\n";
    return 2;
  }
  int first = 3;
  unsigned long times = 1;
  if (count > 5 && std::string{words[3]} == "--times") {
    times = std::stoul(words[4]);
    first = 5;
  }
  Endpoint end(words[1], static_cast<uint16_t>(std::stoul(words[2])));
  std::string at = "the beginning";
  try {
    for (unsigned long i = 0; i < times; ++i) {
      for (int w = first; w < count; ++w) {
        at = words[w];
        if (i == 0 || at != "listen") run(end, at);
      }
      if (i + 1 < times) end.drop();
    }
  } catch (const std::exception& e) {
    std::cout << "FAILED at " << at << ": " << e.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace weft::interop

int main(int count, char** words) {
  // One that comes before its word is kept. Threads of the libraries inherit this.
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigprocmask(SIG_BLOCK, &one, nullptr);
  return weft::interop::play(count, words);
}
