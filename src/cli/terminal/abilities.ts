import type { Environment } from '../../config/environment.ts';

/** Abilities of a terminal, as its environment variables give them. */
export interface Abilities {
  /** 0 for no colour at all. */
  readonly colours: 0 | 16 | 256;
  /** False: only ASCII. */
  readonly isUtf8: boolean;
}

/** https://no-color.org: any value but the empty one switches colours off. */
export function abilitiesOf(environment: Environment, wantsColour: boolean): Abilities {
  return { colours: wantsColour ? coloursOf(environment) : 0, isUtf8: isUtf8(environment) };
}

function coloursOf({ NO_COLOR = '', TERM = '', COLORTERM = '' }: Environment): Abilities['colours'] {
  if (NO_COLOR !== '' || TERM === '' || TERM === 'dumb' || /-m(?:ono)?$|^vt\d/.test(TERM)) return 0;
  // `direct` and COLORTERM promise more than 256; they have these too.
  return /256|direct/.test(TERM) || COLORTERM !== '' ? 256 : 16;
}

/**
 * The first of the three variables that is set decides, as in the C library. Without any of them, as in a container, a terminal other
 * than the console of Linux is taken to show UTF-8, as terminals do since long.
 */
function isUtf8({ LC_ALL = '', LC_CTYPE = '', LANG = '', TERM = '' }: Environment): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => value !== '');
  return locale === undefined ? !['', 'dumb', 'linux'].includes(TERM) : /utf-?8/i.test(locale);
}
