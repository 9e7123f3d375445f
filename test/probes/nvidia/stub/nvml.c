/*
 * A library in the place of NVIDIA's libnvidia-ml.so.1, which answers as a machine that a text file describes: the one beside it
 * whose name ends in ".script". The file is read again whenever it changes; with the line "frozen = 1" it is read once, for measurements.
 *
 * Lines are "name = value"; "[gpu 0]" and "[mig 0 1]" open sections. A name that is not there is not supported (3).
 * "fail.<function> = <code>", "delay.<function> = <milliseconds>" and "hang.<function> = 1" hold for the section's GPU, at the top for
 * calls without one; a call that hangs goes on once there is a file "<script>.released". "end.<function> = 1" makes it abort, 2 ends it with a
 * segmentation fault, 3 with the exit status 3. "lost_after = <calls>" makes a GPU fall off the bus. "xid = <number> <xid>" is an event once its number is new.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int ret;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, SIZE = 7, TIMEOUT = 10, LOST = 15, VERSION = 25 };

#define MOST_GPUS 16
#define MOST_MIGS 8
#define MOST_VALUES 320
#define MOST_FIELDS 320
#define MOST_METRICS 128
#define SLOTS 1024
#define NONE 0xffffffffu

struct value { const char *name; int moves; uint32_t hash; char text[96]; unsigned long long number; };
struct process { char kind; unsigned pid, gi, ci; unsigned long long memory; };
struct share { unsigned pid; unsigned long long at; unsigned engine[6]; };
struct field { unsigned id, scope, type; int code; double real; unsigned long long number; };
struct device {
  int used, gpu, mig;
  int values, processes, fields, shares;
  struct value value[MOST_VALUES];
  struct process process[64];
  struct share share[64];
  struct field field[MOST_FIELDS];
  short slot[SLOTS];
  long lost_after, calls;
  /* Fields 3 to 6: errors in all memories, single and double bit, since the load and in the board's life. */
  int total_known[4];
  unsigned long long total[4];
  struct { int told, code; double value; } gpm[MOST_METRICS];
};
struct event { int number, gpu, code; unsigned xid, gi, ci, type; };

static struct device root, gpus[MOST_GPUS], migs[MOST_GPUS][MOST_MIGS];
static char script[4096];
static unsigned ticks, samples_taken, samples_live;
static int dead, moving, gpu_count, inits, frozen, taken, event_count, registered[MOST_GPUS];
static struct event events[64];
static struct timespec read_at;
static long read_size = -1;
static char names[1 << 18];
static int names_used;

/* What no reader may do ends it, and says why. */
static void forbid(const char *what) {
  fprintf(stderr, "stand-in for libnvidia-ml: %s\n", what);
  abort();
}

/* 0 to 7 in no order that a reader could keep step with. */
static unsigned jitter(void) { return (ticks = ticks * 1664525u + 1013904223u) >> 29; }

static uint32_t hash_of(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
  return hash;
}

static const char *keep(const char *text) {
  size_t length = strlen(text) + 1;
  char *at = names + names_used;
  memcpy(at, text, length);
  names_used += length;
  return at;
}

static struct value *find(struct device *device, const char *name) {
  uint32_t hash = hash_of(name);
  for (uint32_t at = hash % SLOTS; device->slot[at]; at = (at + 1) % SLOTS) {
    struct value *v = &device->value[device->slot[at] - 1];
    if (v->hash == hash && strcmp(v->name, name) == 0) return v;
  }
  return NULL;
}

static void add(struct device *device, const char *name, const char *text) {
  if (strcmp(name, "process") == 0) {
    struct process *p = &device->process[device->processes++];
    p->gi = p->ci = NONE;
    char memory[32] = "";
    sscanf(text, " %c %u %31s %u %u", &p->kind, &p->pid, memory, &p->gi, &p->ci);
    p->memory = strcmp(memory, "none") == 0 ? ~0ull : strtoull(memory, NULL, 0);
    return;
  }
  if (strcmp(name, "share") == 0) {
    /* share = pid, time in microseconds, percent of the engines gpu, memory, encoder, decoder, jpeg, ofa */
    struct share *p = &device->share[device->shares++];
    sscanf(text, "%u %llu %u %u %u %u %u %u", &p->pid, &p->at, &p->engine[0], &p->engine[1], &p->engine[2], &p->engine[3], &p->engine[4], &p->engine[5]);
    return;
  }
  if (strcmp(name, "field") == 0) {
    /* field = id scope type value, or "code N" in the place of type and value */
    if (device->fields == MOST_FIELDS) forbid("the script has more fields than there is room for");
    struct field *f = &device->field[device->fields++];
    char kind[16] = "", rest[64] = "";
    sscanf(text, "%u %u %15s %63s", &f->id, &f->scope, kind, rest);
    if (strcmp(kind, "code") == 0) f->code = atoi(rest);
    else {
      f->type = atoi(kind);
      if (f->type == 0) f->real = atof(rest);
      else f->number = (unsigned long long)strtoll(rest, NULL, 0);
    }
    return;
  }
  if (strcmp(name, "xid") == 0 || strcmp(name, "event") == 0) {
    struct event *e = &events[event_count++];
    e->gpu = device->gpu;
    e->gi = e->ci = NONE;
    e->type = 0x8;
    if (name[0] == 'x') sscanf(text, "%d %u %u %u", &e->number, &e->xid, &e->gi, &e->ci);
    else { e->xid = 0; sscanf(text, "%d %i", &e->number, (int *)&e->type); }
    return;
  }
  if (strcmp(name, "lost_after") == 0) { device->lost_after = atol(text); return; }
  if (device->values == MOST_VALUES) forbid("the script has more values than there is room for");
  struct value *v = find(device, name);
  if (v == NULL) {
    v = &device->value[device->values++];
    v->name = keep(name);
    v->hash = hash_of(name);
    uint32_t at = v->hash % SLOTS;
    while (device->slot[at]) at = (at + 1) % SLOTS;
    device->slot[at] = (short)device->values;
  }
  snprintf(v->text, sizeof v->text, "%.95s", text);
  v->moves = strncmp(name, "util_", 5) == 0 || strcmp(name, "temperature") == 0 || strcmp(name, "margin") == 0 ||
             strncmp(name, "clock_", 6) == 0 || strcmp(name, "memory_used") == 0;
  unsigned type, period, metric;
  if (sscanf(name, "gpm.%u", &metric) == 1 && metric < MOST_METRICS) {
    if (strstr(name, ".code")) device->gpm[metric].code = atoi(text);
    else { device->gpm[metric].told = 1; device->gpm[metric].value = atof(text); }
  }
  if (sscanf(name, "ecc.%u.%u.", &type, &period) == 2) {
    device->total_known[period * 2 + type] = 1;
    device->total[period * 2 + type] += strtoull(text, NULL, 0);
  }
  v->number = text[0] == '-' ? (unsigned long long)strtoll(text, NULL, 0) : strtoull(text, NULL, 0);
}

static void clear(struct device *d, int used, int gpu, int mig) {
  long calls = d->calls;
  memset(d, 0, sizeof *d);
  d->used = used; d->gpu = gpu; d->mig = mig; d->calls = calls; d->lost_after = -1;
}

static void load(void) {
  if (frozen) return;
  Dl_info own;
  if (script[0] == 0 && dladdr((void *)load, &own)) snprintf(script, sizeof script, "%s.script", own.dli_fname);
  struct stat now;
  if (stat(script, &now) != 0) return;
  if (now.st_size == read_size && now.st_mtim.tv_sec == read_at.tv_sec && now.st_mtim.tv_nsec == read_at.tv_nsec) return;
  FILE *file = fopen(script, "r");
  if (file == NULL) return;
  read_at = now.st_mtim;
  read_size = now.st_size;
  gpu_count = names_used = event_count = 0;
  clear(&root, 1, -1, -1);
  for (int i = 0; i < MOST_GPUS; i++) {
    clear(&gpus[i], 0, i, -1);
    for (int j = 0; j < MOST_MIGS; j++) clear(&migs[i][j], 0, i, j);
  }
  struct device *section = &root;
  char line[512], name[128], text[256];
  while (fgets(line, sizeof line, file)) {
    int gpu, mig;
    if (sscanf(line, "[mig %d %d]", &gpu, &mig) == 2) { section = &migs[gpu][mig]; section->used = 1; }
    else if (sscanf(line, "[gpu %d]", &gpu) == 1) { section = &gpus[gpu]; section->used = 1; if (gpu >= gpu_count) gpu_count = gpu + 1; }
    else if (sscanf(line, " %127[^ =] = %255[^\n]", name, text) == 2) add(section, name, text);
  }
  fclose(file);
  moving = find(&root, "moves") != NULL;
  if (find(&root, "frozen")) frozen = 1;
}

static ret injected(struct device *device, const char *function) {
  char name[160];
  struct value *v;
  if (device->values == 0) return OK;
  snprintf(name, sizeof name, "delay.%s", function);
  if ((v = find(device, name))) usleep(v->number * 1000);
  snprintf(name, sizeof name, "hang.%s", function);
  if (find(device, name)) {
    char released[4096 + 16];
    snprintf(released, sizeof released, "%s.released", script);
    while (access(released, F_OK) != 0) usleep(20000);
  }
  snprintf(name, sizeof name, "end.%s", function);
  if ((v = find(device, name))) {
    if (v->number == 1) abort();
    if (v->number == 2) *(volatile int *)0 = 1;
    _exit(3);
  }
  snprintf(name, sizeof name, "fail.%s", function);
  return (v = find(device, name)) ? (ret)v->number : OK;
}

/* What every call on a device does first. */
static ret enter(struct device *device, const char *function) {
  load();
  if (!inits || dead) return UNINITIALIZED;
  char *at = (char *)device;
  if (!((at >= (char *)gpus && at < (char *)(gpus + MOST_GPUS)) || (at >= (char *)migs && at < (char *)migs + sizeof migs))) return INVALID;
  if (!device->used) return INVALID;
  struct device *gpu = &gpus[device->gpu];
  gpu->calls++;
  if (!frozen) {
    ret code = injected(gpu, function);
    /* Handles do not outlive the driver: only a client that starts anew gets new ones. */
    dead = code == UNINITIALIZED || code == 9 || code == 28;
    if (code != OK) return code;
    if (device != gpu && (code = injected(device, function)) != OK) return code;
  }
  if (gpu->lost_after >= 0 && gpu->calls > gpu->lost_after) return LOST;
  return OK;
}

static ret node(const char *function) {
  load();
  return frozen ? OK : injected(&root, function);
}

static ret number(struct device *device, const char *function, const char *name, unsigned *out) {
  ret code = enter(device, function);
  if (code != OK) return code;
  struct value *v = find(device, name);
  if (v == NULL) return UNSUPPORTED;
  *out = (unsigned)v->number + (moving && v->moves ? jitter() : 0);
  return OK;
}

static ret text_of(struct device *device, const char *function, const char *name, char *out, unsigned length) {
  ret code = enter(device, function);
  if (code != OK) return code;
  struct value *v = find(device, name);
  if (v == NULL) return UNSUPPORTED;
  if (strlen(v->text) + 1 > length) return SIZE;
  strcpy(out, v->text);
  return OK;
}

#define NUMBER(function, name) ret function(struct device *d, unsigned *out) { return number(d, #function, name, out); }
#define TEXT(function, name) ret function(struct device *d, char *out, unsigned length) { return text_of(d, #function, name, out, length); }
#define KINDS(function, ...)                                                                      \
  ret function(struct device *d, int kind, unsigned *out) {                                       \
    static const char *const name[] = {__VA_ARGS__};                                              \
    if (kind < 0 || kind >= (int)(sizeof name / sizeof *name)) return INVALID;                    \
    return number(d, #function, name[kind], out);                                                 \
  }
#define PAIR(function, first, second)                                                             \
  ret function(struct device *d, unsigned *a, unsigned *b) {                                      \
    ret code = number(d, #function, first, a);                                                    \
    return code != OK ? code : number(d, #function, second, b);                                   \
  }

/* A driver has its device files open while a client runs: here the file "<script>.device", if there is one. */
static int device_file = -1;
ret nvmlInit_v2(void) {
  ret code = node("nvmlInit_v2");
  if (code != OK) return code;
  char path[4096 + 16];
  snprintf(path, sizeof path, "%s.device", script);
  if (inits++ == 0) device_file = open(path, O_RDONLY | O_CLOEXEC);
  return OK;
}
/* How the client of the vendor starts it. */
ret nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }
ret nvmlShutdown(void) {
  if (!inits) return UNINITIALIZED;
  if (--inits == 0 && device_file >= 0) {
    close(device_file);
    device_file = -1;
  }
  /* A sample must not outlive its library. */
  if (inits == 0 && samples_live != 0) forbid("a GPM sample outlives the last client");
  dead = 0;
  memset(registered, 0, sizeof registered);
  return OK;
}
static ret root_text(const char *function, const char *name, char *out, unsigned length) {
  ret code = node(function);
  struct value *v = find(&root, name);
  if (code != OK || v == NULL) return code != OK ? code : UNSUPPORTED;
  if (strlen(v->text) + 1 > length) return SIZE;
  strcpy(out, v->text);
  return OK;
}
ret nvmlSystemGetDriverVersion(char *out, unsigned length) { return root_text("nvmlSystemGetDriverVersion", "driver", out, length); }
ret nvmlSystemGetCudaDriverVersion(int *out) {
  struct value *v = find(&root, "cuda");
  if (v == NULL) return UNSUPPORTED;
  *out = (int)v->number;
  return OK;
}
ret nvmlDeviceGetCount_v2(unsigned *out) { ret code = node("nvmlDeviceGetCount_v2"); *out = gpu_count; return inits ? code : UNINITIALIZED; }
ret nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **out) {
  load();
  if (!inits) return UNINITIALIZED;
  if (index >= (unsigned)gpu_count) return INVALID;
  ret code = enter(&gpus[index], "nvmlDeviceGetHandleByIndex_v2");
  *out = &gpus[index];
  return code;
}
/* A lookup by UUID is what no caller should do. */
ret nvmlDeviceGetHandleByUUID(const char *uuid, struct device **out) { (void)uuid; (void)out; forbid("nvmlDeviceGetHandleByUUID wakes every GPU"); return OK; }

TEXT(nvmlDeviceGetUUID, "uuid")
TEXT(nvmlDeviceGetName, "name")
TEXT(nvmlDeviceGetSerial, "serial")
TEXT(nvmlDeviceGetBoardPartNumber, "board_part")
TEXT(nvmlDeviceGetVbiosVersion, "vbios")
ret nvmlDeviceGetGspFirmwareVersion(struct device *d, char *out) { return text_of(d, "nvmlDeviceGetGspFirmwareVersion", "gsp", out, 80); }
NUMBER(nvmlDeviceGetMinorNumber, "minor")
NUMBER(nvmlDeviceGetModuleId, "module")
NUMBER(nvmlDeviceGetBrand, "brand")
NUMBER(nvmlDeviceGetArchitecture, "architecture")

struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
ret nvmlDeviceGetPciInfo_v3(struct device *d, struct pci *out) {
  _Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");
  ret code = text_of(d, "nvmlDeviceGetPciInfo_v3", "bus_id", out->bus_id, 32);
  if (code == OK) number(d, "", "pci_device", &out->id);
  return code;
}

/* "drained = <bus>" at the top: an administrator drains the GPU on this bus. */
ret nvmlDeviceQueryDrainState(struct pci *which, unsigned *out) {
  struct value *v = find(&root, "drained");
  *out = v != NULL && v->number == which->bus;
  return node("nvmlDeviceQueryDrainState");
}

NUMBER(nvmlDeviceGetVirtualizationMode, "virtualization")
/* "license" is the state of the one feature. */
struct licence { unsigned code, state; char info[128], product[128]; unsigned enabled; struct { unsigned year; unsigned short month, day, hour, min, sec; unsigned char status; } expiry; };
struct licences { int supported; unsigned count; struct licence list[3]; };
ret nvmlDeviceGetGridLicensableFeatures_v4(struct device *d, struct licences *out) {
  _Static_assert(sizeof(struct licence) == 284 && sizeof(struct licences) == 860, "nvmlGridLicensableFeatures_t");
  unsigned state = 0;
  ret code = number(d, "nvmlDeviceGetGridLicensableFeatures_v4", "license", &state);
  if (code != OK) return code;
  out->supported = 1; out->count = 1; out->list[0].code = 1; out->list[0].state = state; out->list[0].enabled = 1;
  return OK;
}

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
static unsigned long long big(struct device *d, const char *name) {
  struct value *v = find(d, name);
  return v ? v->number + (moving && v->moves ? jitter() << 20 : 0) : 0;
}
ret nvmlDeviceGetMemoryInfo_v2(struct device *d, struct memory_v2 *out) {
  _Static_assert(sizeof(struct memory_v2) == 40, "nvmlMemory_v2_t");
  ret code = enter(d, "nvmlDeviceGetMemoryInfo_v2");
  if (code != OK) return code;
  if (out->version != (40 | 2 << 24)) return VERSION;
  if (!find(d, "memory_total")) return UNSUPPORTED;
  out->total = big(d, "memory_total"); out->reserved = big(d, "memory_reserved"); out->used = big(d, "memory_used");
  out->free = out->total - out->reserved - out->used;
  return OK;
}
static ret usage(struct device *d, const char *function, const char *total, const char *used, const char *reserved, struct memory *out) {
  ret code = enter(d, function);
  if (code != OK) return code;
  if (!find(d, total)) return UNSUPPORTED;
  out->total = big(d, total); out->used = big(d, used) + (reserved ? big(d, reserved) : 0); out->free = out->total - out->used;
  return OK;
}
ret nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out) { return usage(d, "nvmlDeviceGetMemoryInfo", "memory_total", "memory_used", "memory_reserved", out); }
ret nvmlDeviceGetBAR1MemoryInfo(struct device *d, struct memory *out) { return usage(d, "nvmlDeviceGetBAR1MemoryInfo", "bar1_total", "bar1_used", NULL, out); }
ret nvmlDeviceGetConfComputeProtectedMemoryUsage(struct device *d, struct memory *out) { return usage(d, "nvmlDeviceGetConfComputeProtectedMemoryUsage", "protected_total", "protected_used", NULL, out); }

ret nvmlDeviceGetUtilizationRates(struct device *d, unsigned *out) {
  ret code = number(d, "nvmlDeviceGetUtilizationRates", "util_gpu", &out[0]);
  return code != OK ? code : number(d, "nvmlDeviceGetUtilizationRates", "util_memory", &out[1]);
}
#define ENGINE(function, name) ret function(struct device *d, unsigned *out, unsigned *period) { *period = 167000; return number(d, #function, name, out); }
ENGINE(nvmlDeviceGetEncoderUtilization, "util_encoder")
ENGINE(nvmlDeviceGetDecoderUtilization, "util_decoder")
ENGINE(nvmlDeviceGetJpgUtilization, "util_jpeg")
ENGINE(nvmlDeviceGetOfaUtilization, "util_ofa")

struct temperature { unsigned version; int sensor, value; };
ret nvmlDeviceGetTemperatureV(struct device *d, struct temperature *out) {
  if (find(&root, "without.nvmlDeviceGetTemperatureV")) return 13;
  ret code = enter(d, "nvmlDeviceGetTemperatureV");
  if (code != OK) return code;
  if (out->version != (12 | 1 << 24)) return VERSION;
  if (out->sensor != 0) return INVALID;
  return number(d, "", "temperature", (unsigned *)&out->value);
}
KINDS(nvmlDeviceGetTemperature, "temperature")
ret nvmlDeviceGetMarginTemperature(struct device *d, unsigned *out) {
  ret code = enter(d, "nvmlDeviceGetMarginTemperature");
  if (code != OK) return code;
  return out[0] != (8 | 1 << 24) ? VERSION : number(d, "", "margin", &out[1]);
}
KINDS(nvmlDeviceGetTemperatureThreshold, "threshold_shutdown", "threshold_slowdown", "threshold_memory", "threshold_gpu")
KINDS(nvmlDeviceGetClockInfo, "clock_graphics", "clock_sm", "clock_memory", "clock_video")
KINDS(nvmlDeviceGetMaxClockInfo, "max_clock_graphics", "max_clock_sm", "max_clock_memory", "max_clock_video")
NUMBER(nvmlDeviceGetPerformanceState, "pstate")
KINDS(nvmlDeviceGetFanSpeed_v2, "fan")
NUMBER(nvmlDeviceGetPowerUsage, "power")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "limit_enforced")
NUMBER(nvmlDeviceGetPowerManagementLimit, "limit_requested")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "limit_default")
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "limit_minimum", "limit_maximum")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
NUMBER(nvmlDeviceGetPersistenceMode, "persistence")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode")
PAIR(nvmlDeviceGetEccMode, "ecc_current", "ecc_pending")
PAIR(nvmlDeviceGetMigMode, "mig_current", "mig_pending")
ret nvmlDeviceGetCurrentClocksEventReasons(struct device *d, unsigned long long *out) {
  ret code = enter(d, "nvmlDeviceGetCurrentClocksEventReasons");
  if (code != OK) return code;
  if (!find(d, "reasons")) return UNSUPPORTED;
  *out = big(d, "reasons");
  return OK;
}
ret nvmlDeviceGetEncoderStats(struct device *d, unsigned *sessions, unsigned *fps, unsigned *latency) {
  *fps = *latency = 0;
  return number(d, "nvmlDeviceGetEncoderStats", "encoder_sessions", sessions);
}
/* Would block for 20 ms on a real board: no caller should ask. */
ret nvmlDeviceGetPcieThroughput(struct device *d, int counter, unsigned *out) { (void)d; (void)counter; (void)out; forbid("nvmlDeviceGetPcieThroughput blocks for 20 ms"); return OK; }
/* "inforom = 14": damaged. */
ret nvmlDeviceValidateInforom(struct device *d) {
  ret code = enter(d, "nvmlDeviceValidateInforom");
  if (code != OK) return code;
  struct value *v = find(d, "inforom");
  return v == NULL ? UNSUPPORTED : (ret)v->number;
}
/* "slot", "tray", "host", and the serial number of the chassis, which may be empty. */
ret nvmlDeviceGetPlatformInfo(struct device *d, unsigned char *out) {
  ret code = enter(d, "nvmlDeviceGetPlatformInfo");
  if (code != OK) return code;
  if (*(unsigned *)out != (44 | 2 << 24)) return VERSION;
  if (!find(d, "slot")) return UNSUPPORTED;
  out[4] = 0xb8;
  struct value *chassis = find(d, "chassis");
  if (chassis) memcpy(out + 20, chassis->text, strlen(chassis->text) < 16 ? strlen(chassis->text) : 16);
  out[36] = (unsigned char)big(d, "slot"); out[37] = (unsigned char)big(d, "tray"); out[38] = (unsigned char)big(d, "host");
  return OK;
}

ret nvmlDeviceGetMemoryErrorCounter(struct device *d, int type, int counter, int location, unsigned long long *out) {
  static const char *const names[2][2][8] = {
    {{"ecc.0.0.0", "ecc.0.0.1", "ecc.0.0.2", "ecc.0.0.3", "ecc.0.0.4", "ecc.0.0.5", "ecc.0.0.6", "ecc.0.0.7"},
     {"ecc.0.1.0", "ecc.0.1.1", "ecc.0.1.2", "ecc.0.1.3", "ecc.0.1.4", "ecc.0.1.5", "ecc.0.1.6", "ecc.0.1.7"}},
    {{"ecc.1.0.0", "ecc.1.0.1", "ecc.1.0.2", "ecc.1.0.3", "ecc.1.0.4", "ecc.1.0.5", "ecc.1.0.6", "ecc.1.0.7"},
     {"ecc.1.1.0", "ecc.1.1.1", "ecc.1.1.2", "ecc.1.1.3", "ecc.1.1.4", "ecc.1.1.5", "ecc.1.1.6", "ecc.1.1.7"}}};
  ret code = enter(d, "nvmlDeviceGetMemoryErrorCounter");
  if (code != OK) return code;
  if (type < 0 || type > 1 || counter < 0 || counter > 1 || location < 0 || location > 7) return INVALID;
  struct value *v = find(d, names[type][counter][location]);
  if (v == NULL) return UNSUPPORTED;
  *out = v->number;
  return OK;
}
struct sram { unsigned version; unsigned long long count[11]; unsigned exceeded; };
ret nvmlDeviceGetSramEccErrorStatus(struct device *d, struct sram *out) {
  _Static_assert(sizeof(struct sram) == 104, "nvmlEccSramErrorStatus_v1_t");
  ret code = enter(d, "nvmlDeviceGetSramEccErrorStatus");
  if (code != OK) return code;
  if (out->version != (104 | 1 << 24)) return VERSION;
  if (!find(d, "sram_exceeded")) return UNSUPPORTED;
  out->count[6] = big(d, "sram_l2"); out->count[7] = big(d, "sram_sm"); out->count[8] = big(d, "sram_pcie");
  out->count[9] = big(d, "sram_mcu"); out->count[10] = big(d, "sram_other");
  out->exceeded = (unsigned)big(d, "sram_exceeded");
  return OK;
}
ret nvmlDeviceGetRemappedRows(struct device *d, unsigned *corr, unsigned *unc, unsigned *pending, unsigned *failure) {
  ret code = number(d, "nvmlDeviceGetRemappedRows", "remap_corr", corr);
  if (code != OK) return code;
  *unc = big(d, "remap_unc"); *pending = big(d, "remap_pending"); *failure = big(d, "remap_failure");
  return OK;
}
ret nvmlDeviceGetRowRemapperHistogram(struct device *d, unsigned *out) {
  ret code = number(d, "nvmlDeviceGetRowRemapperHistogram", "banks_max", &out[0]);
  if (code != OK) return code;
  out[1] = big(d, "banks_high"); out[2] = big(d, "banks_partial"); out[3] = big(d, "banks_low"); out[4] = big(d, "banks_none");
  return OK;
}
ret nvmlDeviceGetRepairStatus(struct device *d, unsigned *out) {
  ret code = enter(d, "nvmlDeviceGetRepairStatus");
  if (code != OK) return code;
  if (out[0] != (12 | 1 << 24)) return VERSION;
  if ((code = number(d, "", "repair_channel", &out[1])) != OK) return code;
  return number(d, "", "repair_tpc", &out[2]);
}
NUMBER(nvmlDeviceGetUnrepairableMemoryFlag_v1, "unrepairable")

ret nvmlDeviceGetGpuFabricInfoV(struct device *d, unsigned char *out) {
  ret code = enter(d, "nvmlDeviceGetGpuFabricInfoV");
  if (code != OK) return code;
  unsigned version = *(unsigned *)out;
  int newest = find(d, "fabric_version") ? (int)big(d, "fabric_version") : 3;
  if (version != (36 | 2 << 24) && version != (40 | 3 << 24)) return VERSION;
  if ((int)(version >> 24) > newest) return VERSION;
  if (!find(d, "fabric_state")) return UNSUPPORTED;
  out[19] = find(d, "fabric_cluster") ? (unsigned char)big(d, "fabric_cluster") : 0;
  *(unsigned *)(out + 20) = (unsigned)big(d, "fabric_status");
  *(unsigned *)(out + 24) = find(d, "fabric_clique") ? (unsigned)big(d, "fabric_clique") : 0;
  out[28] = (unsigned char)big(d, "fabric_state");
  *(unsigned *)(out + 32) = (unsigned)big(d, "fabric_mask");
  if (version >> 24 == 3) out[36] = (unsigned char)big(d, "fabric_summary");
  return OK;
}

ret nvmlDeviceGetNvLinkState(struct device *d, unsigned link, unsigned *out) {
  char name[32];
  snprintf(name, sizeof name, "link.%u", link);
  ret code = number(d, "nvmlDeviceGetNvLinkState", name, out);
  return code == UNSUPPORTED && link > 0 ? INVALID : code;
}
/* "link.<n>.type = 2" leads to a switch, "link.<n>.remote = <bus id>" to another function. */
ret nvmlDeviceGetNvLinkRemoteDeviceType(struct device *d, unsigned link, unsigned *out) {
  char name[32];
  snprintf(name, sizeof name, "link.%u.type", link);
  return number(d, "nvmlDeviceGetNvLinkRemoteDeviceType", name, out);
}
ret nvmlDeviceGetNvLinkRemotePciInfo_v2(struct device *d, unsigned link, struct pci *out) {
  char name[32];
  snprintf(name, sizeof name, "link.%u.remote", link);
  return text_of(d, "nvmlDeviceGetNvLinkRemotePciInfo_v2", name, out->bus_id, 32);
}
/* "p2p.<index of the other GPU> = 0": access over NVLink is OK; 5: not supported. */
ret nvmlDeviceGetP2PStatus(struct device *d, struct device *other, int capability, unsigned *out) {
  char name[32];
  if (capability != 2) return INVALID;
  snprintf(name, sizeof name, "p2p.%d", other->gpu);
  return number(d, "nvmlDeviceGetP2PStatus", name, out);
}
ret nvmlDeviceGetNvLinkErrorCounter(struct device *d, unsigned link, int counter, unsigned long long *out) {
  char name[48];
  snprintf(name, sizeof name, "link.%u.error.%d", link, counter);
  ret code = enter(d, "nvmlDeviceGetNvLinkErrorCounter");
  struct value *v = find(d, name);
  if (code != OK || v == NULL) return code != OK ? code : UNSUPPORTED;
  *out = v->number;
  return OK;
}

struct field_value { unsigned id, scope; long long timestamp, latency; unsigned type; int code; union { double real; unsigned u; unsigned long long ull; int i; long long ll; } value; };
ret nvmlDeviceGetFieldValues(struct device *d, int count, struct field_value *out) {
  _Static_assert(sizeof(struct field_value) == 40, "nvmlFieldValue_t");
  ret code = enter(d, "nvmlDeviceGetFieldValues");
  if (code != OK) return code;
  for (int i = 0; i < count; i++) {
    out[i].code = UNSUPPORTED;
    if (out[i].id >= 3 && out[i].id <= 6 && out[i].scope == 0 && d->total_known[out[i].id - 3]) { out[i].code = OK; out[i].type = 3; out[i].value.ull = d->total[out[i].id - 3]; }
    for (int j = 0; j < d->fields; j++) {
      struct field *f = &d->field[j];
      if (f->id != out[i].id || f->scope != out[i].scope) continue;
      out[i].code = f->code;
      out[i].type = f->type;
      if (f->type == 0) out[i].value.real = f->real;
      else out[i].value.ull = f->number + (moving && (f->id == 82 || f->id == 83 || f->id == 138 || f->id == 139 || f->id == 185 || f->id == 186 || f->id == 202 || f->id == 204) ? jitter() : 0);
      break;
    }
  }
  return OK;
}

struct process_info { unsigned pid; unsigned long long memory; unsigned gi, ci; };
/* What the third version wrote in the first builds of the branch 535: "long_processes = 1". */
struct long_process_info { struct process_info info; unsigned long long protected; };
static ret processes(struct device *d, const char *function, char kind, unsigned *count, void *out) {
  _Static_assert(sizeof(struct process_info) == 24 && sizeof(struct long_process_info) == 32, "nvmlProcessInfo_t");
  int is_long = find(&root, "long_processes") && strstr(function, "_v3");
  ret code = enter(d, function);
  if (code != OK) return code;
  unsigned found = 0;
  for (int i = 0; i < d->processes; i++) found += d->process[i].kind == kind;
  unsigned room = *count;
  *count = found;
  if (found > room) return SIZE;
  for (int i = 0, at = 0; i < d->processes; i++) {
    struct process *p = &d->process[i];
    if (p->kind != kind) continue;
    struct process_info info = {p->pid, p->memory, p->gi, p->ci};
    if (is_long) ((struct long_process_info *)out)[at++] = (struct long_process_info){info, ~0ull};
    else ((struct process_info *)out)[at++] = info;
  }
  return OK;
}
#define PROCESSES(function, kind) ret function(struct device *d, unsigned *count, void *out) { return processes(d, #function, kind, count, out); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 'C')
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 'C')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 'G')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 'G')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 'M')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'M')

/* What was spent on processes after a time; split GPUs do not tell. */
static ret shares(struct device *d, const char *function, unsigned long long since, unsigned *count) {
  ret code = enter(d, function);
  if (code != OK) return code;
  if (d->shares == 0 || (find(d, "mig_current") && big(d, "mig_current"))) return UNSUPPORTED;
  unsigned room = *count, found = 0;
  for (int i = 0; i < d->shares; i++) found += d->share[i].at > since;
  *count = found;
  return found == 0 ? NOT_FOUND : found > room ? SIZE : OK;
}
struct old_share { unsigned pid; unsigned long long at; unsigned engine[4]; };
ret nvmlDeviceGetProcessUtilization(struct device *d, struct old_share *out, unsigned *count, unsigned long long since) {
  _Static_assert(sizeof(struct old_share) == 32, "nvmlProcessUtilizationSample_t");
  ret code = shares(d, "nvmlDeviceGetProcessUtilization", since, count);
  for (int i = 0; code == OK && i < d->shares; i++) {
    struct share *s = &d->share[i];
    if (s->at > since) *out++ = (struct old_share){s->pid, s->at, {s->engine[0], s->engine[1], s->engine[2], s->engine[3]}};
  }
  return code;
}
struct new_share { unsigned long long at; unsigned pid, engine[6]; };
struct new_shares { unsigned version, count; unsigned long long since; struct new_share *list; };
ret nvmlDeviceGetProcessesUtilizationInfo(struct device *d, struct new_shares *out) {
  _Static_assert(sizeof(struct new_share) == 40 && sizeof(struct new_shares) == 24, "nvmlProcessesUtilizationInfo_v1_t");
  if (out->version != (24 | 1 << 24)) return VERSION;
  ret code = shares(d, "nvmlDeviceGetProcessesUtilizationInfo", out->since, &out->count);
  for (int i = 0, at = 0; code == OK && i < d->shares; i++) {
    struct share *s = &d->share[i];
    if (s->at <= out->since) continue;
    out->list[at] = (struct new_share){.at = s->at, .pid = s->pid};
    memcpy(out->list[at++].engine, s->engine, sizeof s->engine);
  }
  return code;
}

ret nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *out) { *out = MOST_MIGS - 1; return enter(d, "nvmlDeviceGetMaxMigDeviceCount"); }
ret nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index, struct device **out) {
  ret code = enter(d, "nvmlDeviceGetMigDeviceHandleByIndex");
  if (code != OK) return code;
  if (index >= MOST_MIGS) return INVALID;
  if (!migs[d->gpu][index].used) return NOT_FOUND;
  *out = &migs[d->gpu][index];
  return OK;
}
/* Values of GPM are "gpm.<id> = <number>"; "gpm.<id>.code = <code>" refuses one. A sample of a split GPU's instance is told by [mig]. */
struct sample { struct device *device; unsigned taken; };
struct gpm_metric { unsigned id; int code; double value; const char *info[3]; };
struct gpm_get { unsigned version, count; struct sample *first, *second; struct gpm_metric metric[477]; };

ret nvmlGpmQueryDeviceSupport(struct device *d, unsigned *out) {
  ret code = enter(d, "nvmlGpmQueryDeviceSupport");
  if (code != OK) return code;
  if (out[0] != 1) return VERSION;
  out[1] = find(d, "gpm") != NULL;
  return OK;
}
ret nvmlGpmSampleAlloc(struct sample **out) {
  ret code = node("nvmlGpmSampleAlloc");
  if (code != OK) return code;
  *out = calloc(1, sizeof **out);
  samples_live++;
  return OK;
}
ret nvmlGpmSampleFree(struct sample *sample) { free(sample); samples_live--; return OK; }
static ret sampled(struct device *d, struct device *told, const char *function, struct sample *sample) {
  ret code = enter(d, function);
  if (code != OK) return code;
  if (!find(&gpus[d->gpu], "gpm")) return UNSUPPORTED;
  sample->device = told;
  sample->taken = ++samples_taken;
  return OK;
}
ret nvmlGpmSampleGet(struct device *d, struct sample *sample) { return sampled(d, d, "nvmlGpmSampleGet", sample); }
ret nvmlGpmMigSampleGet(struct device *d, unsigned gi, struct sample *sample) {
  for (int i = 0; i < MOST_MIGS; i++) {
    struct device *mig = &migs[d->gpu][i];
    struct value *v = mig->used ? find(mig, "gi") : NULL;
    if (v != NULL && v->number == gi) return sampled(d, mig, "nvmlGpmMigSampleGet", sample);
  }
  return NOT_FOUND;
}
ret nvmlGpmMetricsGet(struct gpm_get *get) {
  _Static_assert(sizeof(struct gpm_get) == 19104, "nvmlGpmMetricsGet_t");
  ret code = node("nvmlGpmMetricsGet");
  if (code != OK) return code;
  if (get->version != 1) return VERSION;
  struct device *d = get->first->device;
  if (d == NULL || d != get->second->device || get->first->taken >= get->second->taken) return INVALID;
  for (unsigned i = 0; i < get->count; i++) {
    unsigned id = get->metric[i].id;
    if (id >= MOST_METRICS) return INVALID;
    get->metric[i].code = d->gpm[id].code != OK ? d->gpm[id].code : d->gpm[id].told ? OK : UNSUPPORTED;
    get->metric[i].value = d->gpm[id].value;
  }
  return OK;
}

NUMBER(nvmlDeviceGetGpuInstanceId, "gi")
NUMBER(nvmlDeviceGetComputeInstanceId, "ci")
struct attributes { unsigned sm, ce, dec, enc, jpeg, ofa, gi, ci; unsigned long long memory; };
ret nvmlDeviceGetAttributes_v2(struct device *d, struct attributes *out) { return number(d, "nvmlDeviceGetAttributes_v2", "multiprocessors", &out->sm); }

ret nvmlDeviceGetSupportedEventTypes(struct device *d, unsigned long long *out) {
  ret code = enter(d, "nvmlDeviceGetSupportedEventTypes");
  *out = find(d, "event_types") ? big(d, "event_types") : 0x1f;
  return code;
}
ret nvmlEventSetCreate(void **out) { *out = &events; return inits ? OK : UNINITIALIZED; }
ret nvmlEventSetFree(void *set) { return set == &events ? OK : INVALID; }
ret nvmlDeviceRegisterEvents(struct device *d, unsigned long long types, void *set) {
  ret code = enter(d, "nvmlDeviceRegisterEvents");
  if (code != OK) return code;
  if (set != &events) return INVALID;
  if (types & ~(find(d, "event_types") ? big(d, "event_types") : 0x1f)) return UNSUPPORTED;
  registered[d->gpu] = 1;
  /* What was before is never told. */
  for (int i = 0; i < event_count; i++) if (events[i].gpu == d->gpu && events[i].number > taken) taken = events[i].number;
  return OK;
}
struct event_data { void *device; unsigned long long type, data; unsigned gi, ci; };
ret nvmlEventSetWait_v2(void *set, struct event_data *out, unsigned timeout) {
  _Static_assert(sizeof(struct event_data) == 32, "nvmlEventData_t");
  ret code = node("nvmlEventSetWait_v2");
  if (code != OK) return code;
  if (set != &events) return INVALID;
  for (unsigned waited = 0;; waited += 10) {
    load();
    for (int i = 0; i < event_count; i++) {
      struct event *e = &events[i];
      if (e->number <= taken || !registered[e->gpu]) continue;
      taken = e->number;
      *out = (struct event_data){&gpus[e->gpu], e->type, e->xid, e->gi, e->ci};
      return OK;
    }
    if (waited >= timeout) return TIMEOUT;
    usleep(10000);
  }
}

/* System events: "system_event = <number> <type>" of the node is one event once its number is new. */
struct system_set { unsigned version; void *set; };
struct system_register { unsigned version; unsigned long long types; void *set; };
struct system_event { unsigned long long type; unsigned gpu; };
struct system_wait { unsigned version, timeout; void *set; struct system_event *events; unsigned room, count; };
static int system_sets, system_taken;
static unsigned long long system_types;

static int system_number(unsigned long long *type) {
  int number = 0;
  struct value *v = find(&root, "system_event");
  if (v != NULL) sscanf(v->text, "%d %llu", &number, type);
  return number;
}

ret nvmlSystemEventSetCreate(struct system_set *request) {
  _Static_assert(sizeof(struct system_set) == 16, "nvmlSystemEventSetCreateRequest_v1_t");
  ret code = node("nvmlSystemEventSetCreate");
  if (code != OK) return code;
  if (request->version != (16 | 1 << 24)) return VERSION;
  unsigned long long type = 0;
  system_sets++;
  system_taken = system_number(&type);
  request->set = &system_sets;
  return OK;
}
ret nvmlSystemEventSetFree(struct system_set *request) {
  if (request->version != (16 | 1 << 24) || request->set != &system_sets || system_sets == 0) return INVALID;
  system_sets--;
  return OK;
}
ret nvmlSystemRegisterEvents(struct system_register *request) {
  _Static_assert(sizeof(struct system_register) == 24, "nvmlSystemRegisterEventRequest_v1_t");
  if (request->version != (24 | 1 << 24)) return VERSION;
  if (request->set != &system_sets) return INVALID;
  system_types = request->types;
  return OK;
}
ret nvmlSystemEventSetWait(struct system_wait *request) {
  _Static_assert(sizeof(struct system_wait) == 32 && sizeof(struct system_event) == 16, "nvmlSystemEventSetWaitRequest_v1_t");
  ret code = node("nvmlSystemEventSetWait");
  if (code != OK) return code;
  if (request->version != (32 | 1 << 24)) return VERSION;
  if (request->set != &system_sets || request->room == 0) return INVALID;
  unsigned long long type = 0;
  int number = system_number(&type);
  if (number <= system_taken || !(system_types & type)) return TIMEOUT;
  system_taken = number;
  request->events[0] = (struct system_event){type, 0x3b00};
  request->count = 1;
  return OK;
}
