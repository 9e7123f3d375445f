#!/usr/bin/env node
import { boundAllocator } from './allocator.ts';
import { boundHeaps } from './heap.ts';
import { createOutput } from './output.ts';
import { formatVersion, readVersion, versionRequest } from './version.ts';

boundHeaps();
const output = createOutput(process.stdout);
// A log that nobody reads any more must not end the agent.
process.stderr.on('error', () => {});

const args = process.argv.slice(2);
// Only what stays is worth the time, and only before the threads that read files have arenas of their own.
if (args.includes('serve')) boundAllocator(process.env);
const format = versionRequest(args);
if (format !== undefined) {
  await output.write(formatVersion(readVersion(), format));
} else {
  const { runCommandLine } = await import('./run.ts');
  const { status, isStuck = false } = await runCommandLine(args, process.env, output);
  const { leave } = await import('./leave.ts');
  await leave(status, isStuck);
}
