import { UserError } from '../errors.ts';
import type { HealthConfig } from '../health/policy/policy-config.ts';
import { readUntrustedFile, type UntrustedRead } from '../host/fs/untrusted-file.ts';
import { type FileProblem, parseDocument, problemLines } from './document.ts';
import { checkConfigText } from './file.ts';
import { CONFIG_LIMITS } from './file-text.ts';
import type { Registry } from './registry.ts';
import { checkSchema } from './schema-check.ts';
import { healthPart } from './structured.ts';

/** Reads a health policy: a configuration file, or only its part `health`. `-` is the standard input. Throws {@link UserError}. */
export async function readPolicyFile(file: string, registry: Registry): Promise<HealthConfig> {
  const text = textOf(file, await (file === '-' ? standardInput() : readUntrustedFile(file, CONFIG_LIMITS.mostBytes)));
  const parsed = await parseDocument(text);
  if (parsed.problems !== undefined) throw invalid(file, parsed.problems);
  const { positions, plain } = parsed;
  if (Object.hasOwn(plain as object, healthPart.path)) {
    const { content, problems } = await checkConfigText(file, text, registry);
    if (content === undefined) throw invalid(file, problems);
    return (content.structured.get(healthPart.path)?.value ?? healthPart.default) as HealthConfig;
  }
  const wrong = await checkSchema(healthPart.schema, plain);
  if (wrong.length === 0) return plain as HealthConfig;
  const problems = wrong.map(({ path, atKey, message }) => ({
    ...(atKey ? positions.ofKey(path) : positions.of(path)),
    message: message.trim(),
  }));
  throw invalid(file, problems);
}

function textOf(file: string, read: Pick<UntrustedRead, 'text' | 'reason'>): string {
  if (read.text === undefined) throw new UserError('policy-file-unreadable', { file, problem: read.reason ?? '' });
  return read.text;
}

async function standardInput(): Promise<Pick<UntrustedRead, 'text' | 'reason'>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > CONFIG_LIMITS.mostBytes) return { reason: `it has more than ${CONFIG_LIMITS.mostBytes} bytes` };
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString('utf8') };
}

function invalid(file: string, problems: readonly FileProblem[]): UserError {
  return new UserError('policy-file-invalid', { file, problems: problemLines(file, problems) });
}
