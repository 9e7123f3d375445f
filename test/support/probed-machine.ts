import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../src/host/clock.ts';
import type { StepGuard } from '../../src/host/fs/step-guard.ts';
import { createHost, type Host } from '../../src/host/host.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { Finding } from '../../src/model/health.ts';
import type { Probe } from '../../src/probes/family.ts';
import { type Answer, answeringHost } from './guarded.ts';
import { type Told, toldOf } from './told.ts';

/** A machine with a probe and a manual clock. */
export interface ProbedMachine<P extends Probe = Probe> {
  readonly root: string;
  readonly probe: P;
  collect(): Collection;
  forward(ms: number): void;
  write(path: string, text: string | Buffer): void;
  link(path: string, target: string): void;
  remove(path: string): void;
  /** Removes the machine. */
  end(): void;
}

/** `startMs`: wall clock at the start; the epoch when absent. `kmsg`: empty when no log is read. */
export function probedMachine<P extends Probe>(
  root: string,
  createProbe: (host: Host) => P,
  {
    guard,
    startMs = 0,
    kmsg,
    answer = () => undefined,
  }: {
    readonly guard?: StepGuard | undefined;
    readonly startMs?: number | undefined;
    readonly kmsg?: string;
    /** What files give instead of what they hold. */
    readonly answer?: Answer | undefined;
  } = {},
): ProbedMachine<P> {
  let nowMs = 0;
  const clock: Clock = { now: () => startMs + nowMs, monotonic: () => nowMs, after: () => () => {} };
  const roots = {
    sysfs: join(root, 'sys'),
    procfs: join(root, 'proc'),
    dev: join(root, 'dev'),
    share: join(root, 'share'),
    ...(kmsg !== undefined && { kmsg }),
  };
  const probe = createProbe(answeringHost(createHost(roots, clock, guard === undefined ? {} : { guard }), answer));
  return {
    root,
    probe,
    collect: () => probe.collect() as Collection,
    forward: (ms) => {
      nowMs += ms;
    },
    write: (path, text) => writeFileSync(placed(root, path), text),
    link: (path, target) => symlinkSync(target, placed(root, path)),
    remove: (path) => rmSync(join(root, path), { recursive: true, force: true }),
    end: () => {
      probe.close?.();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** The whole path of a file to be, with its directory. */
function placed(root: string, path: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  return full;
}

/** Path of a captured card: the only directory `cardN` of the capture. */
export const capturedCard = (folder: string): string => join(folder, readdirSync(folder).find((name) => /^card\d+$/.test(name)) ?? '');

/** Puts a captured card into a machine, with the links that a real machine has, which the capture has lost. Returns its PCI address. */
export function placeCard(root: string, folder: string): string {
  const card = capturedCard(folder);
  const uevent = readFileSync(join(card, 'device/uevent'), 'utf8');
  const value = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(uevent)?.[1]?.toLowerCase() ?? '';
  const [address, driver, name] = [value('PCI_SLOT_NAME'), value('DRIVER'), card.slice(card.lastIndexOf('/') + 1)];
  const directory = join(root, `sys/devices/pci0000:00/${address}`);
  cpSync(join(card, 'device'), directory, { recursive: true });
  cpSync(card, join(directory, 'drm', name), { recursive: true, filter: (path) => !path.startsWith(join(card, 'device')) });
  const links = {
    [`sys/bus/pci/devices/${address}`]: `../../../devices/pci0000:00/${address}`,
    [`sys/bus/pci/drivers/${driver}/${address}`]: `../../../../devices/pci0000:00/${address}`,
    [`sys/devices/pci0000:00/${address}/driver`]: `../../../bus/pci/drivers/${driver}`,
    [`sys/class/drm/${name}`]: `../../devices/pci0000:00/${address}/drm/${name}`,
  };
  for (const [path, target] of Object.entries(links)) symlinkSync(target, placed(root, path));
  return address;
}

/** Returns the report of a device in a collection. */
export function reportOf(collection: Collection, id: string): Told {
  const report = collection.reports.find(({ device }) => device.id === id);
  if (report === undefined) throw new Error(`no device ${id} among ${collection.reports.map(({ device }) => device.id).join(', ')}`);
  return toldOf(report);
}

/** Value of the one series with these labels, in any order; undefined when there is none. */
export function valueIn(report: Told, metric: string, labels: Readonly<Record<string, string>> = {}): number | bigint | undefined {
  const matches = report.readings.filter(
    (reading) => reading.metric === metric && Object.entries(labels).every(([name, value]) => reading.labels?.[name] === value),
  );
  if (matches.length > 1) throw new Error(`${matches.length} series of ${metric}`);
  return matches[0]?.value;
}

export const findingIn = (report: Told, type: string, instance?: string): Finding | undefined =>
  report.findings.find((finding) => finding.type === type && finding.instance === instance);

/** `metric{label=value,…}` with the labels in alphabetical order, mapped to the value. */
export function seriesOf({ readings }: Pick<Told, 'readings'>): Readonly<Record<string, number | bigint>> {
  return Object.fromEntries(
    readings.map(({ metric, labels = {}, value }) => {
      const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
      return [pairs.length === 0 ? metric : `${metric}{${pairs.map(([name, text]) => `${name}=${text}`).join(',')}}`, value];
    }),
  );
}

/** Conditions that hold, as `Type` or `Type/instance`, with the reason, and with the severity where the finding has one. */
export function holding({ findings }: Pick<Told, 'findings'>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    findings
      .filter(({ status }) => status === true)
      .map(({ type, instance, reason, severity }) => [
        instance === undefined ? type : `${type}/${instance}`,
        severity === undefined ? reason : `${reason} (${severity})`,
      ]),
  );
}
