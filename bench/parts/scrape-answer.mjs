// Reads one HTTP answer from the pieces in which it comes, whether its length is told beforehand or chunk by chunk.

const HEAD_END = '\r\n\r\n';

export class AnswerReader {
  #done;
  #wantsGzip;
  #kept;
  #head = '';
  #isChunked = false;
  /** Bytes of the body, or of the chunk with the line feed after it, that are still to come; undefined while a head is read. */
  #left;
  #sizeLine = '';
  #isLast = false;

  /** `done(error, body)`: the body only where it is to be kept. */
  constructor(isKept, wantsGzip, done) {
    this.#kept = isKept ? [] : undefined;
    this.#wantsGzip = wantsGzip;
    this.#done = done;
  }

  take(bytes) {
    let at = 0;
    if (this.#head !== undefined) {
      at = this.#takeHead(bytes);
      if (at < 0) return;
    }
    if (this.#isChunked) this.#takeChunks(bytes, at);
    else this.#takeBody(bytes.subarray(at));
  }

  /** Where the body begins in these bytes; -1 when it does not. */
  #takeHead(bytes) {
    const before = this.#head.length;
    this.#head += bytes.latin1Slice(0, Math.min(bytes.length, 4_096));
    const end = this.#head.indexOf(HEAD_END);
    if (end < 0) return -1;
    const head = this.#head.slice(0, end);
    this.#head = undefined;
    if (!head.startsWith('HTTP/1.1 200')) this.#done(new Error(`refused: ${head}`));
    if (/^content-encoding: gzip/im.test(head) !== this.#wantsGzip) this.#done(new Error(`not as asked for: ${head}`));
    const length = /^content-length: (\d+)/im.exec(head)?.[1];
    this.#isChunked = length === undefined;
    if (!this.#isChunked) this.#left = Number(length);
    return end + HEAD_END.length - before;
  }

  #takeBody(bytes) {
    this.#keep(bytes);
    this.#left -= bytes.length;
    if (this.#left < 0) this.#done(new Error('the answer is longer than it says'));
    if (this.#left === 0) this.#finish();
  }

  #takeChunks(bytes, from) {
    let at = from;
    while (at < bytes.length) {
      if (this.#left === undefined) {
        const end = bytes.indexOf(10, at);
        this.#sizeLine += bytes.latin1Slice(at, end < 0 ? bytes.length : end);
        if (end < 0) return;
        at = end + 1;
        const size = Number.parseInt(this.#sizeLine, 16);
        this.#sizeLine = '';
        this.#left = size + 2;
        this.#isLast = size === 0;
        continue;
      }
      const count = Math.min(this.#left, bytes.length - at);
      // The chunk ends with CR LF, which are not of the body.
      this.#keep(bytes.subarray(at, at + Math.max(0, Math.min(count, this.#left - 2))));
      this.#left -= count;
      at += count;
      if (this.#left > 0) return;
      this.#left = undefined;
      if (this.#isLast) return this.#finish();
    }
  }

  #keep(bytes) {
    // The buffer is read into again.
    this.#kept?.push(Buffer.from(bytes));
  }

  #finish() {
    this.#done(undefined, this.#kept && Buffer.concat(this.#kept));
  }
}
