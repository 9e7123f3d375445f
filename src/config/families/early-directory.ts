import { readUntrustedFile } from '../../host/fs/untrusted-file.ts';
import type { Environment } from '../environment.ts';
import { CONFIG_LIMITS } from '../file-text.ts';
import { declarationOptions } from '../options.ts';
import type { FamilyDirectory } from './family-directory.ts';

const [DIRECTORY, FILE] = ['family.dir', 'config.file'];

/**
 * Finds the directory of declarations before the command line is parsed: each declared family adds flags of its own. The precedence is that
 * of every option: flag, environment, file, default. The check of the configuration file later reports an unreadable file.
 */
export async function familyDirectory(args: readonly string[], environment: Environment): Promise<FamilyDirectory> {
  const given = early(DIRECTORY, args, environment) ?? (await fromFile(early(FILE, args, environment) ?? ''));
  const usual = String(declarationOptions.dir.default);
  // A printed configuration names the default too, and it still may be absent.
  return given === undefined || given === usual ? { path: usual, isGiven: false } : { path: given, isGiven: true };
}

function early(key: string, args: readonly string[], environment: Environment): string | undefined {
  return flagOf(`--${key}`, args) ?? environment[`DEVICE_AGENT_${key.toUpperCase().replaceAll('.', '_')}`];
}

function flagOf(flag: string, args: readonly string[]): string | undefined {
  let value: string | undefined;
  for (const [n, arg] of args.entries()) {
    if (arg === '--') break;
    if (arg === flag) value = args[n + 1];
    else if (arg.startsWith(`${flag}=`)) value = arg.slice(flag.length + 1);
  }
  return value;
}

async function fromFile(file: string): Promise<string | undefined> {
  const text = file === '' ? undefined : (await readUntrustedFile(file, CONFIG_LIMITS.mostBytes)).text;
  // The parser of YAML is loaded only for a file that has the key.
  if (text === undefined || !/\bfamily\b/.test(text)) return undefined;
  const { parseDocument } = await import('../document.ts');
  const parsed = await parseDocument(text);
  if (parsed.problems !== undefined) return undefined;
  const section = (parsed.plain as Readonly<Record<string, unknown>>).family;
  const dir = typeof section === 'object' && section !== null ? (section as Readonly<Record<string, unknown>>).dir : undefined;
  return typeof dir === 'string' ? dir : undefined;
}
