import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { hours, minutes, seconds } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { type FaultyFamily, NodeFaults } from '../../src/sim/faults.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { countsOf, sizesOf } from '../../src/sim/sizes.ts';
import { type Scene, Story, sceneAt } from '../../src/sim/story.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';

const families = await loadFamilies(familyLoaders);

/** What the families of the default demo can have. */
const demo: readonly FaultyFamily[] = simulatedFamilies.flatMap(({ name, simulation }) => {
  const { targets = [] } = simulation.simulate({ counts: countsOf([], sizesOf(simulatedFamilies)), elapsedMs: 0 });
  return targets.length === 0 ? [] : [{ family: name, faults: simulation.faults, targets }];
});

/** All scenes until a time, found by looking every second. */
function scenesUntil(endMs: number): readonly Scene[] {
  const scenes = new Map<number, Scene>();
  for (let ms = 0; ms < endMs; ms += seconds(1)) {
    const scene = sceneAt(demo, ms);
    if (scene !== undefined) scenes.set(scene.fromMs, scene);
  }
  return [...scenes.values()];
}

describe('the story', () => {
  it('shows each family of the default demo in turn within six minutes, one at a time, with healthy time around', () => {
    const scenes = scenesUntil(minutes(6));
    expect(scenes.map(({ family, name }) => `${family} ${name}`)).toEqual(['fpga nonfatal-error', 'infiniband port-down', 'nvidia hot']);
    expect(scenes[0]?.fromMs).toBeGreaterThanOrEqual(seconds(20));
    for (const [n, scene] of scenes.entries()) {
      const family = families.find(({ name }) => name === scene.family);
      const waits = (family?.conditions ?? []).filter(({ type }) => ['PortDown', 'ThermalSlowdown', 'NonfatalError'].includes(type));
      expect(waits).toHaveLength(1);
      const { forMs = 0, recoveryMs = 0 } = waits[0] ?? {};
      expect(scene.untilMs - scene.fromMs, 'it lasts long enough to count').toBeGreaterThan(forMs + seconds(10));
      const next = scenes[n + 1]?.fromMs ?? minutes(6);
      expect(next - scene.untilMs, 'the device is healthy before the next scene').toBeGreaterThanOrEqual(recoveryMs + seconds(10));
    }
  });

  it('takes another device in each round, and none twice within half a day', () => {
    const scenes = scenesUntil(hours(25));
    const ofGpus = scenes.filter(({ family }) => family === 'nvidia').map(({ device }) => device);
    expect(new Set(ofGpus.slice(0, 8)).size).toBe(8);
    expect(ofGpus.length, 'it begins again after half a day').toBeGreaterThan(16);
    const last = new Map<string, number>();
    for (const { family, name, device, fromMs } of scenes) {
      const key = `${family} ${name} ${device}`;
      expect(fromMs - (last.get(key) ?? -hours(12)), key).toBeGreaterThanOrEqual(hours(12));
      last.set(key, fromMs);
    }
  });

  it('leaves alone what somebody else began, and does not begin again what somebody cleared', () => {
    const faults = new NodeFaults(() => demo);
    const story = new Story(faults, () => demo);
    const running = (): string[] => faults.list().flatMap(({ name, running: now }) => now.map(({ device }) => `${name} ${device}`));
    const own = faults.begin('nonfatal-error', '0010:21:00.0', 1_000);
    for (const at of [25, 40, 65]) story.step(seconds(at));
    expect(running()).toEqual(['nonfatal-error 0010:21:00.0']);
    faults.end([own], seconds(66));
    story.step(seconds(85));
    expect(running()).toEqual(['port-down mlx5_0']);
    faults.clear(undefined, seconds(90));
    story.step(seconds(91));
    expect(running()).toEqual([]);
    story.step(seconds(210));
    expect(running()).toEqual(['hot GPU-5e1f0000-0000-4000-8000-000000000001']);
    story.step(seconds(300));
    expect(running()).toEqual([]);
  });

  it('can be switched off', async () => {
    const clock = new ManualClock();
    const node = new SimulatedNode(simulatedFamilies, { ...defaultValues(simulationOptions), story: 'off', pods: 0 }, clock);
    try {
      for (let at = 0; at < 400; at += 10) node.step(seconds(at));
      expect(node.faults.list().flatMap(({ running }) => running)).toEqual([]);
      expect(simulatedFamilies.flatMap(({ name }) => node.faults.of(name))).toEqual([]);
    } finally {
      await node.stop();
    }
  });
});
