// What the scheduler does with threads of this process, for tests of real-time programs.
#pragma once

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>

namespace weft::test {

inline pid_t this_thread_id() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

// The calling thread gets a real-time priority, where that is allowed.
inline bool become_fifo(int priority) {
  const sched_param p{.sched_priority = priority};
  return ::sched_setscheduler(0, SCHED_FIFO, &p) == 0;
}

// Asked in a thread that ends: the caller stays as it is.
inline bool real_time_is_allowed(int priority = 99) {
  bool allowed = false;
  std::thread{[&] { allowed = become_fifo(priority); }}.join();
  return allowed;
}

// The priority by which a thread is scheduled at the moment, what others lend it included, as
// /proc/PID/stat has it (proc(5), field 18): -2 to -100 is a real-time priority of 1 to 99.
inline int effective_priority(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // The name, in brackets, may have anything in it. The state, field 3, follows it.
  size_t at = text.rfind(')');
  if (at == std::string::npos) return 0;
  at += 2;
  for (int field = 3; field < 18; ++field) at = text.find(' ', at) + 1;
  return std::stoi(text.substr(at));
}

inline bool has_real_time_priority(pid_t thread, int priority) {
  return effective_priority(thread) == -1 - priority;
}

// Does it sleep at the moment (state S)?
inline bool sleeps(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("State:")) return line.find("S (") != std::string::npos;
  }
  return false;
}

// How often a thread gave its processor away in order to sleep; a yield is none (proc(5), status).
inline long times_asleep(pid_t thread) {
  std::ifstream in("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string word = "voluntary_ctxt_switches:";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(word)) return std::stol(line.substr(word.size()));
  }
  return 0;
}

// The threads of this process, with their names (`comm`).
inline std::map<pid_t, std::string> threads() {
  std::map<pid_t, std::string> found;
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return found;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream in(std::string{"/proc/self/task/"} + entry->d_name + "/comm");
    std::string name;
    if (std::getline(in, name)) found[std::stoi(entry->d_name)] = name;
  }
  ::closedir(tasks);
  return found;
}
inline std::optional<pid_t> thread_called(const std::string& name) {
  for (const auto& [id, its_name] : threads()) {
    if (its_name == name) return id;
  }
  return {};
}

// Looks until `condition()` holds, for a minute; sleeps between, so that others of any class run.
template <class Condition>
bool comes_true(Condition&& condition) {
  const auto last = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

}  // namespace weft::test
