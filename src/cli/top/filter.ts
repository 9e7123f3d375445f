import { type BoardView, VIEW_STATES } from '../../board/view.ts';

type Filters = Pick<BoardView, 'text' | 'family' | 'state' | 'namespace' | 'holder'>;

/**
 * Reads what a user typed after `/`. `family:`, `state:`, `namespace:` and `holder:` look at one field; all other words must be somewhere
 * in the row. A state may be shortened, because the user types it letter by letter.
 */
export function filtersOf(typed: string): Filters {
  const filters: { -readonly [name in keyof Filters]: Filters[name] } = {};
  const words: string[] = [];
  for (const word of typed.split(/\s+/).filter((one) => one !== '')) {
    const [, field, value = ''] = /^(family|state|namespace|holder):(.*)$/i.exec(word) ?? [];
    const name = field?.toLowerCase() as 'family' | 'state' | 'namespace' | 'holder' | undefined;
    if (name === undefined) words.push(word);
    else if (value === '') continue;
    else if (name !== 'state') filters[name] = value;
    else {
      const state = VIEW_STATES.find((one) => one.startsWith(value.toLowerCase()));
      // A state that does not exist is no state of any row.
      if (state === undefined) words.push(word);
      else filters.state = state;
    }
  }
  if (words.length > 0) filters.text = words.join(' ');
  return filters;
}
