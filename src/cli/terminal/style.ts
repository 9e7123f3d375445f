import type { Abilities } from './abilities.ts';

/** What a part of a line means. The terminal decides how it looks. */
export type Style = 'text' | 'faint' | 'strong' | 'good' | 'bad' | 'doubtful' | 'mild' | 'bar' | 'title' | 'chosen';

type Palette = Readonly<Record<Style, string>>;

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
  chosen: '7',
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
  const code = (colours === 256 ? MANY : SIXTEEN)[style];
  return code === '' ? '' : `\u001b[${code}m`;
}
