/** Who chose the words of a record. */
export type RecordOrigin =
  /** The kernel or a driver in it. */
  | 'kernel'
  /**
   * The kernel, about a process, a module or a packet. The record contains the name of a process or of its file, or the prefix of a
   * firewall rule, and may even begin with it. So its text is evidence only of what the kernel says about that process.
   */
  | 'about-process'
  /** A program that wrote to `/dev/kmsg`. */
  | 'program';

/**
 * Records that begin with the name of a process: `comm[pid]: segfault at`, `comm (pid): drop_caches`, `comm invoked oom-killer`,
 * `comm: page allocation failure`. A name has 15 bytes at most (TASK_COMM_LEN), any but the zero byte.
 * From show_signal_msg, arm64_show_signal, signal_fault, memfd_create, dump_header, warn_alloc and others of Linux.
 */
const NAME_FIRST = /^.{0,15}(?:\[\d{1,10}\]:? | ?\(\d{1,10}\): | invoked oom-killer: |: .*\bmode:0x[0-9a-f]+\(| uses obsolete )/;
/** Records with such a name after words of the kernel. */
const NAME_LATER =
  /^(?:traps: |umip: |audit: |audit\(|INFO: task |CPU: \d+ |Out of memory|Memory cgroup |oom-kill:|oom_reaper: |\[ *\d+\] |mmap: |process |ptrace attach |warning: process |watchdog: BUG: soft lockup|TCP: |cgroup: )/;
/** Records that begin with the name of a module, which its file chooses. From kernel/module of Linux. */
const MODULE =
  /: (?:loading out-of-tree module taints|module license |module verification failed|module is from the staging|version magic |unknown parameter|no symbol version |disagrees about version |Unknown symbol )/;
/** Records that begin with the prefix of a rule, 127 bytes at most. From net/netfilter/nf_log_syslog.c of Linux. */
const PACKET = /IN=\S{0,15} OUT=\S{0,15} /;
/**
 * Records that the kernel prints piece by piece, `…,cpuset=` `<name of a cgroup>` `,mems_allowed=0`. When another CPU prints in between, the
 * rest of the pieces is a record of its own, which begins with the name. From cpuset_print_current_mems_allowed of Linux.
 */
const CPUSET = /,mems_allowed=/;
const ABOUT_PROCESS = [NAME_FIRST, NAME_LATER, MODULE, PACKET, CPUSET];

/**
 * The facility is 0 for the kernel alone: it gives a program that writes 0 the facility 1 (devkmsg_write). `hasDevice`: the record has
 * the property DEVICE. It is then from `dev_printk`, whose text begins with the names of the driver and of the device.
 */
export function originOf(facility: number, text: string, hasDevice: boolean): RecordOrigin {
  if (facility !== 0) return 'program';
  return !hasDevice && ABOUT_PROCESS.some((form) => form.test(text)) ? 'about-process' : 'kernel';
}
