/* The limit: the calls of one round of the agent in which nothing slow is due, straight from C, nothing done with the answers.
   Arguments: library, GPUs, instances per GPU. One batch per line on stdin, which is the number of passes; prints CPU microseconds per
   pass and calls. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

typedef int (*call)();
static void *library;
static long calls;

static call bound(const char *name) {
  call found = (call)dlsym(library, name);
  if (found == NULL) { fprintf(stderr, "no %s\n", name); exit(2); }
  return found;
}

static double cpu_us(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

#define FUNCTIONS(X) \
  X(nvmlDeviceGetTemperatureV) X(nvmlDeviceGetMigMode) X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetUtilizationRates) \
  X(nvmlDeviceGetMarginTemperature) X(nvmlDeviceGetClockInfo) X(nvmlDeviceGetCurrentClocksEventReasons) X(nvmlDeviceGetFieldValues) \
  X(nvmlDeviceGetRemappedRows) X(nvmlDeviceGetRowRemapperHistogram) X(nvmlDeviceGetSramEccErrorStatus) X(nvmlDeviceGetRepairStatus) \
  X(nvmlDeviceGetUnrepairableMemoryFlag_v1) X(nvmlDeviceGetMemoryErrorCounter) X(nvmlDeviceGetMigDeviceHandleByIndex) \
  X(nvmlDeviceGetComputeRunningProcesses_v3) X(nvmlDeviceGetGraphicsRunningProcesses_v3) X(nvmlDeviceGetMPSComputeRunningProcesses_v3) \
  X(nvmlEventSetWait_v2)
#define DECLARE(name) static call name;
FUNCTIONS(DECLARE)

static const uint32_t fields[][2] = {{82, 0}, {186, 0}, {185, 0}, {186, 2}, {186, 1}, {83, 0}, {74, 0}, {76, 0}, {77, 0},
                                     {78, 0}, {79, 0}, {95, 0}, {197, 0}, {198, 0}, {230, 0}, {269, 0}, {270, 0}, {271, 0}};
#define FIELDS (sizeof fields / sizeof *fields)
static struct { uint32_t id, scope; int64_t at, latency; uint32_t type; int code; uint64_t value; } field[FIELDS];
static uint32_t scratch[1024], processes[4096];

#define DO(...) do { (void)(__VA_ARGS__); calls++; } while (0)

static void gpu(void *d, int instances, void **migs) {
  static const int memories[] = {7, 2};
  static call *const lists[] = {&nvmlDeviceGetComputeRunningProcesses_v3, &nvmlDeviceGetGraphicsRunningProcesses_v3, &nvmlDeviceGetMPSComputeRunningProcesses_v3};
  scratch[0] = 0x0100000c; scratch[1] = 0; DO(nvmlDeviceGetTemperatureV(d, scratch));
  DO(nvmlDeviceGetMigMode(d, scratch, scratch + 2));
  scratch[0] = 0x02000028; DO(nvmlDeviceGetMemoryInfo_v2(d, scratch));
  DO(nvmlDeviceGetUtilizationRates(d, scratch));
  scratch[0] = 0x01000008; DO(nvmlDeviceGetMarginTemperature(d, scratch));
  DO(nvmlDeviceGetClockInfo(d, 1, scratch));
  DO(nvmlDeviceGetCurrentClocksEventReasons(d, scratch));
  DO(nvmlDeviceGetFieldValues(d, (int)FIELDS, field));
  DO(nvmlDeviceGetRemappedRows(d, scratch, scratch + 2, scratch + 4, scratch + 6));
  DO(nvmlDeviceGetRowRemapperHistogram(d, scratch));
  scratch[0] = 0x01000068; DO(nvmlDeviceGetSramEccErrorStatus(d, scratch));
  scratch[0] = 0x0100000c; DO(nvmlDeviceGetRepairStatus(d, scratch));
  DO(nvmlDeviceGetUnrepairableMemoryFlag_v1(d, scratch));
  for (int i = 0; i < 4; i++) DO(nvmlDeviceGetMemoryErrorCounter(d, i & 1, 0, memories[i >> 1], scratch));
  for (int i = 0; i < instances; i++) {
    scratch[0] = 0x02000028; DO(nvmlDeviceGetMemoryInfo_v2(migs[i], scratch));
    DO(nvmlDeviceGetMemoryErrorCounter(migs[i], 1, 0, 7, scratch));
  }
  for (int i = 0; i < 3; i++) { processes[0] = 512; DO((*lists[i])(d, processes, processes + 2)); }
}

int main(int count, char **words) {
  if (count < 4 || (library = dlopen(words[1], RTLD_NOW)) == NULL) return 1;
  int gpus = atoi(words[2]), instances = atoi(words[3]);
  void *handles[16], *migs[16][8];
#define BIND(name) name = bound(#name);
  FUNCTIONS(BIND)
  bound("nvmlInit_v2")();
  for (int i = 0; i < gpus; i++) {
    bound("nvmlDeviceGetHandleByIndex_v2")(i, &handles[i]);
    for (int j = 0; j < instances; j++) nvmlDeviceGetMigDeviceHandleByIndex(handles[i], j, &migs[i][j]);
  }
  void *set;
  bound("nvmlEventSetCreate")(&set);
  for (unsigned i = 0; i < FIELDS; i++) { field[i].id = fields[i][0]; field[i].scope = fields[i][1]; }
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    int passes = atoi(line);
    calls = 0;
    double before = cpu_us();
    for (int pass = 0; pass < passes; pass++) {
      for (int i = 0; i < gpus; i++) gpu(handles[i], instances, migs[i]);
      DO(nvmlEventSetWait_v2(set, scratch, 0));
    }
    printf("%.3f %ld\n", (cpu_us() - before) / passes, calls / passes);
    fflush(stdout);
  }
  return 0;
}
