// All ranks with all: rounds of MPI_Alltoall, whose bytes are checked. Behind them it rests, for
// whoever looks at the job: rank 0 prints "rests", and goes on with a line of its input.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Without a processor: the ranks are more than there are.
static void wait_for_all(void) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    const struct timespec pause = {0, 5 * 1000 * 1000};
    if (!done) nanosleep(&pause, NULL);
  }
}

static void rest(int rank) {
  char line[16];
  wait_for_all();
  if (rank == 0) {
    puts("rests");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  wait_for_all();
}

static char byte_of(int from, int to, int round, int i) {
  return (char)(from * 31 + to * 17 + round * 7 + i);
}

int main(int argc, char** argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? atoi(argv[2]) : 0;
  if (size <= 0 || rounds <= 0) {
    fprintf(stderr, "usage: mpi_alltoall BYTES ROUNDS\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* out = malloc((size_t)size * ranks);
  char* in = malloc((size_t)size * ranks);
  for (int round = 0; round < rounds; ++round) {
    for (int to = 0; to < ranks; ++to) {
      for (int i = 0; i < size; ++i) out[(size_t)to * size + i] = byte_of(rank, to, round, i);
    }
    MPI_Alltoall(out, size, MPI_CHAR, in, size, MPI_CHAR, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; ++from) {
      for (int i = 0; i < size; ++i) {
        if (in[(size_t)from * size + i] == byte_of(from, rank, round, i)) continue;
        fprintf(stderr, "round %d: byte %d of rank %d is wrong\n", round, i, from);
        MPI_Abort(MPI_COMM_WORLD, 1);
      }
    }
  }
  rest(rank);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
