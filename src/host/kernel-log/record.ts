import { oneLine } from '../../model/one-line.ts';

/** One record of `/dev/kmsg`: one call of `printk`, and so one message, however many lines the driver printed it in. */
export interface KmsgRecord {
  /** 0 emergency to 7 debug. */
  readonly level: number;
  readonly origin: RecordOrigin;
  /** Grows by one with each record of this boot. */
  readonly seq: number;
  /** Microseconds since boot, on the kernel's own clock. */
  readonly timeUsec: number;
  /**
   * Decoded text in one line. Line breaks, also those of Unicode, and other control characters are spaces: a name in the text may contain them, and what follows
   * would pass for another message.
   */
  readonly text: string;
  /** Subsystem of the device in the record: `pci`. Only the kernel adds the properties of a device (`dev_printk`). */
  readonly subsystem?: string;
  /** Device in the kernel's notation: `+pci:0000:3b:00.0`, `b8:0`, `c1:3` or `n2`. */
  readonly device?: string;
}

/** `prio,seq,usec,flag[,…];text`. Fields that later kernels add before the semicolon are skipped. */
const HEADER = /^(\d{1,10}),(\d{1,15}),(\d{1,15}),([^,;]*)[^;]*;(.*)$/;
/** Flags of a record that is a piece of a message; kernels before 4.9 give `+` to each piece but the first. */
const PIECE = /^[c+]/;

/**
 * Parses one record: a header line and continuation lines ` KEY=value`. Undefined when the text is not a record.
 * Source: Linux Documentation/ABI/testing/dev-kmsg.
 */
export function parseKmsgRecord(record: string): KmsgRecord | undefined {
  const end = record.indexOf('\n');
  const match = HEADER.exec(end < 0 ? record : record.slice(0, end));
  if (match === null) return undefined;
  const [, priority, seq, timeUsec, flag = '', escaped = ''] = match;
  const text = oneLine(unescapeBytes(escaped)).replaceAll(/[\u2028\u2029]/g, ' ');
  const about = end < 0 ? {} : subject(record.slice(end + 1));
  const origin = originOf(Math.floor(Number(priority) / 8), text, about.device !== undefined);
  return {
    level: Number(priority) & 7,
    origin: origin === 'kernel' && PIECE.test(flag) ? 'piece' : origin,
    seq: Number(seq),
    timeUsec: Number(timeUsec),
    text,
    ...about,
  };
}

function subject(lines: string): Pick<KmsgRecord, 'subsystem' | 'device'> {
  if (!lines.startsWith(' ')) return {};
  const properties = new Map(
    lines
      .split('\n')
      .map(property)
      .filter((entry) => entry !== undefined),
  );
  const subsystem = properties.get('SUBSYSTEM');
  const device = properties.get('DEVICE');
  return { ...(subsystem !== undefined && { subsystem }), ...(device !== undefined && { device }) };
}

/** Splits complete lines into records with their continuation lines. A continuation without a preceding record is left out. */
export function recordsIn(lines: string): string[] {
  const records: string[] = [];
  for (const line of lines.split('\n')) {
    if (line === '') continue;
    if (!isContinuation(line)) records.push(line);
    else if (records.length > 0) records.push(`${records.pop()}\n${line}`);
  }
  return records;
}

function isContinuation(line: string): boolean {
  return line.startsWith(' ');
}

function property(line: string): readonly [string, string] | undefined {
  const at = line.indexOf('=');
  return isContinuation(line) && at > 1 ? [line.slice(1, at), unescapeBytes(line.slice(at + 1))] : undefined;
}

/** The kernel writes every byte outside printable ASCII, and the backslash, as `\xHH`; adjacent bytes can form one UTF-8 character. */
function unescapeBytes(text: string): string {
  if (!text.includes('\\x')) return text;
  return text.replaceAll(/(?:\\x[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('\\x', ''), 'hex').toString('utf8'));
}

/**
 * Wall clock of the machine's boot from the text of `/proc/stat`, in whole seconds; undefined when `btime` is absent.
 * Record times count from this time.
 */
export function parseBootTimeMs(stat: string): number | undefined {
  const seconds = /^btime (\d+)$/m.exec(stat)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}

/** Who chose the words of a record. */
type RecordOrigin =
  /** The kernel or a driver in it. */
  | 'kernel'
  /**
   * The kernel, about a process, a module or a packet. The record contains the name of a process or of its file, or the prefix of a
   * firewall rule, and may even begin with it. So its text is evidence only of what the kernel says about that process.
   */
  | 'about-process'
  /**
   * The kernel, in a piece of a message that several calls print (`KERN_CONT`). The words before it are another record, so it can be nothing but the
   * name of a cgroup. A driver that marks all of its lines so, whole ones too, must recognize them by their form.
   */
  | 'piece'
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
const CPUSET = /[, ]mems_allowed=/;
/** Records that begin with the name of a program's file, 255 bytes at most. From print_fatal_signal of Linux. */
const FILE_FIRST = /: potentially unexpected fatal signal \d{1,3}\.$/;
const ABOUT_PROCESS = [NAME_FIRST, NAME_LATER, MODULE, PACKET, CPUSET, FILE_FIRST];

/** Whether the next piece of the message is the name of a cgroup, in a record of its own if another CPU prints first. */
export const endsBeforeName = ({ origin, text }: KmsgRecord): boolean => origin !== 'program' && /[, ]cpuset=$/.test(text);

/**
 * The facility is 0 for the kernel alone: it gives a program that writes 0 the facility 1 (devkmsg_write). `hasDevice`: the record has
 * the property DEVICE. It is then from `dev_printk`, whose text begins with the names of the driver and of the device.
 */
function originOf(facility: number, text: string, hasDevice: boolean): RecordOrigin {
  if (facility !== 0) return 'program';
  return !hasDevice && ABOUT_PROCESS.some((form) => form.test(text)) ? 'about-process' : 'kernel';
}
