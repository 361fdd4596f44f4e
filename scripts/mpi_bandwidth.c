// One-way bandwidth between two ranks: windows of messages that are under way together, each window
// answered by one small message. Prints MB/s (10^6 bytes a second) for the size that it is given.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWindow = 32, kBuffers = 4 };

int main(int argc, char** argv) {
  const int size = argc > 1 ? atoi(argv[1]) : 0;
  const double seconds = argc > 2 ? atof(argv[2]) : 0.5;
  if (size <= 0 || seconds <= 0) {
    fprintf(stderr, "usage: mpi_bandwidth BYTES [SECONDS]\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* memory = malloc((size_t)size * kBuffers);
  memset(memory, rank + 1, (size_t)size * kBuffers);
  MPI_Request requests[kWindow];
  // The first half of the time warms up.
  double begin = MPI_Wtime();
  double counted_from = begin;
  long counted = 0;
  int warm = 0;
  for (int go_on = 1; go_on;) {
    for (int i = 0; i < kWindow; ++i) {
      char* place = memory + (size_t)size * (i % kBuffers);
      if (rank == 0) {
        MPI_Isend(place, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(place, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
      }
    }
    MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) {
      const double now = MPI_Wtime();
      if (!warm && now - begin > seconds / 2) {
        warm = 1;
        counted_from = now;
        counted = 0;
      } else {
        counted += kWindow;
      }
      go_on = !warm || now - counted_from < seconds / 2;
    }
    // From the sender whether there is more; from the receiver that it has all.
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%.1f\n", (double)counted * size / (MPI_Wtime() - counted_from) / 1e6);
  free(memory);
  MPI_Finalize();
  return 0;
}
