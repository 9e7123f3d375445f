export interface JsonStream {
  /** The complete objects, in their order. */
  readonly objects: readonly unknown[];
  /** False when text follows that is no complete object: the stream is truncated, or it is no stream of objects. */
  readonly isComplete: boolean;
}

/** Reads JSON objects that follow each other with or without white space. It stops at the first error. */
export function jsonStream(text: string): JsonStream {
  const objects: unknown[] = [];
  let at = 0;
  for (;;) {
    while (/\s/.test(text.charAt(at))) at += 1;
    if (at >= text.length) return { objects, isComplete: true };
    const end = objectEnd(text, at);
    if (end === undefined) return { objects, isComplete: false };
    try {
      objects.push(JSON.parse(text.slice(at, end)));
    } catch {
      return { objects, isComplete: false };
    }
    at = end;
  }
}

/** Returns the position after the object that begins at `start`. Undefined: no object begins there, or it does not end. */
function objectEnd(text: string, start: number): number | undefined {
  if (text[start] !== '{') return undefined;
  let depth = 0;
  let isText = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (isText) {
      if (char === '\\') at += 1;
      else if (char === '"') isText = false;
    } else if (char === '"') isText = true;
    else if (char === '{') depth += 1;
    else if (char === '}') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}
