import { createContext, Script } from 'node:vm';

const CONTEXT = createContext({ form: /./, text: '' });
const TEST = new Script('form.test(text)');
/**
 * The time of an expression can be exponential, and nothing in its text tells it. One that needs longer for a text fits no text from then on.
 * On a busy machine a good expression can need a second.
 */
const MOST_MS = 5_000;
const TOO_SLOW = new Set<string>();
/** Devices have few texts, and the watch over one test costs a thread. */
const answers = new Map<string, boolean>();
const MOST_ANSWERS = 4_096;

/** Whether an expression of the configuration fits a whole text, without case. */
export function fitsExpression(expression: string, text: string): boolean {
  const key = `${expression}\u0000${text}`;
  const known = answers.get(key);
  if (known !== undefined) return known;
  if (answers.size >= MOST_ANSWERS) answers.clear();
  const does = !TOO_SLOW.has(expression) && tested(expression, text);
  answers.set(key, does);
  return does;
}

function tested(expression: string, text: string): boolean {
  Object.assign(CONTEXT, { form: new RegExp(`^(?:${expression})$`, 'i'), text });
  try {
    return TEST.runInContext(CONTEXT, { timeout: MOST_MS }) === true;
  } catch {
    TOO_SLOW.add(expression);
    process.emitWarning(
      `the expression "${expression}" of a resource takes too long, so it selects no further device: avoid nested repetition`,
    );
    return false;
  }
}
