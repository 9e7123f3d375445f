/** One log record as `time level message key=value …` and a newline. Values that would break the line are quoted. */
export function formatTextLine(record: Readonly<Record<string, unknown>>): string {
  const { time, level, message, ...fields } = record;
  const parts = [String(time), String(level).toUpperCase().padEnd(5), escapeControls(String(message ?? ''))];
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) parts.push(`${name}=${formatValue(value)}`);
  }
  return `${parts.join(' ')}\n`;
}

function formatValue(value: unknown): string {
  if (isLoggedError(value)) return quote(value.message);
  return typeof value === 'string' ? quote(value) : quote(JSON.stringify(value));
}

/** An error whose stack is worth a line of its own belongs in the JSON form; here its message is enough. */
function isLoggedError(value: unknown): value is { message: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof (value as { message?: unknown }).message === 'string';
}

function quote(text: string): string {
  return text === '' || !/^[^\s"=\p{Cc}]+$/u.test(text) ? escapeControls(JSON.stringify(text)) : text;
}

/** Keeps foreign text from starting a line of its own or steering a terminal. */
function escapeControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
