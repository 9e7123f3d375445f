import { visible } from '../../model/one-line.ts';
import type { CheckResult } from './check.ts';

/** Formats the report as text or as JSON. */
export function formatReport(results: readonly CheckResult[], format: unknown): string {
  const findings = results.filter(({ status }) => status === 'finding').length;
  if (format === 'json') return `${JSON.stringify({ ok: findings === 0, findings, checks: results }, null, 2)}\n`;
  const width = Math.max(0, ...results.map(({ name }) => name.length));
  const end = findings === 0 ? 'No findings.' : `${findings} ${findings === 1 ? 'finding' : 'findings'}.`;
  return `${results.map((result) => resultText(result, width)).join('')}\n${end}\n`;
}

function resultText({ name, status, detail, cause, remedy }: CheckResult, width: number): string {
  const head = `${status.toUpperCase().padEnd(7)}  ${visible(name).padEnd(width)}  ${visible(detail)}\n`;
  const indent = ' '.repeat(width + 11);
  const more = [cause && `cause:  ${visible(cause)}`, remedy && `remedy: ${visible(remedy)}`].filter(Boolean);
  return head + more.map((line) => `${indent}${line}\n`).join('');
}
