import type { Capture, Frame, FrameCall, FrameRequest } from '../frame.ts';
import { redactCdiSpec, redactCheckpoint, redactMetadata } from './documents.ts';
import { redactIdentifiers } from './identifiers.ts';
import { redactAnswer } from './kubelet-answers.ts';
import { redactProcessElements, redactProcessFile, redactPrograms, redactRecord } from './programs.ts';
import { Pseudonyms } from './pseudonyms.ts';
import { designsOf, serialsOf } from './secrets.ts';

/** Labels of metrics that name something of the cluster. */
const NAME_LABEL = /([{,]\w*(?:namespace|pod|container|claim|pool)\w*=")((?:[^"\\]|\\.)*)"/g;
/** The option whose value is a list of programs. */
const PROGRAMS = 'usage.allowed-processes';
/** A name that no text has by chance. A shorter name is replaced only where a name stands. */
const isTelling = (name: string): boolean => (name.length >= 6 && /[-.\d]/.test(name)) || name.length >= 12;

/** Replaces all names of pods, hosts and boards. `hostNames`: names of this machine. Equal names stay equal, so that joins hold. */
export function redactCapture(capture: Capture, hostNames: readonly string[], pseudonyms = new Pseudonyms()): Capture {
  return new Redaction(capture, hostNames, pseudonyms).run();
}

class Redaction {
  readonly #capture: Capture;
  readonly #pseudonyms: Pseudonyms;
  readonly #kept: ReadonlySet<string>;
  #serials: readonly Replacement[] = [];
  #words: readonly Replacement[] = [];

  constructor(capture: Capture, hostNames: readonly string[], pseudonyms: Pseudonyms) {
    this.#capture = capture;
    this.#pseudonyms = pseudonyms;
    this.#kept = new Set(capture.frames.flatMap(designsOf).filter((value) => value.length >= 32));
    for (const name of hostNames) pseudonyms.name(name, 'host');
    // The answers are read first, because they tell most names.
    for (const request of capture.frames.flatMap(({ requests }) => requests)) this.#request(request);
    const serials = new Set(capture.frames.flatMap(serialsOf));
    this.#serials = replacements([...serials].map((serial) => [serial, pseudonyms.serial(serial)]));
    this.#words = replacements([...pseudonyms.names()].filter(([name]) => isTelling(name) || hostNames.includes(name)));
  }

  run(): Capture {
    const { manifest, frames } = this.#capture;
    return {
      manifest: {
        ...manifest,
        isRedacted: true,
        node: this.#pseudonyms.name(manifest.node, 'host'),
        options: Object.fromEntries(
          Object.entries(manifest.options).map(([key, value]) => [
            key,
            this.#text(key === PROGRAMS ? redactPrograms(value, this.#pseudonyms) : value),
          ]),
        ),
        parts: JSON.parse(this.#text(JSON.stringify(manifest.parts))) as Capture['manifest']['parts'],
      },
      frames: frames.map((frame) => this.#frame(frame)),
    };
  }

  readonly #text = (text: string): string => {
    return replaced(this.#fixed(text), this.#words);
  };

  /** Keeps the length of the text. */
  readonly #fixed = (text: string): string => replaced(redactIdentifiers(text, this.#pseudonyms, this.#kept), this.#serials);

  #frame(frame: Frame): Frame {
    const paths = (list: readonly string[]): readonly string[] => list.map((path) => this.#path(path));
    const byPath = <T>(map: Readonly<Record<string, T>>, value: (path: string, one: T) => T): Readonly<Record<string, T>> =>
      Object.fromEntries(Object.entries(map).map(([path, one]) => [this.#path(path), value(path, one)]));
    return {
      ...frame,
      files: byPath(frame.files, (path, bytes) => this.#file(path, bytes)),
      links: byPath(frame.links, (_, target) => this.#text(target)),
      directories: paths(frame.directories),
      unread: paths(frame.unread),
      errors: byPath(frame.errors, (_, errno) => errno),
      removed: paths(frame.removed),
      kernelLog: frame.kernelLog.map((record) => redactRecord(record, this.#pseudonyms, this.#text)),
      commands: frame.commands.map((command) => ({
        ...command,
        stdout: this.#text(redactProcessElements(command.stdout, this.#pseudonyms)),
        stderr: this.#text(command.stderr),
      })),
      library: frame.library.map((call) => this.#call(call)),
      requests: frame.requests.map((request) => this.#request(request)),
      page: this.#page(frame.page),
    };
  }

  /** The directory of a claim is `<namespace>_<name>`. */
  #path(path: string): string {
    if (!path.startsWith('claims/')) return this.#text(path);
    return path
      .split('/')
      .map((part) =>
        part
          .split('_')
          .map((word) => this.#pseudonyms.known(word) ?? this.#text(word))
          .join('_'),
      )
      .join('/');
  }

  #file(path: string, bytes: Uint8Array): Uint8Array {
    // Behind its first 64 bytes, the configuration space can have a serial number. No probe reads it.
    if (path.endsWith('/config') && path.startsWith('sys/')) return bytes.slice(0, 64);
    const content = Buffer.from(bytes).toString('utf8');
    return Buffer.from(this.#content(path, content));
  }

  #content(path: string, content: string): string {
    if (path.startsWith('kubelet/')) return redactCheckpoint(content, this.#pseudonyms, this.#text);
    if (path.startsWith('cdi')) return redactCdiSpec(content, this.#text);
    if (path.startsWith('claims/')) return redactMetadata(content, this.#pseudonyms, this.#text);
    return this.#text(/^proc\/\d+\//.test(path) ? redactProcessFile(path, content, this.#pseudonyms) : content);
  }

  /** Each replacement in an answer of a library has the length of what it replaces, because the layout is that of C. */
  #call(call: FrameCall): FrameCall {
    const bytes = (base64: string): string =>
      Buffer.from(this.#fixed(Buffer.from(base64, 'base64').toString('latin1')), 'latin1').toString('base64');
    return { ...call, memory: call.memory.map(({ at, before, after }) => ({ at, before: bytes(before), after: bytes(after) })) };
  }

  #request(request: FrameRequest): FrameRequest {
    const { answer, error, ...rest } = request;
    const bytes =
      answer === undefined ? undefined : redactAnswer(request.method, Buffer.from(answer, 'base64'), this.#pseudonyms, this.#text);
    return {
      ...rest,
      ...(bytes === undefined ? {} : { answer: Buffer.from(bytes).toString('base64') }),
      ...(error === undefined ? {} : { error: { ...error, details: this.#text(error.details) } }),
    };
  }

  #page(page: string): string {
    return this.#text(page.replaceAll(NAME_LABEL, (_, head: string, name: string) => `${head}${this.#pseudonyms.known(name) ?? name}"`));
  }
}

type Replacement = readonly [pattern: RegExp, other: string];

/** The longest words come first, because one word can be a part of another. */
const replacements = (words: readonly (readonly [string, string])[]): readonly Replacement[] =>
  [...words].sort(([a], [b]) => b.length - a.length).map(([word, other]) => [wordPattern(word), other] as const);

const replaced = (text: string, words: readonly Replacement[]): string =>
  words.reduce((result, [pattern, other]) => result.replaceAll(pattern, other), text);

function wordPattern(word: string): RegExp {
  const escaped = word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![A-Za-z0-9])${escaped}(?![A-Za-z0-9])`, 'g');
}
