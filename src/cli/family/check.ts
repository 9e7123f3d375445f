import { resolve } from 'node:path';
import { Assembler } from '../../agent/assemble.ts';
import { readFamilyFile } from '../../config/families/family-file.ts';
import { systemClock } from '../../host/clock.ts';
import { createHost, type Roots } from '../../host/host.ts';
import { pathOptions } from '../../host/options.ts';
import { createExposition } from '../../metrics/page/exposition.ts';
import type { Collection } from '../../model/collection.ts';
import { defaultValues } from '../../model/options.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { type DeclaredFamily, familyOf } from '../../probes/declared/family.ts';
import { FamilyRunner } from '../../supervisor/family-runner.ts';
import { IsolatedReads } from '../../supervisor/isolated-reads.ts';
import { isPresent } from '../../supervisor/probe-look.ts';
import type { CommandContext, Ending } from '../context.ts';
import { checkJson, checkText, type FamilyCheck } from './check-text.ts';

const TIMEOUT_MS = 10_000;
const CLOSE_MS = 1_000;

/** Checks one declaration and reads its devices once, in a thread of its own with a deadline, like the agent. */
export async function checkFamily({ configuration, output, options }: CommandContext): Promise<Ending> {
  const declared = await readFamilyFile(String(options.file));
  const root = typeof options.root === 'string' ? resolve(options.root) : undefined;
  const roots: Roots =
    root === undefined ? configuration.section('path', pathOptions) : { sysfs: `${root}/sys`, procfs: `${root}/proc`, dev: `${root}/dev` };
  const { check, hasEnded } = await lookOnce(root === undefined ? declared : captured(declared, root), roots);
  await output.write(options.output === 'json' ? checkJson(check) : checkText(check));
  const { reports, problems } = check.collection;
  return { status: reports.length > 0 && problems.length === 0 ? 0 : 1, isStuck: !hasEnded };
}

/** The same declaration with captured outputs instead of programs. */
function captured(declared: DeclaredFamily, root: string): DeclaredFamily {
  const { declaration } = declared;
  const commands = Object.entries(declaration.commands ?? {}).map(([name, command]) => [
    name,
    { ...command, captured: `${root}/commands/${name}.txt` },
  ]);
  return { ...declared, declaration: { ...declaration, commands: Object.fromEntries(commands) } };
}

async function lookOnce(declared: DeclaredFamily, roots: Roots): Promise<{ readonly check: FamilyCheck; readonly hasEnded: boolean }> {
  const family = familyOf(declared);
  const isolated = new IsolatedReads(systemClock);
  const runner = new FamilyRunner(
    { family: family.name, declared, options: defaultValues(family.options), roots, timeoutMs: TIMEOUT_MS },
    { clock: systemClock, isolated, events: { changed() {}, wake() {}, crashed() {} } },
  );
  await runner.refresh();
  const state = runner.state();
  const look = runner.latest();
  const hasEnded = await runner.close(CLOSE_MS);
  isolated.close();
  const collection: Collection = look?.collection ?? { reports: [], problems: [], listing: 'partial' };
  const assembler = new Assembler(
    { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: TIMEOUT_MS, missingRetentionMs: TIMEOUT_MS },
    () => new Map(),
  );
  const nothingHeld = { allocations: [], held: new Set<string>(), exclusive: [], podExclusive: [] };
  const inputs = {
    families: [{ state, ...(look === undefined ? {} : { latest: look }) }],
    podResources: { api: 'v1' as const, ...nothingHeld, answeredAtMs: systemClock.now() },
    checkpoint: [],
  };
  const snapshot: Snapshot = assembler.assemble(inputs, { nowMs: systemClock.now(), monotonicMs: systemClock.monotonic() });
  const exposition = createExposition({ families: [family], snapshot: () => snapshot, agent: () => NO_AGENT });
  const page = await exposition.devices();
  // A problem of the runner, such as a file that hangs, is in the state only.
  return {
    check: {
      family,
      isPresent: isPresent(family, createHost(roots, systemClock)),
      collection: { ...collection, problems: state.problems },
      page,
    },
    hasEnded,
  };
}

const NO_AGENT = { node: '', version: '', podResourcesRequests: [], podResourcesDurations: [] };
