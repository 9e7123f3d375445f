import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  type ParsedNode,
  type YAMLMap,
} from 'yaml';

/** Keys and indices from the root of a document. */
export type Path = readonly (string | number)[];

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

type Found = { readonly key?: Node | undefined; readonly value: Node | null | undefined };

/** Returns the position of the value at a path; for an absent value, the position of its nearest parent. */
export function positionOf(document: Document, lines: LineCounter, path: Path): TextPosition {
  for (let length = path.length; length >= 0; length--) {
    const found = find(document, path.slice(0, length));
    const node = isEmptyScalar(found?.value) ? found?.key : (found?.value ?? found?.key);
    if (node !== undefined && node !== null) return positionOfNode(node, lines);
  }
  return { line: 1, column: 1 };
}

/** Returns the position of the key at a path. */
export function positionOfKey(document: Document, lines: LineCounter, path: Path): TextPosition {
  const key = find(document, path)?.key;
  return key === undefined ? positionOf(document, lines, path.slice(0, -1)) : positionOfNode(key, lines);
}

function find(document: Document, path: Path): Found | undefined {
  let found: Found | undefined = { value: document.contents as Node | null };
  for (const step of path) {
    found = child(document, found?.value, step);
    if (found === undefined) return undefined;
  }
  return found;
}

function child(document: Document, parent: Node | null | undefined, step: string | number): Found | undefined {
  const node = isAlias(parent) ? parent.resolve(document) : parent;
  if (isSeq(node)) return { value: node.items[Number(step)] as Node | undefined };
  if (!isMap(node)) return undefined;
  const pair = pairsOf(node).get(String(step));
  return pair === undefined ? undefined : { key: pair.key as Node, value: pair.value as Node | null };
}

/** A file can have tens of thousands of wrong keys in one mapping. Without an index, finding them all takes minutes. */
const indexes = new WeakMap<YAMLMap, ReadonlyMap<string, Pair>>();

function pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
  const known = indexes.get(map);
  if (known !== undefined) return known;
  const index = new Map<string, Pair>();
  for (const pair of map.items) {
    const key = keyText(pair);
    if (!index.has(key)) index.set(key, pair);
  }
  indexes.set(map, index);
  return index;
}

/** Returns the text of a key as it occurs in a path. */
export function keyText({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key);
}

export function positionOfNode(node: Node, lines: LineCounter): TextPosition {
  const range = (node as ParsedNode).range;
  const { line, col } = lines.linePos(range?.[0] ?? 0);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** True for the value of `key:` without a value; the position of the key is then more useful. */
function isEmptyScalar(node: Node | null | undefined): boolean {
  return isScalar(node) && node.value === null && (node.source ?? '') === '';
}
