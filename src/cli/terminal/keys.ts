/** A key by its name, or the sign that it writes. */
export type Key = string;

const SEQUENCES: Readonly<Record<string, Key>> = {
  '[A': 'up',
  '[B': 'down',
  '[C': 'right',
  '[D': 'left',
  '[H': 'home',
  '[F': 'end',
  OA: 'up',
  OB: 'down',
  OC: 'right',
  OD: 'left',
  OH: 'home',
  OF: 'end',
  '[1~': 'home',
  '[4~': 'end',
  '[5~': 'page-up',
  '[6~': 'page-down',
  '[7~': 'home',
  '[8~': 'end',
};

const CONTROLS: Readonly<Record<string, Key>> = {
  '\r': 'enter',
  '\n': 'enter',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl-c',
  '\u0015': 'ctrl-u',
  '\u000c': 'ctrl-l',
  '\t': 'tab',
};

const ESCAPE = '\u001b';
/** The part of a complete sequence that comes after the Escape character: CSI with parameters, or SS3. */
const WHOLE = /^(?:\[[0-9;?<=>]*[ -/]*[@-~]|O[ -~])/;
const BEGUN = /^(?:\[[0-9;?<=>]*[ -/]*|O)?$/;
/** No key sends more. */
const LONGEST = 32;

/** Turns what a terminal sends into keys. A sequence may arrive in pieces, as over a slow connection. */
export class KeyReader {
  #rest = '';

  /** True while the beginning of a sequence waits for its end. */
  get isWaiting(): boolean {
    return this.#rest !== '';
  }

  /** Keys that are complete now. */
  read(text: string): Key[] {
    const keys: Key[] = [];
    let rest = this.#rest + text;
    this.#rest = '';
    while (rest !== '') {
      const isEscape = rest.startsWith(ESCAPE);
      const whole = isEscape ? WHOLE.exec(rest.slice(1))?.[0] : undefined;
      if (whole !== undefined) {
        const key = SEQUENCES[whole];
        if (key !== undefined) keys.push(key);
        rest = rest.slice(1 + whole.length);
      } else if (isEscape && rest.length < LONGEST && BEGUN.test(rest.slice(1))) {
        this.#rest = rest;
        rest = '';
      } else {
        const [sign = ''] = rest;
        const key = sign === ESCAPE ? 'escape' : (CONTROLS[sign] ?? (/\p{C}/u.test(sign) ? undefined : sign));
        if (key !== undefined) keys.push(key);
        rest = rest.slice(sign.length);
      }
    }
    return keys;
  }

  /** Nothing followed: what waits was the Escape key. */
  end(): Key[] {
    const isEscape = this.#rest !== '';
    this.#rest = '';
    return isEscape ? ['escape'] : [];
  }
}
