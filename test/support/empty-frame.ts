import type { Frame } from '../../src/capture/frame.ts';

/** A frame of a capture in which nothing was read. */
export const EMPTY_FRAME: Frame = {
  atMs: 0,
  wallMs: 0,
  files: {},
  links: {},
  directories: [],
  unread: [],
  errors: {},
  removed: [],
  kernelLog: [],
  commands: [],
  library: [],
  requests: [],
  page: '',
};
