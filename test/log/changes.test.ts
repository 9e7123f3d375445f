import { describe, expect, it } from 'vitest';
import { createChangeLog } from '../../src/log/changes.ts';
import type { Logger } from '../../src/log/logger.ts';

function recorder() {
  const said: string[] = [];
  let nowMs = 0;
  const say = (level: string) => (message: string, fields?: object) => said.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  const logger: Logger = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
  const changes = createChangeLog(logger, () => nowMs);
  return { said, changes, pass: (ms: number) => (nowMs += ms) };
}

const trouble = (key: string) => ({ key, message: 'file unreadable', fields: { key } });

describe('change log', () => {
  it('says a trouble when it begins and when it ends, and counts in between', () => {
    const { said, changes, pass } = recorder();
    for (let time = 0; time < 240; time++) {
      changes.begin(trouble('a'));
      pass(10_000);
    }
    changes.end('a');
    changes.end('a');
    expect(said).toEqual([
      'warn file unreadable {"key":"a"}',
      'info over: file unreadable {"key":"a","sightings":240,"durationSeconds":2400}',
    ]);
  });

  it('says it anew when it comes back', () => {
    const { said, changes } = recorder();
    changes.begin(trouble('a'));
    changes.end('a');
    changes.begin(trouble('a'));
    expect(said.filter((line) => line.startsWith('warn'))).toHaveLength(2);
  });

  it('says nothing of an end without a beginning', () => {
    const { said, changes } = recorder();
    changes.end('a');
    expect(said).toEqual([]);
  });

  it('keeps scopes apart and compares each with what it said before', () => {
    const { said, changes } = recorder();
    changes.update('nvidia', [trouble('a'), trouble('b')]);
    changes.update('fpga', [trouble('a')]);
    changes.update('nvidia', [trouble('b'), trouble('c')]);
    changes.update('nvidia', []);
    expect(said.map((line) => line.replace(/ \{"key":"(\w)".*/, ' $1'))).toEqual([
      'warn file unreadable a',
      'warn file unreadable b',
      'warn file unreadable a',
      'info over: file unreadable a',
      'warn file unreadable c',
      'info over: file unreadable b',
      'info over: file unreadable c',
    ]);
  });
});
