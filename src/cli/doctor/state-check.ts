import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { stateOptions } from '../../agent/options.ts';
import { errnoName } from '../../host/fs/tree.ts';
import { type CheckContext, type CheckResult, finding, ok, skipped } from './check.ts';

/** Checks that the health state can be saved. The agent creates missing directories, so the nearest one that exists counts. */
export function checkState({ configuration }: Pick<CheckContext, 'configuration'>): CheckResult[] {
  const name = 'state-file';
  const { file } = configuration.section('state', stateOptions);
  if (file === '') return [skipped(name, 'turned off by an empty --state.file')];
  const trouble = whyUnwritable(resolve(file));
  if (trouble === undefined) return [ok(name, file)];
  return [
    finding(
      name,
      trouble,
      'The health state is lost at each restart of the agent: known faults then count anew, and latched ones are forgotten.',
      'Mount a writable directory of the host there, or set --state.file.',
    ),
  ];
}

function whyUnwritable(file: string): string | undefined {
  let directory = dirname(file);
  try {
    if (statSync(file, { throwIfNoEntry: false })?.isFile() === false) return `${file} is not a regular file`;
    while (statSync(directory, { throwIfNoEntry: false }) === undefined) directory = dirname(directory);
    // Each save writes a new file and renames it.
    accessSync(directory, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return `${directory} cannot be written to (${errnoName(error)})`;
  }
}
