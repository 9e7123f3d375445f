// Project: programs. Histories in number.
import { get, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { afterEach, expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { randomSnapshot } from '../metrics/random-snapshot.ts';
import { families, snapshot as sample, stats } from '../metrics/sample.ts';
import { seeded } from '../support/seeded.ts';
import { type Started, start } from './start.ts';

let started: Started | undefined;
afterEach(() => started?.server.close());

const OPEN_METRICS = 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5';
const TEXT = 'text/plain;version=0.0.4';

interface Answer {
  readonly text: string;
  readonly isZipped: boolean;
  readonly type: string;
}

function scrape(url: string, accept: string, encoding: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get(`${url}/metrics`, { headers: { accept, 'accept-encoding': encoding }, agent: false }, (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const isZipped = response.headers['content-encoding'] === 'gzip';
        resolve({ text: (isZipped ? gunzipSync(bytes) : bytes).toString(), isZipped, type: response.headers['content-type'] ?? '' });
      });
    }).on('error', reject);
  });
}

const specs: ReadonlyMap<string, MetricSpec> = new Map(families.flatMap(({ metrics }) => metrics.map((spec) => [spec.name, spec])));
/** The sensors and kinds of both families. */
const labelsOf = (name: string): readonly string[] =>
  families.flatMap(({ metrics }) => metrics.filter((spec) => spec.name === name).flatMap(({ labels }) => labels));

/** The readings of a snapshot as the formats want them, written in the simplest way: of a series said twice the first. */
function expectedLines({ devices }: Snapshot): string[] {
  const lines = new Map<string, string>();
  for (const { device, readings } of devices) {
    for (const { metric, labels = {}, value } of readings) {
      const spec = specs.get(metric);
      if (spec === undefined || Object.keys(labels).some((name) => !labelsOf(metric).includes(name))) continue;
      if (typeof value === 'number' && !Number.isFinite(value)) continue;
      if (spec.type === 'counter' && value < 0) continue;
      const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
      const pairs = Object.entries({ device: device.id, ...labels }).map(([name, text]) => `${name}="${escaped(text)}"`);
      const series = `${metric}{${pairs.join(',')}}`;
      if (!lines.has(series)) lines.set(series, `${series} ${value}`);
    }
  }
  return [...lines.values()].sort();
}

/** Each metric once, its HELP and TYPE first and its samples after it, no series twice, the end where it belongs. */
function expectWellFormed(text: string, isOpenMetrics: boolean): void {
  const lines = text.split('\n');
  expect(lines.pop()).toBe('');
  expect(lines.filter((line) => line === '# EOF')).toHaveLength(isOpenMetrics ? 1 : 0);
  if (isOpenMetrics) expect(lines.pop()).toBe('# EOF');
  const [seen, series] = [new Set<string>(), new Set<string>()];
  let family = '';
  for (const line of lines.filter((one) => one !== '')) {
    const [, kind, name] = /^# (HELP|TYPE|UNIT) (\S+) /.exec(line) ?? [];
    if (kind === 'HELP') {
      family = name as string;
      expect(seen.has(family), family).toBe(false);
      seen.add(family);
    } else if (kind !== undefined) {
      expect(name).toBe(family);
    } else {
      const id = line.slice(0, line.lastIndexOf(' '));
      expect(id.startsWith(family), line).toBe(true);
      expect(series.has(id), id).toBe(false);
      series.add(id);
    }
  }
}

it('every scrape tells the snapshot of its moment, in whatever format and packing, whatever came before', async () => {
  const pick = seeded(11);
  const world = { nowMs: 0, snapshot: sample as Snapshot };
  const now = (): number => world.nowMs;
  const clock: Clock = { now, monotonic: now, after: () => () => undefined };
  const exposition = createExposition({
    families,
    snapshot: () => world.snapshot,
    agent: () => ({ ...stats, node: String(world.nowMs) }),
    clock,
  });
  const store = { snapshot: () => world.snapshot };
  started = await start({ parts: { exposition, store, clock } });
  let zipped = 0;
  for (let turn = 0; turn < 150; turn += 1) {
    world.nowMs += pick(300);
    if (pick(3) > 0) world.snapshot = randomSnapshot(pick);
    const wanted = Array.from({ length: 1 + pick(4) }, () => ({ isOpen: pick(2) === 0, encoding: pick(2) === 0 ? 'gzip' : 'identity' }));
    const url = started.url;
    const answers = await Promise.all(wanted.map(({ isOpen, encoding }) => scrape(url, isOpen ? OPEN_METRICS : TEXT, encoding)));
    for (const [at, { text, isZipped, type }] of answers.entries()) {
      const { isOpen = false, encoding } = wanted[at] ?? {};
      if (isZipped) zipped += 1;
      expect(isZipped ? 'gzip' : encoding).toBe(encoding);
      expect(type).toContain(isOpen ? 'openmetrics-text' : 'text/plain');
      expectWellFormed(text, isOpen);
      const told = text.split('\n').filter((line) => specs.has(line.split(/[{ ]/)[0] as string));
      expect(told.sort(), `turn ${turn}`).toEqual(expectedLines(world.snapshot));
      const twin = wanted.findIndex((one) => one.isOpen === isOpen);
      expect(text, `turn ${turn}: packed and plain`).toBe(answers[twin]?.text);
    }
  }
  expect(zipped).toBeGreaterThan(50);
});
