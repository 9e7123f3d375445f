import { readFileSync } from 'node:fs';

const DEVICE = /(?<=[{,])device="((?:[^"\\]|\\.)*)"(?:,|(?=\}))/;

/** The samples of a page in lines `sample 1,2 name{labels} value`: one that devices share stands once, with their numbers from 1; `-`: of no device. */
export function linesOfSamples(page: string, devices: readonly string[]): readonly string[] {
  const numbers = new Map<string, string[]>();
  for (const sample of page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))) {
    const number = devices.indexOf(DEVICE.exec(sample)?.[1] ?? '') + 1;
    const text = number === 0 ? sample : sample.replace(DEVICE, '');
    numbers.set(text, [...(numbers.get(text) ?? []), number === 0 ? '-' : String(number)]);
  }
  return [...numbers].map(([text, of]) => `sample ${of} ${text}`);
}

/** The samples of a golden file `expected.txt`, one for each device again. */
export function goldenPage(path: string): string {
  const text = readFileSync(path, 'utf8');
  const devices = [...text.matchAll(/^device \d+ (.*):[^:]*$/gm)].map(([, id]) => id);
  const samples = [...text.matchAll(/^sample (\S+) (.*)$/gm)].flatMap(([, of = '', sample = '']) =>
    of.split(',').map((number) => (number === '-' ? sample : sample.replace('{', `{device="${devices[Number(number) - 1]}",`))),
  );
  return `${samples.join('\n').replaceAll(',}', '}')}\n`;
}
