#!/usr/bin/env node
import { faultOf } from './fault.ts';

const args = process.argv.slice(2);
try {
  // Loaded from here, so that a loader that fails ends in a sentence too.
  const { start } = await import('./start.ts');
  await start(args);
} catch (error) {
  const { text, status } = faultOf(error, args);
  process.stderr.write(text);
  process.exit(status);
}
