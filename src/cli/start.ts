import { boundAllocator } from './allocator.ts';
import { boundHeaps } from './heap.ts';
import { leave } from './leave.ts';
import { createOutput } from './output.ts';
import { formatVersion, readVersion, versionRequest } from './version.ts';

/** The whole process: runs one command line and leaves with its status. */
export async function start(args: readonly string[]): Promise<void> {
  boundHeaps();
  const output = createOutput(process.stdout);
  // A log that nobody reads any more must not end the agent.
  process.stderr.on('error', () => {});
  // Only what stays is worth the time, and only before the threads that read files have arenas of their own.
  if (args.includes('serve')) boundAllocator(process.env);
  const format = versionRequest(args);
  if (format !== undefined) return await output.write(formatVersion(readVersion(), format));
  const { runCommandLine } = await import('./run.ts');
  const { status, isStuck = false } = await runCommandLine(args, process.env, output);
  await leave(status, isStuck);
}
