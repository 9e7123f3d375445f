import { pino, stdSerializers } from 'pino';
import { visibleLines } from '../model/one-line.ts';
import type { LogFormat, LogLevel } from './options.ts';
import { formatTextLine } from './text-line.ts';

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

/** Returns a logger that adds the same fields to every line. */
export function withFields(logger: Logger, common: LogFields): Logger {
  return {
    debug: (message, fields) => logger.debug(message, { ...common, ...fields }),
    info: (message, fields) => logger.info(message, { ...common, ...fields }),
    warn: (message, fields) => logger.warn(message, { ...common, ...fields }),
    error: (message, fields) => logger.error(message, { ...common, ...fields }),
  };
}

/** A reader shows the lines on a terminal, so both formats escape text of others. */
function destinationOf({ format }: LogSettings, sink: LogSink): LogSink {
  if (format === 'json') return { write: (line) => sink.write(visibleLines(line)) };
  return { write: (line) => sink.write(formatTextLine(JSON.parse(line) as Record<string, unknown>)) };
}
