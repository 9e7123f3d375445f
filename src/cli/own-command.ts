import { basename, relative } from 'node:path';

/** Returns the command line that starts this program from the current directory. */
export function ownCommand(): string {
  const [, script = ''] = process.argv;
  return basename(script) === 'device-agent' ? 'device-agent' : `node ${relative(process.cwd(), script)}`;
}
