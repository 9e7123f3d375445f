/** Removes control characters, because text from hardware must not control the terminal or end a line. */
export const oneLine = (text: string): string => text.replace(/\p{Cc}+/gu, ' ');

/** Shortens a text to one line of `limit` bytes; three dots replace the rest. */
export function shortened(text: string, limit: number): string {
  const line = oneLine(text);
  if (Buffer.byteLength(line) <= limit) return line;
  let kept = '';
  let bytes = 0;
  for (const character of line) {
    bytes += Buffer.byteLength(character);
    if (bytes > limit - 3) break;
    kept += character;
  }
  return `${kept.trimEnd()}...`;
}
