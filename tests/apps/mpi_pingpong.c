// Two ranks send each other messages of 0 bytes to 4 MB and look at every byte that comes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Around the sizes at which MPI libraries change from one protocol to the next.
static const int kSizes[] = {0,    1,    8,     57,    1000,  1016,    1017,
                             4096, 8256, 16383, 65536, 65537, 1000003, 4194304};
enum { kLargest = 4194304, kAround = 64, kUntouched = 0xa5 };

// Differs from the byte beside it, and from that of another message.
static unsigned char expected(int at, int message) {
  return (unsigned char)(at * 7 + at / 251 + message * 31);
}

static void give_up(int rank, const char* what, int size, int at) {
  printf("rank %d: %d bytes: %s, at byte %d\n", rank, size, what, at);
  fflush(stdout);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void send_one(unsigned char* memory, int size, int peer, int message) {
  for (int i = 0; i < size; ++i) memory[i] = expected(i, message);
  MPI_Send(memory, size, MPI_BYTE, peer, message, MPI_COMM_WORLD);
}

static void receive_one(unsigned char* memory, int size, int peer, int message) {
  MPI_Status status;
  int came = -1;
  memset(memory, kUntouched, (size_t)size + kAround);
  MPI_Recv(memory, size + kAround, MPI_BYTE, peer, message, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &came);
  if (came != size) give_up(1 - peer, "the message has another length", size, came);
  for (int i = 0; i < size; ++i) {
    if (memory[i] != expected(i, message)) give_up(1 - peer, "a wrong byte", size, i);
  }
  for (int i = size; i < size + kAround; ++i) {
    if (memory[i] != kUntouched) give_up(1 - peer, "a byte behind the message", size, i);
  }
}

int main(int argc, char** argv) {
  int rank, ranks, message = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char* memory = malloc(kLargest + kAround);
  if (ranks != 2 || memory == NULL) give_up(rank, "two ranks and memory are needed", ranks, 0);

  for (size_t s = 0; s < sizeof kSizes / sizeof *kSizes; ++s) {
    const int rounds = kSizes[s] <= 65537 ? 50 : 3;
    const double start = MPI_Wtime();
    for (int i = 0; i < rounds; ++i) {
      for (int leg = 0; leg < 2; ++leg, ++message) {
        if (rank == leg) {
          send_one(memory, kSizes[s], 1 - rank, message);
        } else {
          receive_one(memory, kSizes[s], 1 - rank, message);
        }
      }
    }
    // With the time that making and looking at the bytes takes.
    if (rank == 0)
      printf("%7d bytes: %.1f us there and back\n", kSizes[s],
             (MPI_Wtime() - start) / rounds * 1e6);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("every byte was right\n");
  free(memory);
  MPI_Finalize();
  return 0;
}
