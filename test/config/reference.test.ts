import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { renderConfiguration, renderErrors } from '../../scripts/reference/configuration.ts';
import { type ErrorCode, errors, UserError } from '../../src/errors.ts';
import { testRegistry } from './registry.ts';

const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.startsWith('generated'))
  .map((path) => readFileSync(join('src', path), 'utf8'))
  .join('\n');

describe('catalogue of errors', () => {
  it('is what docs/errors.md says', () => {
    expect(readFileSync('docs/errors.md', 'utf8')).toBe(renderErrors());
  });

  it('has a heading for each code and none besides', () => {
    const headings = [...readFileSync('docs/errors.md', 'utf8').matchAll(/^## (.+)$/gm)].map(([, code]) => code);
    expect(headings).toEqual(Object.keys(errors));
  });

  it.each(Object.keys(errors))('%s is raised somewhere', (code) => {
    expect(sources).toMatch(new RegExp(`UserError\\(\\s*'${code}'`));
  });

  it('fills the texts and keeps the cause', () => {
    const cause = new Error('below');
    const error = new UserError('flag-invalid', { flag: '--x', problem: 'must $& be {flag}' }, cause);
    expect([error.message, error.exit, error.cause]).toEqual(['flag --x: must $& be {flag}', 2, cause]);
  });

  it('has a remedy that ends as a sentence does', () => {
    for (const code of Object.keys(errors) as ErrorCode[]) expect(errors[code].remedy, code).toMatch(/^[A-Z].*\.$/);
  });
});

describe('reference of options', () => {
  it('names every option in all three forms', () => {
    const text = renderConfiguration(testRegistry(), stringify);
    for (const { flag, environment, filePath } of testRegistry().entries) {
      expect(text).toContain(`| \`${flag}\``);
      expect(text).toContain(`| \`${environment}\` | ${filePath === undefined ? '' : `\`${filePath.join('.')}\``}`);
    }
    expect(text).toContain('join:\n  rules:\n    - resource: rdma/hca_shared');
  });
});
