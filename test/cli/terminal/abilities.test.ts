import { describe, expect, it } from 'vitest';
import { abilitiesOf } from '../../../src/cli/terminal/abilities.ts';

describe('abilities of a terminal', () => {
  it.each([
    [{ TERM: 'xterm-256color' }, 256],
    [{ TERM: 'xterm-direct' }, 256],
    [{ TERM: 'screen' }, 16],
    [{ TERM: 'xterm', COLORTERM: 'truecolor' }, 256],
    [{ TERM: 'xterm-256color', NO_COLOR: '1' }, 0],
    [{ TERM: 'xterm-256color', NO_COLOR: '' }, 256],
    [{ TERM: 'dumb', COLORTERM: 'truecolor' }, 0],
    [{ TERM: 'vt100' }, 0],
    [{}, 0],
  ])('%j has %i colours', (environment, colours) => {
    expect(abilitiesOf(environment, true).colours).toBe(colours);
    expect(abilitiesOf(environment, false).colours).toBe(0);
  });

  it.each([
    [{ TERM: 'xterm', LANG: 'de_DE.utf8' }, true],
    [{ TERM: 'xterm', LANG: 'C' }, false],
    [{ TERM: 'xterm', LANG: 'C.UTF-8', LC_ALL: 'POSIX' }, false],
    [{ TERM: 'xterm' }, true],
    [{ TERM: 'linux' }, false],
    [{}, false],
  ])('%j shows UTF-8: %s', (environment, isUtf8) => {
    expect(abilitiesOf(environment, true).isUtf8).toBe(isUtf8);
  });
});
