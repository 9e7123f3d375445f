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

const trouble = (key: string) => ({
  key,
  message: 'a file cannot be read',
  ended: 'a file could not be read; it can now',
  fields: { key },
});

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
      'warn a file cannot be read {"key":"a"}',
      'info a file could not be read; it can now {"key":"a","sightings":240,"durationSeconds":2400}',
    ]);
  });

  it('says what was wrong in the past tense at the end, and no remedy for what is over', () => {
    const { said, changes } = recorder();
    changes.begin({ ...trouble('a'), detail: 'open a: EACCES', remedy: 'Let the agent read it.' });
    changes.end('a');
    expect(said).toEqual([
      'warn a file cannot be read {"key":"a","detail":"open a: EACCES","remedy":"Let the agent read it."}',
      'info a file could not be read; it can now {"key":"a","was":"open a: EACCES","sightings":1,"durationSeconds":0}',
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
      'warn a file cannot be read a',
      'warn a file cannot be read b',
      'warn a file cannot be read a',
      'info a file could not be read; it can now a',
      'warn a file cannot be read c',
      'info a file could not be read; it can now b',
      'info a file could not be read; it can now c',
    ]);
  });
});
