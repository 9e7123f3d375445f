import type { NameVocabulary, OutputVocabulary, Vocabulary } from '../../model/known-text.ts';
import type { Pseudonyms } from './pseudonyms.ts';
import type { Shape, Shapes } from './shapes.ts';

const shapeOf = (form: Form): Shape => (form === 'designs' || form === 'binary' ? 'nothing' : form);
/** The name of an element or a key in plain words. */
const WORDS = /^[A-Za-z]{1,24}\d{0,2}(?:_[A-Za-z]{1,24}\d{0,2}){0,8}$/;
/** A tag with the text behind it, or text that belongs to no tag. */
const PART = /<([^<>]*)>([^<]*)|<[^<>]*|[^<]+/g;
const PROLOG =
  /^(?:\?xml version="[\d.]{1,5}"(?: encoding="[\w-]{1,10}")? ?\?|!DOCTYPE [a-z_]{1,32} SYSTEM "[a-z]{1,16}_device_v\d{1,3}\.dtd")$/;
const TAG = /^(\/?)([A-Za-z_][\w.-]{0,63})((?:\s[^<>]*)?\/?)$/;

/** Replaces what is not known in the output of one program. */
export class OutputRedaction {
  readonly #known: OutputVocabulary | undefined;
  readonly #names: VocabularyIndex;
  readonly #shapes: Shapes;

  constructor(known: OutputVocabulary | undefined, shapes: Shapes) {
    this.#known = known;
    this.#names = new VocabularyIndex(known === undefined ? [] : [known]);
    this.#shapes = shapes;
  }

  redact(output: string): string {
    const start = output.search(/<\?xml|<[a-z_]+>/);
    if (start >= 0 && this.#known?.values !== undefined) return this.#lines(output.slice(0, start)) + this.#xml(output.slice(start));
    return this.#json(output) ?? this.#lines(output);
  }

  #lines(text: string): string {
    return text
      .split('\n')
      .map((line) => this.#line(line))
      .join('\n');
  }

  #line(line: string): string {
    const { columns, separator = ',', lines } = this.#known ?? {};
    const cells = columns === undefined ? [] : line.split(separator);
    if (cells.length > 1 && cells.length === columns?.length)
      return cells.map((cell, at) => this.#shapes.redact(cell, shapeOf(this.#names.of(columns[at] as string)))).join(separator);
    return this.#shapes.redact(line, lines?.test(line) === true ? 'values' : 'nothing');
  }

  /** A text belongs to the element that began last. The lines behind the document are lines of the program. */
  #xml(document: string): string {
    let element = '';
    return document.replaceAll(PART, (part: string, tag: string | undefined, text = '') => {
      if (tag === undefined) return this.#shapes.redact(part, 'nothing');
      if (PROLOG.test(tag)) return `<${tag}>${this.#shapes.redact(text, 'nothing')}`;
      const [, slash = '', name, attributes = ''] = TAG.exec(tag) ?? [];
      if (name === undefined) return `<!-- -->${this.#shapes.redact(text, 'nothing')}`;
      const isEnd = slash !== '';
      element = isEnd ? '' : name;
      const shape = this.#known?.isAbsent?.(text) === true ? 'values' : shapeOf(this.#names.of(element));
      const other = isEnd ? this.#lines(text) : this.#shapes.redact(text, shape);
      return `<${slash}${this.#key(name)}${this.#shapes.redact(attributes, 'names')}>${other}`;
    });
  }

  /** Undefined for text that is no JSON. */
  #json(output: string): string | undefined {
    if (!/^\s*[[{]/.test(output)) return undefined;
    try {
      return `${JSON.stringify(this.#value(JSON.parse(output), ''))}\n`;
    } catch {
      return undefined;
    }
  }

  #key(name: string): string {
    return this.#names.of(name) === 'nothing' && !WORDS.test(name) ? this.#shapes.redact(name, 'nothing') : name;
  }

  #value(value: unknown, key: string): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#value(item, key));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [this.#key(name), this.#value(inner, name)]));
    const form = this.#names.of(key);
    if (typeof value === 'string') return this.#shapes.redact(value, shapeOf(form));
    return typeof value === 'number' && form === 'nothing' ? null : value;
  }
}

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

  constructor(pseudonyms: Pseudonyms, shapes: Shapes, families: readonly Pick<Vocabulary, 'programs'>[]) {
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

export type Form = Shape | 'designs' | 'binary';
const FORMS = ['texts', 'values', 'names', 'designs', 'binary'] as const satisfies readonly Form[];

/** Files that more than one family reads, by the names that the kernel gives them. Source: Linux Documentation/ABI/testing. */
export const KERNEL_FILES: NameVocabulary = {
  values: [
    // PCI functions.
    ...['vendor', 'device', 'subsystem_vendor', 'subsystem_device', 'class', 'revision', 'numa_node', 'power_state', 'runtime_status'],
    ...['current_link_speed', 'current_link_width', 'max_link_speed', 'max_link_width', 'aer_*', 'sriov_totalvfs', 'sriov_numvfs'],
    // Sensors.
    ...['temp#_*', 'fan#_*', 'power#_*', 'in#_*', 'curr#_*', 'freq#_*', 'energy#_*', 'pwm#', 'pwm#_*'],
    ...['runtime_active_time', 'cpulist'],
  ],
  texts: ['iommu_groups/#/type'],
  names: ['name', 'uevent', 'dev'],
};

/** Names of identities, whatever a declaration of another family says about a file of the same name. */
const IDENTITY = /(?:^|\/)(?:\w*serial\w*|uuid|\w*guid|wwid|eui|nguid|unique_id|vpd|hostnqn|hostid)$/;

/** Finds the form of a file or a cell by its name. */
export class VocabularyIndex {
  readonly #patterns: readonly (readonly [Form, RegExp])[];

  constructor(known: readonly NameVocabulary[]) {
    this.#patterns = FORMS.flatMap((form) => {
      const names = [...new Set(known.flatMap((one) => one[form] ?? []))];
      return names.length === 0 ? [] : [[form, new RegExp(`(?:^|/)(?:${names.map(source).join('|')})$`)] as const];
    });
  }

  /** `nothing` for a name that is not known. */
  of(path: string): Form {
    if (IDENTITY.test(path)) return 'nothing';
    return this.#patterns.find(([, pattern]) => pattern.test(path))?.[0] ?? 'nothing';
  }
}

const source = (name: string): string =>
  name
    .replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('#', '\\d+');
