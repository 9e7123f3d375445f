import type { Device } from '../model/device.ts';
import type { ContainerReadings, DeviceState, Snapshot } from '../model/snapshot.ts';
import { addContainers, holderLabels } from './container-metrics.ts';
import { addDevice, addLastRead, type DeviceStanding, identityLabels } from './device-metrics.ts';
import { joinLabels, type LabelText, labelText } from './labels.ts';
import {
  type Catalogue,
  type WrittenMetrics,
  type WrittenReadings,
  writeReadings,
  writtenMetrics,
  writtenTwins,
} from './reading-metrics.ts';
import type { Section } from './section.ts';
import { SeriesPage } from './series-page.ts';

/** What stood at one place among the devices of the last page. */
interface WrittenDevice extends DeviceStanding {
  readonly device: Device;
  readonly label: LabelText;
  readonly identity: LabelText;
  readonly section: Section;
  readonly readings: WrittenReadings;
}

/** What stood at one place among the readings of containers. */
interface WrittenContainer {
  readonly one: ContainerReadings;
  readonly readings: WrittenReadings;
}

/** What the kubelet's facts were made of: equal objects, one by one, give the same section. */
interface WrittenFacts {
  readonly sources: readonly unknown[];
  readonly section: Section;
}

/**
 * Makes the sections of a page: identity, verdict and readings of each device, when each was read, who holds what, then the readings that
 * belong to containers. What is the same object as in the last snapshot at the same place is taken over, so that no more is kept than one
 * snapshot needs.
 */
export class HardwareSections {
  readonly #metrics: WrittenMetrics;
  readonly #twins: WrittenMetrics;
  #devices: readonly WrittenDevice[] = [];
  #lastReads: Section | undefined;
  #facts: WrittenFacts | undefined;
  #containers: readonly WrittenContainer[] = [];

  constructor(catalogue: Catalogue) {
    this.#metrics = writtenMetrics(catalogue);
    this.#twins = writtenTwins(catalogue);
  }

  of(snapshot: Snapshot): readonly Section[] {
    this.#devices = snapshot.devices.map((state, at) => this.#device(state, this.#devices[at]));
    this.#lastReads = this.#lastReadsOf(snapshot);
    this.#facts = factsOf(snapshot, this.#facts);
    this.#containers = snapshot.containerReadings.map((one, at) => this.#container(one, this.#containers[at]));
    const sections: Section[] = [];
    for (const { section, readings } of this.#devices) sections.push(section, readings.section);
    sections.push(this.#lastReads, this.#facts.section);
    for (const { readings } of this.#containers) sections.push(readings.section);
    return sections;
  }

  #device(state: DeviceState, before: WrittenDevice | undefined): WrittenDevice {
    const { device, missingSinceMs, stale, verdict } = state;
    const isSameDevice = before?.device === device;
    const label = isSameDevice ? before.label : labelText({ device: device.id });
    const readings = writeReadings(this.#metrics, label, state.readings, before?.readings);
    if (isSameDevice && before.verdict === verdict && before.missingSinceMs === missingSinceMs && before.stale === stale) {
      return readings === before.readings ? before : { ...before, readings };
    }
    const identity = isSameDevice ? before.identity : identityLabels(device);
    const page = new SeriesPage();
    addDevice(page, state, label, identity);
    const standing = missingSinceMs === undefined ? { stale, verdict } : { missingSinceMs, stale, verdict };
    return { device, label, identity, ...standing, section: page.section(before?.section), readings };
  }

  #lastReadsOf({ devices }: Snapshot): Section {
    const page = new SeriesPage();
    for (const [at, state] of devices.entries()) addLastRead(page, state, this.#devices[at]?.label as LabelText);
    return page.section(this.#lastReads);
  }

  #container(one: ContainerReadings, before: WrittenContainer | undefined): WrittenContainer {
    if (before?.one === one) return before;
    const prefix = before !== undefined && areSameHolders(one, before.one) ? before.readings.prefix : prefixOf(one);
    return { one, readings: writeReadings(this.#twins, prefix, one.readings, before?.readings) };
  }
}

function factsOf(snapshot: Snapshot, before: WrittenFacts | undefined): WrittenFacts {
  const sources: unknown[] = [snapshot.allocations, snapshot.podResources.exclusive];
  for (const { key, device, holders, verdict } of snapshot.devices) sources.push(key, device, holders, verdict.state);
  if (before?.sources.length === sources.length && sources.every((source, at) => source === before.sources[at])) return before;
  const page = new SeriesPage();
  addContainers(page, snapshot);
  return { sources, section: page.section(before?.section) };
}

function prefixOf(one: ContainerReadings): LabelText {
  return joinLabels(holderLabels(one), labelText({ resource: one.resource, device: one.device }));
}

function areSameHolders(a: ContainerReadings, b: ContainerReadings): boolean {
  return (
    a.namespace === b.namespace && a.pod === b.pod && a.container === b.container && a.resource === b.resource && a.device === b.device
  );
}
