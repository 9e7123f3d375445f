import { createHash } from 'node:crypto';

/** Limits of a configuration file. Apart from its parser, which an agent without a file never loads. */
export const CONFIG_LIMITS = { mostBytes: 1_048_576, timeoutMs: 10_000 } as const;

/** SHA-256 of a text, in hexadecimal. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
