/*
 * A library in the place of libcuda.so.1 for the tests: the first allocation tells the file of the environment variable STAND_IN_LOAD which
 * process holds how much, and a fill takes a while as on a real board.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = context; return 0; }
int cuCtxSetCurrent(void *context) { return context == NULL; }
int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
  FILE *file = fopen(getenv("STAND_IN_LOAD"), "w");
  if (file == NULL) return 2;
  fprintf(file, "%d %zu\n", getpid(), bytes);
  fclose(file);
  *memory = 4096;
  return 0;
}
int cuMemsetD32_v2(uint64_t memory, unsigned value, size_t count) { (void)value; return memory == 0 || count == 0; }
int cuCtxSynchronize(void) { usleep(50000); return 0; }
