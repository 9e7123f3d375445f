import { EVENT_ID, type Event, getScalarValue } from 'js-yaml';
import { MOST_ALIASES } from '../host/documents/yaml.ts';

/** Keys and indices from the root of a document. */
export type Path = readonly (string | number)[];

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

/** A value of a document and its place: an offset into the text. */
interface Place {
  readonly at: number;
  /** Places of the values in a list or a mapping. */
  readonly children?: ReadonlyMap<string, Child>;
}

interface Child {
  /** Absent for an element of a list. */
  readonly keyAt?: number;
  readonly value: Place;
  /** `key:` without a value; the position of the key is then more useful. */
  readonly isEmpty: boolean;
}

interface Fault {
  readonly at: number;
  readonly message: string;
}

/** Finds the place of each value and each key of a document. */
export class Positions {
  /** Repeated keys, aliases that lead nowhere, and a second document. */
  readonly faults: readonly (TextPosition & Pick<Fault, 'message'>)[];
  readonly #root: Place | undefined;
  readonly #lines: readonly number[];

  constructor(events: readonly Event[], text: string) {
    this.#lines = lineStarts(text);
    const { root, faults } = placesOf(events, text);
    this.#root = root;
    this.faults = faults.map(({ at, message }) => ({ ...this.at(at), message }));
  }

  /** The position of the value at a path; for an absent value, the position of its nearest parent. */
  of(path: Path): TextPosition {
    let [at, place] = [this.#root?.at ?? 0, this.#root];
    for (const step of path) {
      const child = place?.children?.get(String(step));
      if (child === undefined) break;
      at = child.isEmpty ? (child.keyAt ?? child.value.at) : child.value.at;
      place = child.value;
    }
    return this.at(at);
  }

  /** The position of the key at a path. */
  ofKey(path: Path): TextPosition {
    let place = this.#root;
    let keyAt: number | undefined;
    for (const step of path) {
      const child = place?.children?.get(String(step));
      keyAt = child?.keyAt;
      place = child?.value;
    }
    return keyAt === undefined ? this.of(path.slice(0, -1)) : this.at(keyAt);
  }

  at(offset: number): TextPosition {
    let [low, high] = [0, this.#lines.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#lines[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#lines[low] as number) + 1 };
  }
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** A list or a mapping whose end is not reached. */
interface Open {
  readonly place: Place;
  readonly children: Map<string, Child>;
  readonly isMap: boolean;
  key?: { readonly text: string; readonly at: number };
}

function placesOf(events: readonly Event[], text: string): { readonly root: Place | undefined; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  let aliases = 0;
  const anchors = new Map<string, Place>();
  const open: (Open | undefined)[] = [];
  let root: Place | undefined;
  const add = (place: Place, keyText: string, isEmpty = false): void => {
    const parent = open.at(-1);
    if (parent === undefined && root !== undefined) faults.push(secondDocument(text, place.at));
    else if (parent === undefined) root = place;
    else if (!parent.isMap) parent.children.set(String(parent.children.size), { value: place, isEmpty: false });
    else if (parent.key === undefined) {
      parent.key = { text: keyText, at: place.at };
      if (parent.children.has(keyText))
        faults.push({ at: place.at, message: `the key ${JSON.stringify(keyText)} occurs twice in this mapping` });
    } else {
      const { text: key, at: keyAt } = parent.key;
      delete parent.key;
      if (!parent.children.has(key)) parent.children.set(key, { keyAt, value: place, isEmpty });
    }
  };
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) open.push(undefined);
    else if (event.type === EVENT_ID.POP) open.pop();
    else if (event.type === EVENT_ID.ALIAS) {
      const name = text.slice(event.anchorStart, event.anchorEnd);
      const at = event.anchorStart - 1;
      const anchor = anchors.get(name);
      if (anchor === undefined) faults.push({ at, message: `the anchor &${name} is not defined before this alias` });
      aliases += 1;
      if (aliases === MOST_ALIASES + 1) faults.push({ at, message: `more than ${MOST_ALIASES} aliases` });
      add({ ...anchor, at }, name);
    } else {
      const isScalar = event.type === EVENT_ID.SCALAR;
      const children = new Map<string, Child>();
      // The text of a quoted value begins after its quote.
      const at = Math.max(0, isScalar ? event.valueStart - (/["']/.test(text[event.valueStart - 1] ?? '') ? 1 : 0) : event.start);
      const place: Place = isScalar ? { at } : { at, children };
      if (event.anchorStart >= 0) anchors.set(text.slice(event.anchorStart, event.anchorEnd), place);
      const value = isScalar ? getScalarValue(text, event) : '';
      add(place, value, isScalar && value === '' && event.valueStart === event.valueEnd);
      if (!isScalar) open.push({ place, children, isMap: event.type === EVENT_ID.MAPPING });
    }
  }
  return { root, faults };
}

/** Its place is that of the line `---` before its first value. */
function secondDocument(text: string, at: number): Fault {
  const line = text.lastIndexOf('\n---', at);
  return { at: line < 0 ? at : line + 1, message: 'a second YAML document starts here; only one is allowed' };
}
