import { stringOption } from '../model/options.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['text', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Options `--log.<name>`. */
export const logOptions = {
  level: stringOption('info', 'Least important level that is logged.', LOG_LEVELS),
  format: stringOption('text', 'Form of a log line on stderr: one readable line, or one JSON object.', LOG_FORMATS),
};
