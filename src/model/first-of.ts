/** The first `most` names as one text, with the number of the others: `a, b and 3 more`. */
export function firstOf(names: readonly string[], most: number): string {
  const others = names.length - most;
  return `${names.slice(0, most).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
}
