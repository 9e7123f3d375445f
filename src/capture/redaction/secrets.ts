import type { Frame } from '../frame.ts';

/** Files whose content is a serial number. */
const SERIAL_FILE = /(?:^|\/)[^/]*(?:serial|(?:^|_)sn)[^/]*$/i;
/** Files with the id of an FPGA design. All boards with this design share it, and names of resources are made from it. */
const DESIGN_FILE = /\/(?:afu_id|compat_id|interface_id|interface_uuids?|logic_uuids?|[^/]*uuid)$/;
const SERIAL_ELEMENT = /<(\w*serial\w*)>([^<]{1,100})</gi;
const SERIAL_LABEL = /[{,]serial="([^"]{1,100})"/g;
/** Shorter values and words are no serials. */
const SERIAL = /^(?=.*\d)[\w.-]{5,64}$/;

/** Serial numbers that files, documents and answers of this frame name. */
export function serialsOf({ files, commands, library, page }: Frame): readonly string[] {
  const found = [
    ...Object.entries(files).flatMap(([path, bytes]) => (SERIAL_FILE.test(path) ? [Buffer.from(bytes).toString('utf8').trim()] : [])),
    ...commands.flatMap(({ stdout }) => [...stdout.matchAll(SERIAL_ELEMENT)].map((match) => (match[2] as string).trim())),
    ...library.flatMap(({ symbol, memory }) => (symbol.includes('Serial') ? memory.map(({ after }) => textOf(after)) : [])),
    ...[...page.matchAll(SERIAL_LABEL)].map((match) => match[1] as string),
  ];
  return [...new Set(found)].filter((value) => SERIAL.test(value) && !/^0+$/.test(value));
}

/** Identifiers that many machines share, in lower case. */
export function designsOf({ files }: Frame): readonly string[] {
  return Object.entries(files).flatMap(([path, bytes]) =>
    DESIGN_FILE.test(path) && path.startsWith('sys/') ? Buffer.from(bytes).toString('utf8').toLowerCase().split(/\s+/) : [],
  );
}

function textOf(base64: string): string {
  const bytes = Buffer.from(base64, 'base64');
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
}
