import type { KnownText } from '../../model/known-text.ts';
import type { Pseudonyms } from './pseudonyms.ts';
import type { Shapes } from './shapes.ts';

/** Names of programs that show nothing about who uses the machine. Families declare those of their vendors. */
const COMMON = /^(?:python[\d.]{0,5}|java|node|bash|sh|Xorg|raylet|mpirun|orted|systemd|kthreadd|kubelet|containerd|crio|dockerd)$/;
/** The kernel cuts the name of a program after so many characters. */
const NAME_LENGTH = 15;
/** Keys of `/proc/<pid>/status` whose values are process ids. */
const STATUS_LINE = /^(?:Tgid|Ngid|Pid|PPid|NStgid|NSpid):[\t \d]*$/;
/** Keys of `fdinfo` and their values: numbers, sizes, and names of drivers and PCI addresses. */
const FDINFO_LINE =
  /^(?:(?:pos|flags|mnt_id|ino|pasid|drm-client-id):\s*\d{1,20}|drm-driver:\s*[a-z0-9_]{1,20}|drm-pdev:\s*[0-9a-f:.]{7,16}|drm-[a-z0-9-]{1,40}:\s*\d{1,20}(?: [KMG]iB| [nu]?s| [kKMG]?Hz)?)$/;
/** Parts of a cgroup path that name a pod or a container. Their UIDs and ids are replaced by their form. */
const CGROUP_PART =
  /^(?:kubepods(?:-burstable|-besteffort)?(?:-pod[0-9a-f_-]{32,36})?|pod[0-9a-f_-]{32,36}|burstable|besteffort|(?:cri-containerd-|crio-|crio-conmon-|docker-)?[0-9a-f]{64}|system|user|user-\d{1,6}|session-\d{1,6}|init|kubelet|\.\.|)(?:\.slice|\.scope|\.service)?$/;

/** Redacts the files of `/proc/<pid>`. Of each file only what a probe reads is kept. */
export class ProcessFiles {
  readonly #pseudonyms: Pseudonyms;
  readonly #shapes: Shapes;
  /** Names of vendors' programs, as the kernel cuts them. */
  readonly #ofVendors: ReadonlySet<string>;

  constructor(pseudonyms: Pseudonyms, shapes: Shapes, families: readonly Pick<KnownText, 'programs'>[]) {
    this.#ofVendors = new Set(families.flatMap(({ programs = [] }) => programs.map((name) => name.slice(0, NAME_LENGTH))));
    this.#pseudonyms = pseudonyms;
    this.#shapes = shapes;
  }

  /** Another name for a program, so short that the kernel would not cut it. */
  readonly name = (name: string): string =>
    name === '' || COMMON.test(name) || this.#ofVendors.has(name.slice(0, NAME_LENGTH))
      ? name
      : this.#pseudonyms.name(`program ${name.slice(0, NAME_LENGTH)}`, 'p').slice(0, 12);

  /** Replaces names of programs in the list of an option, so that they still fit those in `/proc/<pid>`. */
  readonly list = (names: string): string => names.split(',').map(this.name).join(',');

  /** Undefined for a file that this version does not know. */
  redact(path: string, text: string): string | undefined {
    const name = path.split('/').at(-1) as string;
    if (name === 'stat') return this.#stat(text);
    if (name === 'comm') return `${this.name(text.trim())}\n`;
    // The arguments of a program can have passwords.
    if (name === 'cmdline') return `${this.name(text.split('\0')[0]?.trim().split(/[ /]/).at(-1) ?? '')}\0`;
    if (name === 'status') return this.#status(text);
    if (name === 'cgroup')
      return text
        .split('\n')
        .map((line) => this.#cgroup(line))
        .join('\n');
    return /\/fdinfo\/\d+$/.test(path) ? matching(text, FDINFO_LINE) : undefined;
  }

  #stat(text: string): string {
    const [, pid = '', name = '', rest = ''] = /^(\d+) \((.*)\)([ \w-]*)\s*$/s.exec(text) ?? [];
    return pid === '' ? '' : `${pid} (${this.name(name)})${rest}\n`;
  }

  #status(text: string): string {
    const name = /^Name:\t(.*)$/m.exec(text)?.[1];
    return `${name === undefined ? '' : `Name:\t${this.name(name)}\n`}${matching(text, STATUS_LINE)}`;
  }

  #cgroup(line: string): string {
    const [, head, path] = /^(\d+:[a-z_,=]{0,100}:)(.*)$/.exec(line) ?? [];
    if (head === undefined || path === undefined) return '';
    const parts = path.split(/(?=[/:])|(?<=[/:])/).map((part) => {
      if (part === '/' || part === ':') return part;
      if (CGROUP_PART.test(part)) return this.#shapes.redact(part, 'names');
      return this.#pseudonyms.name(part, 'cgroup') + (/\.(?:slice|scope|service)$/.exec(part)?.[0] ?? '');
    });
    return head + parts.join('');
  }
}

const matching = (text: string, line: RegExp): string =>
  text
    .split('\n')
    .filter((one) => line.test(one))
    .map((one) => `${one}\n`)
    .join('');
