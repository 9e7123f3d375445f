import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { OptionSpecs } from '../../src/model/options.ts';

/**
 * The environment of a built agent in which constants of a part have other values, because a test cannot wait for the real ones. `file`: the
 * module below `dist` that exports the specs, and the name of the export.
 */
export function withConstants<S extends OptionSpecs>(
  file: string,
  exported: string,
  values: Partial<Record<keyof S, number>>,
): NodeJS.ProcessEnv {
  const module = JSON.stringify(pathToFileURL(resolve('dist', file)).href);
  const code = `import{${exported} as s}from${module};for(const[k,v]of Object.entries(${JSON.stringify(values)}))s[k].default=v;`;
  return {
    ...process.env,
    TEST_CONSTANTS: file,
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=data:text/javascript,${encodeURIComponent(code)}`,
  };
}

/** Times after which totals of containers appear and go, in milliseconds. */
export const withUsageTimes = (values: { readonly 'zero-for'?: number; readonly linger?: number; readonly 'absent-for'?: number }) =>
  withConstants('accounting/options.js', 'usageOptions', values);
