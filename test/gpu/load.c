/*
 * A CUDA process without a toolkit: the driver's library by dlopen. It holds memory on one GPU and keeps it busy until its input ends.
 * Arguments: number of the GPU in the order of the bus, MiB. It prints "ready", and ends with 3 where there is no CUDA.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *library;

static void *symbol(const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "libcuda has no %s\n", name);
    exit(3);
  }
  return found;
}

static void check(int code, const char *what) {
  if (code == 0) return;
  fprintf(stderr, "%s failed with %d\n", what, code);
  exit(3);
}

int main(int count, char **words) {
  if (count < 3) return 2;
  /* Otherwise the fastest GPU is the first. */
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  int (*start)(unsigned) = (int (*)(unsigned))symbol("cuInit");
  int (*device)(int *, int) = (int (*)(int *, int))symbol("cuDeviceGet");
  int (*retain)(void **, int) = (int (*)(void **, int))symbol("cuDevicePrimaryCtxRetain");
  int (*use)(void *) = (int (*)(void *))symbol("cuCtxSetCurrent");
  int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))symbol("cuMemAlloc_v2");
  int (*fill)(uint64_t, unsigned, size_t) = (int (*)(uint64_t, unsigned, size_t))symbol("cuMemsetD32_v2");
  int (*wait)(void) = (int (*)(void))symbol("cuCtxSynchronize");
  size_t bytes = (size_t)atoi(words[2]) << 20;
  int gpu = 0;
  void *context = NULL;
  uint64_t memory = 0;
  check(start(0), "cuInit");
  check(device(&gpu, atoi(words[1])), "cuDeviceGet");
  check(retain(&context, gpu), "cuDevicePrimaryCtxRetain");
  check(use(context), "cuCtxSetCurrent");
  check(allocate(&memory, bytes), "cuMemAlloc");
  puts("ready");
  fflush(stdout);
  struct pollfd input = {.fd = 0, .events = POLLIN};
  for (unsigned round = 0; poll(&input, 1, 0) == 0; round++) {
    /* Many fills in one round, so that the GPU never waits for this loop. */
    for (int at = 0; at < 64; at++) check(fill(memory, round + at, bytes / 4), "cuMemsetD32");
    check(wait(), "cuCtxSynchronize");
  }
  return 0;
}
