import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { mutants } from './mutation.ts';

it.each(mutants)('the mistake $name can still be applied', ({ changes }) => {
  for (const { file, find } of changes) expect(readFileSync(file, 'utf8').split(find), `${file}: ${find}`).toHaveLength(2);
});
