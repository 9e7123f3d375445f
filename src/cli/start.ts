import { leave } from './leave.ts';
import { createOutput } from './output.ts';
import { endBySignals } from './signals.ts';
import { formatVersion, readVersion, versionRequest } from './version.ts';

/** The whole process: runs one command line and leaves with its status. */
export async function start(args: readonly string[]): Promise<void> {
  endBySignals();
  standSomewhere();
  const output = createOutput(process.stdout);
  // A log that nobody reads any more must not end the agent.
  process.stderr.on('error', () => {});
  const format = versionRequest(args);
  if (format !== undefined) return await output.write(formatVersion(readVersion(), format));
  const { runCommandLine } = await import('./run.ts');
  const { status, isStuck = false } = await runCommandLine(args, process.env, output);
  await leave(status, isStuck);
}

/** No thread starts in a directory that was removed. What is named by a relative path cannot be found there anyway. */
function standSomewhere(): void {
  try {
    process.cwd();
  } catch {
    process.chdir('/');
  }
}
