import type { Abilities } from './abilities.ts';

/** What a part of a line means. The terminal decides how it looks. */
type Meaning = 'text' | 'faint' | 'strong' | 'good' | 'bad' | 'doubtful' | 'mild' | 'bar' | 'title';
/** A part of the chosen line keeps its meaning. */
export type Style = Meaning | `chosen ${Meaning}`;

type Palette = Readonly<Record<Meaning, string>>;

/** Parameters of `CSI m`. Sixteen colours are those of the user's own scheme, so they suit dark and light. */
const SIXTEEN: Palette = {
  text: '',
  faint: '2',
  strong: '1',
  good: '32',
  bad: '1;31',
  doubtful: '35',
  mild: '33',
  bar: '36',
  title: '7',
};

/** Middle tones, readable on black and on white. */
const MANY: Palette = {
  ...SIXTEEN,
  faint: '38;5;244',
  good: '38;5;35',
  bad: '1;38;5;160',
  doubtful: '38;5;133',
  mild: '38;5;172',
  bar: '38;5;67',
};

/** The sequence that switches a style on; empty without colours, so the words alone must be sufficient. */
export function styleCode(style: Style, { colours }: Abilities): string {
  if (colours === 0) return '';
  const isChosen = style.startsWith('chosen ');
  const meaning = (colours === 256 ? MANY : SIXTEEN)[style.replace(/^chosen /, '') as Meaning];
  // A middle grey suits letters of dark and of light schemes. Without it, a line below the text marks the row.
  const code = isChosen ? [meaning, colours === 256 ? '48;5;240' : '4'].filter((part) => part !== '').join(';') : meaning;
  return code === '' ? '' : `\u001b[${code}m`;
}
