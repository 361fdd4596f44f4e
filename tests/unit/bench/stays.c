// Preloaded into `weft bench`: its sides do not exit.
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void stay(void) {
  char words[64] = "";
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, words, sizeof words - 1) < 0) return;
  close(fd);
  // weft, bench, side
  const char* word = words;
  for (int i = 0; i < 2; ++i) word += strlen(word) + 1;
  if (strcmp(word, "side") != 0) return;
  for (;;) pause();
}
