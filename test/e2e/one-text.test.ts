import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CONDITION_TEXT } from '../../deploy/rules/annotations.ts';
import type { Board } from '../../src/board/board.ts';
import { conditionText } from '../../src/board/condition-text.ts';
import { type ConditionView, conditionsOf, type DeviceView } from '../../src/board/device-view.ts';
import { devicePath } from '../../src/board/paths.ts';
import { MAIN, run } from '../cli/command-line.ts';
import { type ServedAgent, startAgent } from '../support/serve.ts';

const FLAGS = ['--sim.devices=amdgpu=2,nvme=1', '--sim.story=off', '--sim.pod-change=0', '--refresh.interval=500ms'];
/** Hide devices, need minutes, or have messages with numbers that grow. */
const NOT_HERE = ['hung-program', 'unreadable', 'stranger', 'spin', 'silent', 'errors'];

let directory = '';
let demo: ServedAgent;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'one-text-'));
  demo = await startAgent([process.execPath, MAIN, 'demo', ...FLAGS], { env: { ...process.env, TMPDIR: directory } });
  await demo.until('holders', (page) => page.includes('container_device_allocation{'));
});
afterAll(async () => {
  await demo?.stop('SIGINT');
  rmSync(directory, { recursive: true, force: true });
});

const get = async (path: string): Promise<string> => (await fetch(demo.url + path)).text();
const board = async (): Promise<Board> => JSON.parse(await get('/api/v1/devices?readings=shown')) as Board;
const command = async (...words: string[]): Promise<string> =>
  (await run([...words, `--web.listen-address=${demo.url.replace('http://', '')}`], { TMPDIR: directory })).stdout;

const counting = ({ devices }: Board): string[] =>
  devices
    .flatMap((device) =>
      conditionsOf(device).map(
        ({ type, countsAt, recovering, message }) => `${device.key} ${type} ${countsAt ?? ''} ${recovering?.since ?? ''} ${message}`,
      ),
    )
    .toSorted();

/** The words of a page, without its marks. */
const wordsOf = (markup: string): string =>
  markup
    .replace(/<[^>]*>/g, '')
    .replace(/&#39;/g, "'")
    .replace(/&quot;/g, '"')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&amp;/g, '&');

/** Texts that were asked for one after the other differ in how long ago something was. */
const timeless = (text: string): string => text.replace(/ [\d.]+ (?:s|min)(?= ago\b)/g, ' a time');

/** What an alert says of a condition: its template with the labels of the series. */
const alertText = ({ type, instance = '', reason }: ConditionView): string =>
  CONDITION_TEXT.replace(/\{\{ if \$labels\.part \}\}(.*?)\{\{ end \}\}/, instance === '' ? '' : '$1')
    .replace('{{ $labels.condition }}', type)
    .replace('{{ $labels.part }}', instance)
    .replace('{{ $labels.reason }}', reason);

it('is what health, the page of the device, explain and the alerts say of each condition', async () => {
  const { faults } = JSON.parse((await run(['demo', 'fault', '-o', 'json'], { TMPDIR: directory })).stdout) as {
    readonly faults: readonly { readonly name: string; readonly family: string; readonly devices: readonly string[] }[];
  };
  const begun = faults.filter(({ name }) => !NOT_HERE.includes(name));
  for (const [at, { name, devices }] of begun.entries())
    await run(['demo', 'fault', name, devices[at % devices.length] ?? ''], { TMPDIR: directory });
  await expect.poll(async () => new Set(counting(await board())).size, { interval: 500 }).toBeGreaterThanOrEqual(begun.length);
  const podsOf = ({ holders }: DeviceView): readonly string[] => [
    ...new Set(holders.filter(({ part }) => part === undefined).map(({ namespace, pod }) => `${namespace}/${pod}`)),
  ];
  const read = async () => {
    const shown = await board();
    const health = timeless(await command('health', '-o', 'text'));
    const told = shown.devices.filter((device) => conditionsOf(device).length > 0);
    const explained = new Map<string, string>();
    for (const pod of new Set(told.filter((one) => conditionsOf(one).some(({ severity }) => severity !== 'info')).flatMap(podsOf)))
      explained.set(pod, timeless(await command('explain', '--pod', pod)));
    const pages: (readonly [DeviceView, string, readonly string[]])[] = [];
    for (const device of told)
      pages.push([device, await get(devicePath(device)), podsOf(device).flatMap((pod) => explained.get(pod) ?? [])]);
    return { shown, health, pages, after: counting(await board()) };
  };
  let all = await read();
  // What changed while it was asked for cannot be compared. A command that the agent answers too late reads this machine itself.
  const isComparable = ({ shown, health, after }: typeof all): boolean =>
    after.join() === counting(shown).join() && !health.startsWith('no device');
  for (let tries = 0; tries < 20 && !isComparable(all); tries += 1) all = await read();
  const { shown, health, pages } = all;
  const nowMs = Date.parse(shown.now);
  const seen = new Set<string>();
  for (const [device, markup, explained] of pages) {
    const page = timeless(wordsOf(markup));
    for (const condition of conditionsOf(device)) {
      const told = conditionText(device, condition, nowMs);
      const { name, advice } = told;
      const [note, sentences] = [timeless(told.note), told.sentences.map(timeless)];
      const what = `${device.key} ${name}`;
      seen.add(condition.type);
      expect(health, what).toContain(`    ${name}: ${note}\n`);
      for (const sentence of sentences) expect(health, what).toContain(`      ${sentence}\n`);
      expect(page, what).toContain([`${name}: ${note}`, sentences.join(' '), advice].filter((text) => text !== undefined).join(' · '));
      if (condition.severity === 'info') continue;
      for (const text of explained)
        expect(text, what).toContain(
          [`${device.name} has ${name}: ${note}`, sentences.join(' '), advice].filter((part) => part !== undefined).join(' · '),
        );
      expect(alertText(condition), what).toBe(`${name}: ${condition.reason}`);
      expect(note.split(', ').slice(0, 2), what).toEqual([condition.severity, condition.reason]);
    }
  }
  expect([...seen].length, [...seen].join()).toBeGreaterThanOrEqual(7);
});
