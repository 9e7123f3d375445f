import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { type Prometheus, prometheusAt } from '../../src/fleet/prometheus.ts';
import { needsHands, sentenceOf } from '../../src/fleet/sentence.ts';
import { readFleet } from '../../src/fleet/watch.ts';
import { type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { PROMETHEUSES } from '../support/promtool.ts';
import { seededRandom } from '../support/seeded.ts';
import { until } from '../support/until.ts';
import { isClear, type SimulatedNode, simulatedNodes, truthOf, withoutRecords, writeFleet } from './simulated-fleet.ts';

/** More of both by hand: FLEET_TRUTH=200x500. */
const [NODES = 0, MOMENTS = 0] = (process.env.FLEET_TRUTH ?? '24x12').split('x').map(Number);
const SECONDS = 4 * 3_600;
/** A full hour, so that a block of Prometheus begins there. */
const START = Date.UTC(2026, 0, 5, 8) / 1_000;
const FIRST = START + 3_600;
const [, { isThere, skipped, program }] = PROMETHEUSES;

describe.skipIf(!isThere)(`a fleet in a real Prometheus${skipped}`, () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-fleet-'));
  const nodes = simulatedNodes(NODES, { start: START, seconds: SECONDS, seed: 7 });
  let running: RunningPrometheus;

  beforeAll(async () => {
    const file = join(directory, 'fleet.om');
    writeFleet(file, nodes, START, SECONDS);
    execFileSync('promtool-3', ['tsdb', 'create-blocks-from', 'openmetrics', file, join(directory, 'data')], { stdio: 'ignore' });
    running = await startPrometheus({}, {}, program, `--storage.tsdb.path=${join(directory, 'data')}`, '--storage.tsdb.retention.time=10y');
    await until(
      () =>
        fetch(`${running.url}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
      'Prometheus is ready',
    );
  });
  afterAll(async () => {
    await running?.stop();
    rmSync(directory, { recursive: true });
  });

  /** As if the time of Prometheus were `at`. The rules are computed at that moment, and `change` may spoil a question. */
  function at(seconds: number, change: (expr: string) => string = (expr) => expr): Promise<Fleet> {
    const client = prometheusAt({ url: new URL(running.url), patienceMs: 120_000 });
    const moved: Prometheus = {
      query: (expr, time) =>
        expr === 'time()'
          ? Promise.resolve({ rows: [{ labels: {}, value: seconds }], warnings: [] })
          : client.query(change(withoutRecords(expr)), time),
      queryRange: client.queryRange,
    };
    return readFleet(moved);
  }
  const random = seededRandom(11);
  const anyTime = Array.from({ length: MOMENTS }, () => Math.round(FIRST + random() * (SECONDS - 3_600)));
  /** The samples of a silent agent are then too old, and Prometheus still has them. */
  const tooOld = nodes
    .flatMap(({ silent }) => silent.filter(({ from, until }) => until - from > 300).map(({ from }) => from - 60 + 240))
    .filter((moment) => moment > FIRST && moment < START + SECONDS);
  const moments = [...tooOld.slice(0, 4), ...anyTime];

  function differences(fleet: Fleet, seconds: number): readonly string[] {
    const byName = new Map(fleet.nodes.map((node) => [node.name, node]));
    const all = nodes.filter((node) => isClear(node, seconds)).flatMap((node) => differencesOf(node, seconds, byName));
    const hands = fleet.nodes.filter(needsHands).length;
    const said = Number(/^([\d,]+) of/.exec(sentenceOf(fleet))?.[1]?.replaceAll(',', '') ?? 0);
    const devices = fleet.capacity.reduce((sum, one) => sum + one.devices, 0);
    return [
      ...all,
      ...(said === hands ? [] : [`${seconds}: the sentence says ${said}, ${hands} need hands`]),
      ...(devices === NODES * 4 ? [] : [`${seconds}: ${devices} devices`]),
      ...(fleet.nodes.length === NODES ? [] : [`${seconds}: ${fleet.nodes.length} nodes`]),
      ...fleet.problems.map(({ question, message }) => `${seconds}: ${question}: ${message}`),
    ];
  }

  function differencesOf(node: SimulatedNode, seconds: number, byName: ReadonlyMap<string, Fleet['nodes'][number]>): readonly string[] {
    const [truth, found] = [truthOf(node, seconds, START), byName.get(node.name)];
    const isNow = found !== undefined && found.state !== 'silent' && found.state !== 'old';
    const state = isNow ? found.state : 'not now';
    const hit = [...new Set(found?.faults.flatMap((fault) => fault.hit))].toSorted();
    const faults = found?.faults.map(({ device, condition }) => `${device} ${condition}`) ?? [];
    return [
      ...(new Set(faults).size === faults.length ? [] : [`${seconds}: ${node.name} has a fault twice: ${faults}`]),
      ...(state === truth.state ? [] : [`${seconds}: ${node.name} is ${truth.state}, not ${found?.state}`]),
      ...(`${hit}` === `${truth.hit}` ? [] : [`${seconds}: ${node.name} hits ${truth.hit}, not ${hit}`]),
    ];
  }

  it('says what is true at random moments', async () => {
    for (const moment of moments) expect(differences(await at(moment), moment)).toEqual([]);
  });

  it('would not, if silent agents counted, if old samples counted, or if two instances counted twice', async () => {
    const wrong: Readonly<Record<string, (expr: string) => string>> = {
      silent: (expr) =>
        expr.replace(
          /^\(max by \(cluster, node\) \(timestamp\(device_agent_build_info\)\)\)$/,
          'max by (node) (timestamp(device_agent_build_info) or last_over_time(up[1h]) or vector(0)) or max by (node) (last_over_time(device_agent_build_info[1h])) * 0 + time()',
        ),
      // The growth of five minutes would see it, too.
      old: (expr) =>
        expr.includes('changes(')
          ? `${expr} * 0 + 1`
          : expr.replace(
              /^\(max by \(cluster, node\) \(timestamp\(device_agent_build_info\)\)\)$/,
              'max by (node) (device_agent_build_info) * 0 + time()',
            ),
      twice: (expr) =>
        expr.startsWith('(count_values')
          ? expr
              .replaceAll('max by (cluster, node, device)', 'max by (cluster, node, device, instance)')
              .replaceAll('on (cluster, node, device)', 'on (cluster, node, device)')
          : expr,
    };
    const isUnequal = async (change: (expr: string) => string): Promise<boolean> => {
      for (const moment of moments) if (differences(await at(moment, change), moment).length > 0) return true;
      return false;
    };
    for (const [name, change] of Object.entries(wrong)) expect([name, await isUnequal(change)]).toEqual([name, true]);
  });
});
