import type { Output } from '../output.ts';
import { stopSignal } from '../signals.ts';
import { widthOf } from '../terminal/frame.ts';

/** Prints a text again whenever it changed, until a signal arrives or the reader closes the output. */
export async function repeated(make: () => Promise<string>, intervalMs: number, output: Output): Promise<void> {
  const terminal = process.stdout.isTTY ? process.stdout : undefined;
  const ended = Promise.race([stopSignal(), new Promise((resolve) => output.onClosed(() => resolve('closed')))]).then(
    (): typeof ENDED => ENDED,
  );
  let last: string | undefined;
  let paint = (): Promise<void> => Promise.resolve();
  terminal?.on('resize', () => void paint());
  for (;;) {
    const text = await Promise.race([make(), ended]);
    if (text === ENDED) return;
    if (text !== last) {
      last = text;
      const time = new Date().toISOString();
      paint = () => (terminal === undefined ? output.write(`${time}\n${text}\n`) : output.overwrite(fitting(`${time}\n${text}`, terminal)));
      await paint();
    }
    if ((await Promise.race([pause(intervalMs), ended])) === ENDED) return;
  }
}

const ENDED: unique symbol = Symbol('ended');

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A table that is larger than the terminal is cut, because it would scroll. */
function fitting(text: string, { columns, rows }: { readonly columns: number; readonly rows: number }): readonly string[] {
  const lines = text.trimEnd().split('\n');
  const room = rows - 1;
  const shown =
    lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines; "device-agent top" scrolls`];
  return shown.map((line) => (widthOf(line) <= columns ? line : `${[...line].slice(0, columns - 1).join('')}…`));
}
