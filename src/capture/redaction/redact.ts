import { basename } from 'node:path';
import { defined } from '../../model/defined.ts';
import type { Vocabulary } from '../../model/known-text.ts';
import {
  type Capture,
  type CapturedCall,
  type CapturedCommand,
  type CapturedRead,
  type CapturedRequest,
  type Entry,
  fileEntry,
} from '../format.ts';
import { Documents, redactAnswer, redactLabels } from './documents.ts';
import { redactRecord } from './kernel-log.ts';
import { KERNEL_FILES, OutputRedaction, ProcessFiles, VocabularyIndex } from './outputs.ts';
import { Pseudonyms } from './pseudonyms.ts';
import { Shapes } from './shapes.ts';

/** The option whose value is a list of programs. */
const PROGRAMS = 'usage.allowed-processes';
/** A name that no text has by chance. A shorter name is replaced only where a name is expected. */
const isTelling = (name: string): boolean => (name.length >= 6 && /[-.\d]/.test(name)) || name.length >= 12;
/** Names that the kernel or systemd gives to interfaces. Every other name is of a person. `enx` has the hardware address. */
const INTERFACE =
  /^(?!enx)(?:lo|(?:eth|ib|bond|br|veth|usb|en[ospbv]|ib[ospbv]|wl[osp]|rename|vf|pf|sf|p)[a-z]{0,2}\d[a-z0-9]{0,12}(?:np\d{1,3})?)$/;
/** A number in JSON that a double may not hold. In quotes it keeps all digits. */
const LARGE_NUMBER = /:\s*(\d{16,20})(?=\s*[,}\]])/g;
/** An answer of a library has texts of at least this length. Numbers rarely have so many printable bytes in a row. */
const PRINTABLE = /[ -~]{5,}/g;

/**
 * Replaces everything in a capture that is not known: names of pods, hosts, programs and boards, and all text of unknown files. `families`
 * say what they understand. `hostNames`: names of this machine. Equal names stay equal, so that joins hold.
 */
export function redactCapture(
  capture: Capture,
  hostNames: readonly string[],
  families: readonly Vocabulary[],
  pseudonyms = new Pseudonyms(),
): Capture {
  const redaction = new Redaction(capture, hostNames, families, pseudonyms);
  // A text before the place that shows it as an identity can contain it. So the first run only learns the identities.
  redaction.run();
  redaction.learn();
  return redaction.run();
}

class Redaction {
  readonly #capture: Capture;
  readonly #families: readonly Vocabulary[];
  readonly #pseudonyms: Pseudonyms;
  readonly #shapes: Shapes;
  readonly #documents: Documents;
  readonly #processes: ProcessFiles;
  readonly #files: VocabularyIndex;
  /** Names of interfaces and of the host, which are replaced in all texts however short they are. */
  readonly #short: Set<string>;

  constructor(capture: Capture, hostNames: readonly string[], families: readonly Vocabulary[], pseudonyms: Pseudonyms) {
    this.#capture = capture;
    this.#families = families;
    this.#pseudonyms = pseudonyms;
    this.#files = new VocabularyIndex([KERNEL_FILES, ...families.flatMap(({ files }) => files ?? [])]);
    this.#shapes = new Shapes(pseudonyms, new Set([...this.#designs(), ...this.#drivers()]), families);
    this.#documents = new Documents(pseudonyms, this.#shapes);
    this.#processes = new ProcessFiles(pseudonyms, this.#shapes, families);
    this.#short = new Set(hostNames);
    for (const name of hostNames) pseudonyms.name(name, 'host');
    this.learn();
  }

  /** Makes the names that are known now replaced in all texts. */
  learn(): void {
    this.#shapes.replaceNames([...this.#pseudonyms.names().keys()].filter((name) => isTelling(name) || this.#short.has(name)));
  }

  run(): Capture {
    const { node, options, parts, page, reads } = this.#capture;
    const settings = Object.entries(options).map(([key, value]) => [
      key,
      key === PROGRAMS
        ? this.#processes.list(value)
        : redactOption(key, value, this.#documents.id, (text) => this.#shapes.redact(text, 'nothing')),
    ]);
    return {
      ...this.#capture,
      isRedacted: true,
      node: this.#pseudonyms.name(node, 'host'),
      options: Object.fromEntries(settings),
      parts: redactParts(parts, this.#documents.public),
      reads: [this.#read(reads[0]), this.#read(reads[1])],
      page: redactLabels(page, this.#pseudonyms, this.#shapes, this.#documents),
    };
  }

  /** Identifiers that many machines share, in lower case. */
  #designs(): ReadonlySet<string> {
    const texts = this.#capture.reads.flatMap(({ tree }) =>
      Object.entries(tree).flatMap(([path, entry]) =>
        path.startsWith('sys/') && 'file' in entry && this.#files.of(path) === 'designs' ? entry.file.toLowerCase().split(/\s+/) : [],
      ),
    );
    return new Set(texts.filter((value) => /^(?:[0-9a-f]{32}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/.test(value)));
  }

  /** Names of drivers, from the links to them. */
  #drivers(): readonly string[] {
    const links = this.#capture.reads.flatMap(({ tree }) => Object.entries(tree));
    return links.flatMap(([path, entry]) =>
      path.startsWith('sys/devices/') && path.endsWith('/driver') && 'link' in entry
        ? basename(entry.link)
            .toLowerCase()
            .split(/[^a-z0-9]+/)
        : [],
    );
  }

  #read({ atMs, wallMs, tree, kernelLog, commands, library, requests }: CapturedRead): CapturedRead {
    return {
      atMs,
      wallMs,
      // The answers come first, because they have most names.
      requests: requests.map((request) => this.#request(request)),
      tree: Object.fromEntries(Object.entries(tree).map(([path, entry]) => [this.#path(path), this.#entry(path, entry)])),
      kernelLog: kernelLog
        .map((line) => redactRecord(line, this.#families, this.#processes.name, this.#shapes))
        .filter((line) => line !== ''),
      commands: commands.map((command) => this.#command(command)),
      library: library.map((call) => this.#call(call)),
    };
  }

  #path(path: string): string {
    const [place = '', ...parts] = path.split('/');
    if (place === 'claims') return [place, ...parts.map((part, at) => this.#claimPart(part, at))].join('/');
    if (/^cdi\d/.test(place))
      return [place, ...parts.map((part) => this.#pseudonyms.name(part, 'cdi') + (/\.\w+$/.exec(part)?.[0] ?? ''))].join('/');
    // The name of a file is an identity, such as the serial number of a drive.
    if (place === 'directory')
      return [
        place,
        ...parts.map((part, at) => (at === 0 ? part : part.replace(/^.*?(?=\.[a-z]+$|$)/, (name) => this.#shapes.redact(name, 'nothing')))),
      ].join('/');
    const all = [place, ...parts];
    return all.map((part, at) => (place === 'sys' && all[at - 1] === 'net' ? this.#interface(part) : this.#documents.id(part))).join('/');
  }

  /** `<driver>/dra-device-metadata/<namespace>_<claim>/<request>/metadata.json`. */
  #claimPart(part: string, at: number): string {
    if (at === 0) return this.#documents.public(part);
    if (part === 'dra-device-metadata' || part === 'metadata.json') return part;
    if (at !== 2) return this.#pseudonyms.name(part, 'request');
    const [namespace = '', ...claim] = part.split('_');
    return [this.#pseudonyms.name(namespace, 'ns'), ...claim.map((name) => this.#pseudonyms.name(name, 'claim'))].join('_');
  }

  #interface(name: string): string {
    if (INTERFACE.test(name)) return this.#documents.id(name);
    this.#short.add(name);
    return this.#pseudonyms.name(name, 'net');
  }

  #entry(path: string, entry: Entry): Entry {
    if ('link' in entry) return { link: this.#path(entry.link) };
    if (!('file' in entry) && !('base64' in entry)) return entry;
    const bytes = 'file' in entry ? Buffer.from(entry.file) : Buffer.from(entry.base64, 'base64');
    // Behind its first 64 bytes, the configuration space can have a serial number. No probe reads it.
    if (path.endsWith('/config') && path.startsWith('sys/')) return fileEntry(bytes.subarray(0, 64));
    const form = this.#files.of(path);
    return form === 'binary' ? entry : { file: this.#content(path, bytes.toString('utf8'), form) };
  }

  #content(path: string, content: string, form: ReturnType<VocabularyIndex['of']>): string {
    if (path.startsWith('kubelet/')) return this.#documents.checkpoint(content);
    if (path.startsWith('cdi')) return this.#documents.cdiSpec(content);
    if (path.startsWith('claims/')) return this.#documents.metadata(content);
    if (path.startsWith('directory/')) return this.#document(path, content);
    if (path === 'proc/stat') return /^btime \d{1,12}$/m.exec(content)?.[0].concat('\n') ?? '';
    const ofProcess = /^proc\/\d+\//.test(path) ? this.#processes.redact(path, content) : undefined;
    return ofProcess ?? this.#shapes.redact(content, form === 'designs' ? 'texts' : (form as 'values'));
  }

  #document(path: string, content: string): string {
    const known = this.#families.map(({ documents }) => documents?.[path.split('/')[1] as string]).find((names) => names !== undefined);
    return new OutputRedaction({ program: '', ...known }, this.#shapes).redact(content.replace(LARGE_NUMBER, ':"$1"'));
  }

  #command(command: CapturedCommand): CapturedCommand {
    const program = basename(command.program);
    const known = this.#families.flatMap(({ outputs }) => outputs ?? []).find((output) => output.program === program);
    const output = new OutputRedaction(known, this.#shapes);
    return {
      ...command,
      program: redactProgram(command.program, this.#documents.id),
      args: command.args.map((arg) => this.#shapes.redact(arg, known === undefined ? 'nothing' : 'values')),
      stdout: output.redact(command.stdout),
      stderr: output.redact(command.stderr),
    };
  }

  /** Each replacement in an answer of a library has the length of what it replaces, because the layout is that of C. */
  #call(call: CapturedCall): CapturedCall {
    const isText = this.#families.some(({ callTexts }) => callTexts?.includes(call.symbol));
    const [begin, end] = this.#families.map(({ callIdentities }) => callIdentities?.[call.symbol]).find((range) => range) ?? [0, 0];
    const bytes = (base64: string): string => {
      const before = Buffer.from(base64, 'base64');
      const text = before.toString('latin1').replaceAll(PRINTABLE, (run) => {
        const other = this.#shapes.redact(run, isText ? 'texts' : isAddress(run) ? 'names' : 'nothing');
        return other.length === run.length ? other : '?'.repeat(run.length);
      });
      const after = Buffer.from(text, 'latin1');
      const identity = after.subarray(begin, end);
      if (identity.some((byte) => byte !== 0)) Buffer.from(this.#pseudonyms.hex(identity.toString('hex')), 'hex').copy(after, begin);
      return after.toString('base64');
    };
    return { ...call, memory: call.memory.map(({ at, before, after }) => ({ at, before: bytes(before), after: bytes(after) })) };
  }

  /** The words of an error can name a path or a host. */
  #request(request: CapturedRequest): CapturedRequest {
    const { answer, error, ...rest } = request;
    const bytes =
      answer === undefined ? undefined : redactAnswer(request.method, Buffer.from(answer, 'base64'), this.#pseudonyms, this.#documents);
    return {
      ...rest,
      ...defined({ answer: bytes && Buffer.from(bytes).toString('base64') }),
      ...defined({ error: error && { ...error, details: 'replaced' } }),
    };
  }
}

/** Addresses of PCI functions in answers of libraries. */
const isAddress = (text: string): boolean => /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/i.test(text);

type Text = (text: string) => string;

/** Parts of the configuration file that a replay reads. */
const PARTS: readonly string[] = ['join.rules', 'health', 'plugin.resources', 'expect', 'usage.idle'];
const PROGRAM_PATH = /^probe\.[^.]+\.[a-z-]*-path$/;

/** Options whose values name devices. */
const NAMES_DEVICES = /^(?:probe|device)\./;
const PLAIN = /^(?:[a-z-]{0,32}|\d{1,12}(?:\.\d{1,6})?(?:[a-z%]{1,3}|[KMG]i?B)?)$/;

/** Redacts the value of one option: numbers, durations and words stay. `id` is for ids of devices, `other` for all other texts. */
export function redactOption(key: string, value: string, id: Text, other: Text): string {
  return value
    .split(',')
    .map((item) => {
      if (item.startsWith('/')) return PROGRAM_PATH.test(key) ? redactProgram(item, id) : '/replaced';
      return PLAIN.test(item) ? item : (NAMES_DEVICES.test(key) ? id : other)(item);
    })
    .join(',');
}

/** A replay has a program of the same name in the place of each program. */
export const redactProgram = (path: string, id: Text): string => {
  const name = id(path.split('/').at(-1) as string);
  return path.startsWith('/') ? `/replaced/${name}` : name;
};

/** Redacts the parts that a replay reads, and leaves out the others. */
export function redactParts(parts: Readonly<Record<string, unknown>>, text: Text): Readonly<Record<string, unknown>> {
  const other = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(other);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [text(key), other(inner)]));
  };
  return Object.fromEntries(Object.entries(parts).flatMap(([path, value]) => (PARTS.includes(path) ? [[path, other(value)]] : [])));
}
