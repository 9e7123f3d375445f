import { pino, stdSerializers } from 'pino';
import type { LogFormat, LogLevel } from './options.ts';
import { formatTextLine } from './text-line.ts';

/** What belongs to a message: kebab- or camelCase names, plain values. An `Error` goes under the name `error`. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Writes structured lines. The message is a constant text; everything that varies is a field. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogSettings {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

/** Takes finished lines, each ending in a newline. */
export interface LogSink {
  write(line: string): unknown;
  /** Length of what it was given and could not pass on yet. */
  readonly writableLength?: number;
}

/** What may wait for a reader that stands still: it must not use up memory. */
const MOST_WAITING = 1_048_576;

/**
 * Logs to stderr, which Node writes at once to files, terminals, and pipes that have room: nothing is lost at exit then. For a pipe that is
 * full lines wait in memory, and those for which there is no room there are counted.
 */
export function createLogger(settings: LogSettings, sink: LogSink = process.stderr): Logger {
  let lost = 0;
  const destination = settings.format === 'json' ? sink : textSink(sink);
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
        if ((sink.writableLength ?? 0) > MOST_WAITING) lost += 1;
        else write(line);
      },
    },
  );
  const write = (line: string): void => {
    const count = lost;
    lost = 0;
    if (count > 0) lines.error({ lost: count }, 'log lines were lost, since nobody took them');
    destination.write(line);
  };
  return {
    debug: (message, fields = {}) => lines.debug(fields, message),
    info: (message, fields = {}) => lines.info(fields, message),
    warn: (message, fields = {}) => lines.warn(fields, message),
    error: (message, fields = {}) => lines.error(fields, message),
  };
}

/** A logger that adds the same fields to every line. */
export function withFields(logger: Logger, common: LogFields): Logger {
  return {
    debug: (message, fields) => logger.debug(message, { ...common, ...fields }),
    info: (message, fields) => logger.info(message, { ...common, ...fields }),
    warn: (message, fields) => logger.warn(message, { ...common, ...fields }),
    error: (message, fields) => logger.error(message, { ...common, ...fields }),
  };
}

function textSink(sink: LogSink): LogSink {
  return { write: (line) => sink.write(formatTextLine(JSON.parse(line) as Record<string, unknown>)) };
}
