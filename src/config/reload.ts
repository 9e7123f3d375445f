import { isDeepStrictEqual } from 'node:util';
import { Configuration } from './configuration.ts';

/** The changes that a new configuration makes in a running agent. */
export interface Reloaded {
  /** The values from now on: new ones where a running agent takes them, otherwise those of the start. */
  readonly configuration: Configuration;
  /** Keys whose values changed. */
  readonly changed: readonly string[];
  /** Keys whose new values take effect at the next start. */
  readonly waiting: readonly string[];
}

export function reloaded(running: Configuration, next: Configuration): Reloaded {
  const others = next.settings.filter(({ entry, value }) => !isDeepStrictEqual(value, running.setting(entry.key).value));
  const parts = next.structured.filter(({ part, value }) => !isDeepStrictEqual(value, running.part(part)));
  const settings = next.settings.map((setting) => (setting.entry.isLive ? setting : running.setting(setting.entry.key)));
  const keys = (isLive: boolean): string[] => others.filter(({ entry }) => entry.isLive === isLive).map(({ entry }) => entry.key);
  return {
    configuration: new Configuration(settings, next.structured, next.file),
    changed: [...keys(true), ...parts.map(({ part }) => part.path)],
    waiting: keys(false),
  };
}
