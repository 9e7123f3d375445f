import { refreshOptions } from '../../agent/options.ts';
import { systemClock } from '../../host/clock.ts';
import { pathOptions } from '../../host/options.ts';
import type { Collection, Problem } from '../../model/collection.ts';
import type { DeviceFamily } from '../../probes/family.ts';
import { FamilyRunner } from '../../supervisor/family-runner.ts';
import { ReaderPool } from '../../supervisor/reader-pool.ts';
import { familyOptions } from '../settings.ts';
import type { CheckContext } from './check.ts';

const CLOSE_GRACE_MS = 500;

export interface FamilyRun {
  readonly collection: Collection<unknown> | undefined;
  readonly problems: readonly Problem[];
}

/** Runs the probe of a family once, isolated from the others as in the agent, so that a hanging probe becomes a finding. */
export async function runFamily(family: DeviceFamily, { configuration }: CheckContext): Promise<FamilyRun> {
  const roots = configuration.section('path', pathOptions);
  const options = familyOptions(configuration, family);
  const { timeout } = configuration.section('refresh', refreshOptions);
  const readers = new ReaderPool(systemClock);
  const events = { changed() {}, wake() {}, crashed() {} };
  const settings = { family: family.name, options, roots, timeoutMs: timeout, isApart: true };
  const runner = new FamilyRunner(settings, { clock: systemClock, readers, events });
  await runner.refresh();
  const collection = runner.latest()?.collection;
  const { problems } = runner.state();
  await readers.close(CLOSE_GRACE_MS);
  return { collection, problems };
}
