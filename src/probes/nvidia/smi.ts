import type { CommandFailure, CommandResult } from '../../host/process/command.ts';
import { type Element, parseDocument } from './document.ts';
import type { ProblemCode } from './problems.ts';
import { WORDINGS } from './wordings.ts';

/** Result of one `nvidia-smi -q -x`. */
export interface SmiDocument {
  readonly log: Element;
  readonly surplus: string;
  readonly exitCode?: number;
  readonly problem?: undefined;
}
export interface SmiFailure {
  readonly log?: undefined;
  readonly surplus: string;
  readonly problem: { readonly code: ProblemCode; readonly message: string };
}
export type SmiResult = SmiDocument | SmiFailure;

const FAILURES: Readonly<Record<CommandFailure, ProblemCode>> = {
  'not-found': 'smi-not-found',
  permission: 'smi-not-executable',
  'failed-to-start': 'smi-failed',
  timeout: 'smi-timeout',
  'too-large': 'smi-too-large',
};

/** Problems by exit status, which is NVML's and differs between drivers: a known text comes first. */
const STATUSES: Readonly<Record<number, ProblemCode>> = {
  4: 'no-permission',
  6: 'no-devices',
  8: 'insufficient-power',
  9: 'driver-not-loaded',
  12: 'library-not-found',
  15: 'gpu-unreadable',
  18: 'driver-library-mismatch',
};

/**
 * Interprets the output of the command. A complete document is valid with any exit status: the driver answers for the other GPUs
 * although one is lost (15) or an infoROM is damaged (14).
 */
export function readSmi(result: CommandResult): SmiResult {
  const document = parseDocument(result.stdout);
  const surplus = [document.surplus, result.stderr.trim()].filter((text) => text !== '').join('\n');
  if (result.failure === undefined && document.log !== undefined) {
    return { log: document.log, surplus, ...(result.exitCode === undefined ? {} : { exitCode: result.exitCode }) };
  }
  return { surplus, problem: problemOf(result, document.error, surplus) };
}

function problemOf(result: CommandResult, error: string | undefined, surplus: string): SmiFailure['problem'] {
  if (result.failure !== undefined) {
    const code = result.stillRunning === undefined ? FAILURES[result.failure] : 'smi-unreaped';
    return { code, message: `nvidia-smi -q -x: ${result.failure}` };
  }
  const text = firstLine(surplus);
  const known = WORDINGS.find(({ text, fault }) => fault !== 'inforom' && text.test(surplus))?.code ?? STATUSES[result.exitCode ?? 0];
  if (known !== undefined) return { code: known, message: text === '' ? `nvidia-smi -q -x: ${endOf(result)}` : text };
  if (error === 'malformed') return { code: 'smi-garbage', message: 'nvidia-smi -q -x: the document is no well-formed XML' };
  if (error === 'truncated') return { code: 'smi-truncated', message: 'nvidia-smi -q -x: the document has no end' };
  if (result.exitCode === 0)
    return { code: 'smi-garbage', message: `nvidia-smi -q -x: ${text === '' ? 'no output' : 'no document in the output'}` };
  return { code: 'smi-failed', message: `nvidia-smi -q -x: ${endOf(result)}${text === '' ? '' : `: ${text}`}` };
}

const endOf = ({ exitCode, signal }: CommandResult): string => (signal === undefined ? `exit status ${exitCode}` : `ended by ${signal}`);

const firstLine = (text: string): string => (text.split('\n').find((line) => line.trim() !== '') ?? '').trim().slice(0, 200);
