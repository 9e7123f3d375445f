import type { KnownOutput } from '../../model/known-text.ts';
import { type Form, KnownNamesIndex } from './known-names.ts';
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
  readonly #known: KnownOutput | undefined;
  readonly #names: KnownNamesIndex;
  readonly #shapes: Shapes;

  constructor(known: KnownOutput | undefined, shapes: Shapes) {
    this.#known = known;
    this.#names = new KnownNamesIndex(known === undefined ? [] : [known]);
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
