import type { Pseudonyms } from './pseudonyms.ts';

/** Names of programs that tell nothing about who uses the machine. The probes know some of them. */
const COMMON = /^(?:nvidia|python|java|node|bash|sh|Xorg|ray|mpirun|orted|nv|kworker|systemd)/;
const nameOf = (name: string, pseudonyms: Pseudonyms): string =>
  name === '' || COMMON.test(name) ? name : pseudonyms.name(`program ${name}`, 'p').slice(0, 12);

/** The kernel cuts the name of a program after so many characters. */
const NAME_LENGTH = 15;

/** Replaces names of programs in the list of an option, so that they still fit those in `/proc/<pid>`. */
export const redactPrograms = (list: string, pseudonyms: Pseudonyms): string =>
  list
    .split(',')
    .map((name) => nameOf(name.slice(0, NAME_LENGTH), pseudonyms))
    .join(',');

/** Replaces the name of a program in a file of `/proc/<pid>`. */
export function redactProcessFile(path: string, text: string, pseudonyms: Pseudonyms): string {
  if (path.endsWith('/stat')) return text.replace(/\((.*)\)/s, (_, name: string) => `(${nameOf(name, pseudonyms)})`);
  if (path.endsWith('/status')) return text.replace(/^Name:\t(.*)$/m, (_, name: string) => `Name:\t${nameOf(name, pseudonyms)}`);
  return path.endsWith('/comm') || path.endsWith('/cmdline') ? `${nameOf(text.trim(), pseudonyms)}\n` : text;
}

/** Replaces the names of programs in the document of `nvidia-smi`: the last part of a path is the name. */
export function redactProcessElements(text: string, pseudonyms: Pseudonyms): string {
  return text.replaceAll(
    /<process_name>([^<]*)</g,
    (_, path: string) => `<process_name>${path === '' || path.startsWith('[') ? path : nameOf(path.split('/').at(-1) ?? '', pseudonyms)}<`,
  );
}

/** Records that a probe can use. Of every other record only its header stays: it can name users, hosts, disks and addresses. */
const OF_DEVICES = /NVRM|nvidia|Xid|mlx[45]|infiniband|rdma|segfault at|dfl|xocl|xclmgmt|fpga|AER:|pcieport|PCIe Bus Error/i;

/** Redacts one record of the kernel log. */
export function redactRecord(record: string, pseudonyms: Pseudonyms, text: (value: string) => string): string {
  const at = record.indexOf(';');
  const [head, rest] = [record.slice(0, at + 1), record.slice(at + 1)];
  if (!OF_DEVICES.test(rest)) return `${head}-`;
  const named = rest
    .replace(/^([\s\S]{0,15})(\[\d{1,10}\]: segfault at)/, (_, name: string, tail: string) => nameOf(name, pseudonyms) + tail)
    .replaceAll(/\bname=([^,\n]*)/g, (_, name: string) => `name=${nameOf(name, pseudonyms)}`);
  return head + text(named);
}
