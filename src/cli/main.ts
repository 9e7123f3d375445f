#!/usr/bin/env node
import { errorToExit } from './error-to-exit.ts';

const args = process.argv.slice(2);
try {
  // A dynamic import, so that a failure of the loader is also reported as one sentence.
  const { start } = await import('./start.ts');
  await start(args);
} catch (error) {
  const { text, status } = errorToExit(error, args);
  process.stderr.write(text);
  process.exit(status);
}
