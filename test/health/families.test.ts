import { describe, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { describeConditions } from './condition-walk.ts';

const families = await Promise.all(Object.entries(familyLoaders).map(async ([name, load]) => ({ name, family: await load() })));

describe('declared conditions', () => {
  it('are complete in every family', () => {
    for (const { name, family } of families) {
      const types = family.conditions.map((condition) => condition.type);
      expect(new Set(types).size, `${name} declares a condition twice`).toBe(types.length);
      for (const { type, reasons, meaning, source } of family.conditions) {
        expect(type).toMatch(/^[A-Z][A-Za-z0-9]*$/);
        expect(reasons.length * meaning.length * source.length, `${name}.${type} leaves something empty`).toBeGreaterThan(0);
      }
    }
  });

  it('of a counter have a limit, and of work in progress a deadline', () => {
    for (const { name, family } of families) {
      for (const condition of family.conditions) {
        if (condition.class === 'rate') expect(condition.threshold?.windowMs, `${name}.${condition.type}`).toBeGreaterThan(0);
        if (condition.class === 'in-progress') expect(condition.forMs, `${name}.${condition.type}`).toBeGreaterThan(0);
      }
    }
  });
});

for (const { name, family } of families) describeConditions(name, family.conditions);
