// A kernel that refuses a system call, as a service manager or a container has it do
// (RestrictAddressFamilies= of systemd.exec(5)).
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::test {

// From here on system call `number` fails with `error` in this thread and those that it starts, for
// ever; where `first` is given, with this first argument only. False: no seccomp filters here.
inline bool refuse_call(uint32_t number, uint32_t error, std::optional<uint32_t> first = {}) {
  const uint8_t any = first ? 0 : 1;
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0, any, any),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, first.value_or(0), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{.len = sizeof code / sizeof *code, .filter = code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace weft::test
