import type { Choose } from '../../../support/seeded.ts';

/** A scalar as it stands in a YAML document; JSON has a text of it where it is no JSON. */
class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
type Value = string | Raw | readonly Value[] | { readonly [key: string]: Value };

/** Device nodes of the machine below which the folders lie: path below `/dev`, type, numbers. */
export const HOST_NODES = [
  { path: 'dri/renderD128', type: 'c', major: 226, minor: 128 },
  { path: 'dri/renderD129', type: 'c', major: 226, minor: 129 },
  { path: 'accel/accel0', type: 'c', major: 261, minor: 0 },
] as const;

const raw = (text: string): Raw => new Raw(text);
const NAMES = ['gpu-0', 'gpu-1', 'a', 'b', ...'007 0x10 1e3 1.0 yes true 0 1_000 0o17 2001-01-01 a:b v1.2 n'.split(' ')];
const ODD_NAMES = ['~', 'null', '.5', '-a', 'a_', 'a b', 'é', '<<', ''];
const KINDS = ['example.com/gpu', 'example.com/gpu', 'example.com/gpu', 'example.com/nic', 'example.com/gpu.x'];
const ODD_KINDS = ['gpu', 'example.com/', '1/gpu', 'a/b/c', 'example.com-/gpu', 'a/b'];
const VERSIONS = ['0.3.0', '0.4.0', '0.5.0', '0.6.0', '0.7.0', '0.8.0', '1.0.0', '1.1.0'];
const ODD_VERSIONS = ['0.2.0', '1.2.0', '1.0', 'v1.1.0', '', 'vv1.0.0', '2'];
const NUMBERS = ['511', '0x1ff', '0o777', '0777', '511.0', '511.9', '5_11', '5.11e2', '08', '0', '0.0', '+7', '0b101', '~', '', '.5'];
const ODD_NUMBERS = ['-1', 'true', '1e400', '1e19', '4294967296', '_5', '0x', '0o8', '1:30', '2001-01-01', '.inf', 'x'];
const FILE_NAMES = ['a.json', 'b.yaml', 'c.yaml', 'd.json', 'a.yaml', 'e.yml', 'f.YAML', 'g', '.yaml', 'h.yaml.tmp', 'i.json'];

/** A file below one of the two directories; a directory has no text. */
export interface GeneratedFile {
  readonly path: string;
  readonly text: string | undefined;
}

/** Makes the files of CDI directories as drivers, administrators and accidents leave them. */
export class CdiFolders {
  readonly #choose: Choose;
  readonly #host: string;
  /** Whether the present file may have what makes it no spec. */
  #isOdd = false;

  /** `host`: the directory with the `/dev` of {@link HOST_NODES}; undefined where nobody can make device nodes. */
  constructor(choose: Choose, host: string | undefined) {
    this.#choose = choose;
    this.#host = host ?? '';
  }

  folder(): readonly GeneratedFile[] {
    const files = new Map<string, string | undefined>();
    for (let count = 1 + this.#choose(5); count > 0; count -= 1) {
      const path = `${this.#of(['etc', 'run'])}/${this.#of(FILE_NAMES)}`;
      if (this.#rarely(40)) files.set(path, undefined);
      else {
        this.#isOdd = this.#rarely(3);
        files.set(path, this.#damaged(this.#rendered(this.#spec(), path.endsWith('.json'))));
      }
    }
    return [...files].map(([path, text]) => ({ path, text }));
  }

  #of<T>(list: readonly T[]): T {
    return list[this.#choose(list.length)] as T;
  }

  #rarely(one: number): boolean {
    return this.#choose(one) === 0;
  }

  #oddly(one: number): boolean {
    return this.#isOdd && this.#rarely(one);
  }

  #some<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#choose(most + 1) }, make);
  }

  #spec(): Value {
    return this.#mapping([
      ['cdiVersion', this.#scalar(this.#oddly(6) ? ODD_VERSIONS : this.#oddly(2) ? VERSIONS : ['1.1.0', 'v1.1.0'])],
      ['kind', this.#of(this.#oddly(4) ? ODD_KINDS : KINDS)],
      ...this.#maybe(15, 'annotations', () => ({ note: this.#scalar(NAMES) })),
      ['devices', this.#oddly(20) ? raw('~') : [this.#device(), ...this.#some(2, () => this.#device())]],
      ...this.#maybe(8, 'containerEdits', () => this.#edits()),
    ]);
  }

  #device(): Value {
    if (this.#rarely(60)) return raw('null');
    return this.#mapping([
      ['name', this.#scalar(this.#oddly(5) ? ODD_NAMES : NAMES)],
      ...this.#maybe(20, 'annotations', () => ({ note: this.#scalar(NAMES) })),
      ['containerEdits', this.#oddly(20) ? {} : this.#edits()],
    ]);
  }

  #edits(): Value {
    return this.#mapping([
      ...(this.#rarely(12)
        ? [['env', ['A=1']] as const]
        : [['deviceNodes', [this.#node(), ...this.#some(2, () => this.#node())]] as const]),
      ...this.#maybe(8, 'env', () => this.#some(2, () => this.#of(['A=1', 'B=', 'C=x: y', ...(this.#oddly(3) ? ['=1', 'D'] : [])]))),
      ...this.#maybe(12, 'mounts', () => [
        this.#mapping([
          ['hostPath', this.#oddly(4) ? '' : '/a'],
          ['containerPath', '/b'],
          ...this.#maybe(3, 'options', () => ['ro', 'bind']),
          ...this.#maybe(3, 'type', () => 'bind'),
        ]),
      ]),
      ...this.#maybe(15, 'hooks', () => [
        this.#mapping([
          ['hookName', this.#of(['createContainer', 'prestart', ...(this.#oddly(2) ? ['sometimes'] : [])])],
          ['path', '/bin/true'],
          ...this.#maybe(3, 'timeout', () => this.#number()),
        ]),
      ]),
      ...this.#maybe(15, 'netDevices', () =>
        this.#some(2, () => ({
          hostInterfaceName: this.#of(['eth1', 'eth2']),
          name: this.#of(['net1', 'net2', ...(this.#oddly(2) ? [''] : [])]),
        })),
      ),
      ...this.#maybe(20, 'intelRdt', () =>
        this.#mapping([
          ['closID', this.#of(['c', '/', '', ...(this.#oddly(2) ? ['..', 'a/b'] : [])])],
          ...this.#maybe(4, 'schemata', () => this.#some(1, () => 'L3:0=f')),
          ...this.#maybe(4, 'enableMonitoring', () =>
            this.#oddly(2) ? this.#scalar(['true', 'oFF', 'yEs', '1', '']) : this.#scalar(['yes', 'Off', 'n', 'ON']),
          ),
        ]),
      ),
      ...this.#maybe(15, 'additionalGids', () => this.#some(2, () => this.#number())),
    ]);
  }

  /** Never null: that ends the library itself. */
  #node(): Value {
    const path = this.#of(['/dev/x0', '/dev/x1', '/dev/dri/renderD128', ...(this.#oddly(10) ? [''] : [])]);
    if (this.#rarely(3)) return this.#mapping([['path', path], ...this.#hostPath()]);
    return this.#mapping([
      ['path', path],
      ...this.#maybe(6, 'hostPath', () => this.#of(['/run/driver/dev/gpu7', '/dev/gpu8'])),
      ...(this.#rarely(6) ? [] : [['type', this.#of(['c', 'c', 'c', 'c', 'b', 'u', 'p', ...(this.#oddly(5) ? ['z'] : [])])] as const]),
      ...(this.#rarely(8) ? [] : [['major', this.#rarely(3) ? this.#number() : raw(this.#of(['511', '8', '5']))] as const]),
      ...this.#maybe(2, 'minor', () => (this.#rarely(4) ? this.#number() : raw(this.#of(['0', '1', '2'])))),
      ...this.#maybe(12, 'fileMode', () => raw(this.#of(['438', '0666', '0o666']))),
      ...this.#maybe(12, 'permissions', () => this.#of(['rw', 'rwm', 'none', '', ...(this.#oddly(2) ? ['x', 'nonerw'] : [])])),
      ...this.#maybe(12, 'uid', () => this.#number()),
    ]);
  }

  #number(): Value {
    if (this.#oddly(3)) return this.#scalar([...ODD_NUMBERS, ...NUMBERS]);
    return raw(this.#of(NUMBERS));
  }

  /** A node of the machine, whose numbers the library takes from there. */
  #hostPath(): (readonly [string, Value])[] {
    const { path, type, major } = this.#of(HOST_NODES);
    if (this.#host === '') return [['hostPath', '/dev/absent']];
    return [
      ['hostPath', `${this.#host}/dev/${path}`],
      ...this.#maybe(4, 'type', () => type),
      ...this.#maybe(6, 'major', () => raw(String(major))),
      ...this.#maybe(8, 'minor', () => raw(String(this.#choose(3)))),
    ];
  }

  #maybe(one: number, key: string, make: () => Value): (readonly [string, Value])[] {
    return this.#rarely(one) ? [[key, make()]] : [];
  }

  #scalar(texts: readonly string[]): Value {
    const text = this.#of(texts);
    return this.#rarely(2) ? text : raw(text);
  }

  /** In most cases in this order; seldom with a field that no version knows. */
  #mapping(pairs: readonly (readonly [string, Value])[]): Value {
    const all = this.#oddly(60) ? [...pairs, ['unknown', raw('1')] as const] : [...pairs];
    if (this.#rarely(3)) all.sort(() => this.#choose(3) - 1);
    return Object.fromEntries(all);
  }

  #rendered(spec: Value, isJson: boolean): string {
    if (this.#rarely(isJson ? 8 : 2) !== isJson) return this.#json(spec);
    const head = this.#of([
      '',
      '',
      '---\n',
      '# A comment\n---\n',
      '%YAML 1.1\n---\n',
      ...(this.#oddly(6) ? ['%YAML 1.2\n---\n', '...\n'] : []),
      '--- # again\n',
      '\n\n',
      '\ufeff',
    ]);
    const body = this.#block(spec, '');
    const end = this.#of(['', '', '', '...\n', '---\n', '---\nkind: other\n', '--- [\n', '...\nx: [\n', '# end']);
    return head + body.replace(/^\n/, '') + end;
  }

  /** A shorter file may be written over a longer one, and a library of C or PHP writes `\/`. */
  #json(spec: Value): string {
    const text = JSON.stringify(jsonOf(spec), undefined, this.#of([0, 2, '\t']));
    const escaped = this.#oddly(8)
      ? text.replaceAll('/', '\\/')
      : this.#oddly(8)
        ? text.replace('"A=1"', '"A=\\ud83d\\ude00\\u00e9"')
        : text;
    return `${this.#rarely(8) ? ' \n' : ''}${escaped}${this.#of(['', '', '', '\n', '\n', ...(this.#rarely(3) ? ['}', '\n{"a":', ' x', '\n---\n['] : [])])}`;
  }

  #block(value: Value, indent: string): string {
    if (typeof value === 'string') return ` ${this.#quoted(value)}\n`;
    if (value instanceof Raw) return `${this.#rarely(30) ? this.#of([' &anchor', ' !!str', ' !', ' !own']) : ''} ${value.text}\n`;
    if (this.#rarely(8)) return ` ${this.#flow(value)}\n`;
    const deeper = `${indent}  `;
    if (Array.isArray(value)) {
      if (value.length === 0) return ' []\n';
      return `\n${value.map((item: Value) => `${indent}-${this.#inItem(this.#block(item, deeper), deeper)}`).join('')}`;
    }
    const pairs = Object.entries(value);
    if (pairs.length === 0) return ' {}\n';
    const lines = pairs.map(([key, one]) => `${indent}${this.#rarely(20) ? JSON.stringify(key) : key}:${this.#block(one, deeper)}`);
    // Some keys of it stand in a mapping that it merges.
    if (!this.#rarely(25)) return `\n${lines.join('')}`;
    const merged = pairs.slice(0, 1 + this.#choose(pairs.length)).map(([key, one]) => `${key}: ${this.#flow(one)}`);
    const merge = `${indent}<<: ${this.#of([`{${merged.join(', ')}}`, `[{${merged.join(', ')}}, {${merged[0]}}]`, ...(this.#oddly(2) ? ['5'] : [])])}\n`;
    const rest = this.#rarely(3) ? lines : lines.slice(merged.length);
    return `\n${this.#rarely(2) ? merge + rest.join('') : rest.join('') + merge}${this.#oddly(10) ? merge : ''}`;
  }

  /** The first line of a mapping stands behind the dash. */
  #inItem(block: string, indent: string): string {
    return block.startsWith(`\n${indent}`) && !block.startsWith(`\n${indent}-`) ? ` ${block.slice(indent.length + 1)}` : block;
  }

  #flow(value: Value): string {
    if (typeof value === 'string') return this.#quoted(value);
    if (value instanceof Raw) return value.text;
    if (Array.isArray(value)) return `[${value.map((item: Value) => this.#flow(item)).join(', ')}]`;
    return `{${Object.entries(value)
      .map(([key, one]) => `${key}: ${this.#flow(one)}`)
      .join(', ')}}`;
  }

  #quoted(text: string): string {
    if (/^[/\w][\w/.-]*$/.test(text) && this.#rarely(2)) return text;
    return this.#rarely(2) ? JSON.stringify(text) : `'${text}'`;
  }

  /** What happens to files: no end of the last line, lines of another system, a key twice, only the begin. */
  #damaged(text: string): string {
    if (this.#rarely(6)) return text.replace(/\n$/, '');
    if (this.#rarely(30)) return text.replaceAll('\n', '\r\n');
    if (this.#oddly(10)) return text.replace(/^(.*)$/m, '$1\n$1');
    if (this.#oddly(10)) return text.slice(0, this.#choose(text.length));
    return text;
  }
}

function jsonOf(value: Value): unknown {
  if (typeof value === 'string') return value;
  if (value instanceof Raw) {
    const text = /^(?:0|-?[1-9]\d*)(?:\.\d+)?$|^(?:true|null)$/.test(value.text) ? value.text : JSON.stringify(value.text);
    return JSON.parse(text);
  }
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, jsonOf(one)]));
}
