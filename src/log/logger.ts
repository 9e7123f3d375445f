import { format } from 'node:util';
import { pino, stdSerializers } from 'pino';
import { visible, visibleLines } from '../model/one-line.ts';
import type { LogFormat, LogLevel } from './options.ts';

/** Fields of a log line: kebab-case or camelCase names with plain values. An `Error` uses the name `error`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured lines. The message is a constant text; all variable parts are fields. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** The logger of the process. Its settings can change while it is used. */
export interface AdjustableLogger extends Logger {
  adjust(settings: LogSettings): void;
}

export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

/** Receives complete lines, each with a newline at its end. */
export interface LogSink {
  write(line: string): unknown;
  /** Number of buffered bytes that are not written yet. */
  readonly writableLength?: number;
}

/** Limit in bytes of the lines that are buffered for a blocked reader. */
const MAX_BUFFERED = 1_048_576;

/**
 * Logs to stderr. Node writes synchronously to files, terminals and pipes with free space, so no line is lost at exit. While a pipe is
 * full, lines wait in memory up to the limit; further lines are dropped and counted.
 */
export function createLogger(settings: LogSettings, sink: LogSink = process.stderr): AdjustableLogger {
  let lost = 0;
  let destination = destinationOf(settings, sink);
  const lines = pino(
    {
      level: settings.level,
      base: null,
      messageKey: 'message',
      errorKey: 'error',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: stdSerializers.err },
    },
    {
      write: (line: string) => {
        if ((sink.writableLength ?? 0) > MAX_BUFFERED) lost += 1;
        else write(line);
      },
    },
  );
  const write = (line: string): void => {
    const count = lost;
    lost = 0;
    if (count > 0) lines.error({ lost: count }, 'log lines were lost because stderr was blocked');
    destination.write(line);
  };
  return {
    adjust(next) {
      lines.level = next.level;
      destination = destinationOf(next, sink);
    },
    debug: (message, fields = {}) => lines.debug(fields, message),
    info: (message, fields = {}) => lines.info(fields, message),
    warn: (message, fields = {}) => lines.warn(fields, message),
    error: (message, fields = {}) => lines.error(fields, message),
  };
}

/** A reader shows the lines on a terminal, so both formats escape text of others. */
function destinationOf({ format }: LogSettings, sink: LogSink): LogSink {
  if (format === 'json') return { write: (line) => sink.write(visibleLines(line)) };
  return { write: (line) => sink.write(formatTextLine(JSON.parse(line) as Record<string, unknown>)) };
}

/** Formats one log record as `time level message key=value …` and a newline. Values with special characters are quoted. */
export function formatTextLine(record: Readonly<Record<string, unknown>>): string {
  const { time, level, message, ...fields } = record;
  const parts = [String(time), String(level).toUpperCase().padEnd(5), visible(String(message ?? ''))];
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && !isEmptyList(value)) parts.push(`${name}=${formatValue(value)}`);
  }
  return `${parts.join(' ')}\n`;
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function formatValue(value: unknown): string {
  if (isLoggedError(value)) return quote(value.message);
  return quote(plainText(value));
}

/** Writes a list as `a,b`, and a mapping as `key=value` with spaces between; inner mappings are in parentheses. */
function plainText(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => inner(item)).join(',');
  if (typeof value !== 'object' || value === null) return String(value);
  const known = Object.entries(value).filter(([, item]) => item !== undefined);
  return known.map(([key, item]) => `${key}=${inner(item)}`).join(' ');
}

const inner = (value: unknown): string =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? `(${plainText(value)})` : plainText(value);

/** The text format shows only the message of an error; the JSON format also has the stack. */
function isLoggedError(value: unknown): value is { message: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof (value as { message?: unknown }).message === 'string';
}

function quote(text: string): string {
  return /^[^\s"=]+$/.test(text) && visible(text) === text ? text : visible(JSON.stringify(text));
}

const LONGEST = 500;

/**
 * Libraries and Node itself write their own lines to stderr: gRPC when its environment variables ask for traces, Node for its warnings.
 * From now on they are lines of this log, at level debug.
 */
export function adoptLibraryLines(logger: Logger): void {
  const write = (...words: unknown[]): void => logger.debug('a library wrote a line', { text: format(...words).slice(0, LONGEST) });
  Object.assign(console, { log: write, info: write, warn: write, error: write, debug: write, trace: write });
  // The only listener so far is the one of Node, which prints.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => write(`${name}: ${message}`));
}
