/** Joins pictures of one size to a moving one: PNG chunks in another order, as the extension for animations of PNG says. Browsers without it show the first. */
import { crc32 } from 'node:zlib';

const SIGNATURE_BYTES = 8;

/** `frames`: `{ png, seconds }`, all of one size and colour type. */
export function apngOf(frames) {
  const [first] = frames;
  const header = chunksOf(first.png).find(({ type }) => type === 'IHDR');
  const [width, height] = [header.data.readUInt32BE(0), header.data.readUInt32BE(4)];
  const control = Buffer.alloc(8);
  control.writeUInt32BE(frames.length, 0);
  const parts = [first.png.subarray(0, SIGNATURE_BYTES), chunk('IHDR', header.data), chunk('acTL', control)];
  let sequence = 0;
  for (const [index, { png, seconds }] of frames.entries()) {
    const chunks = chunksOf(png);
    if (!chunks.find(({ type }) => type === 'IHDR').data.equals(header.data)) throw new Error('the pictures differ in size or colour type');
    const shown = Buffer.alloc(26);
    shown.writeUInt32BE(sequence++, 0);
    shown.writeUInt32BE(width, 4);
    shown.writeUInt32BE(height, 8);
    shown.writeUInt16BE(Math.round(seconds * 100), 20);
    shown.writeUInt16BE(100, 22);
    parts.push(chunk('fcTL', shown));
    for (const { data } of chunks.filter(({ type }) => type === 'IDAT')) {
      if (index === 0) parts.push(chunk('IDAT', data));
      else {
        const number = Buffer.alloc(4);
        number.writeUInt32BE(sequence++, 0);
        parts.push(chunk('fdAT', Buffer.concat([number, data])));
      }
    }
  }
  return Buffer.concat([...parts, chunk('IEND', Buffer.alloc(0))]);
}

function chunksOf(png) {
  const found = [];
  for (let at = SIGNATURE_BYTES; at < png.length; ) {
    const length = png.readUInt32BE(at);
    found.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += 12 + length;
  }
  return found;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
