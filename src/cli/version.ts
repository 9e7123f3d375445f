import { readFileSync } from 'node:fs';
import type { CommandContext, Ending } from './context.ts';

/** Version of the agent, of Node, and the platform. */
export interface VersionFacts {
  readonly version: string;
  readonly nodeVersion: string;
  readonly platform: string;
}

export function readVersion(): VersionFacts {
  // In the bundled build, package.json is in the same directory as the bundle.
  const place = /\/cli\/version\.[jt]s$/.test(import.meta.url) ? '../../package.json' : './package.json';
  const text = readFileSync(new URL(place, import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string };
  return { version, nodeVersion: process.versions.node, platform: `${process.platform}/${process.arch}` };
}

export function formatVersion(facts: VersionFacts, format: unknown): string {
  if (format === 'json') return `${JSON.stringify(facts, null, 2)}\n`;
  return `device-agent ${facts.version} (node ${facts.nodeVersion}, ${facts.platform})\n`;
}

/** Returns the requested format when the command line asks only for the version. The answer then needs no other code of the agent. */
export function versionRequest(args: readonly string[]): 'text' | 'json' | undefined {
  const line = args.join(' ');
  if (/^(?:version|--version|-V)$/.test(line)) return 'text';
  const format = /^version (?:-o ?|--output[= ])(json|text)$/.exec(line)?.[1];
  return format === undefined ? undefined : (format as 'text' | 'json');
}

export async function printVersion({ output, options }: CommandContext): Promise<Ending> {
  await output.write(formatVersion(readVersion(), options.output));
  return { status: 0 };
}
