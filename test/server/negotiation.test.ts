import { describe, expect, it } from 'vitest';
import { acceptsGzip, chooseFormat } from '../../src/server/http/answer.ts';

describe('the format of the metrics page', () => {
  it.each([
    [undefined, 'text'],
    ['', 'text'],
    ['*/*', 'text'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'text'],
    ['application/openmetrics-text', 'openmetrics'],
    ['application/openmetrics-text; version=1.0.0, */*', 'openmetrics'],
    ['application/openmetrics-text; version="1.0.0"', 'openmetrics'],
    ['APPLICATION/OpenMetrics-Text;VERSION=1.0.0', 'openmetrics'],
    ['application/openmetrics-text;version=0.0.1', 'text'],
    ['application/openmetrics-text;q=0', 'text'],
    ['application/openmetrics-text;q=0.3,text/plain;version=0.0.4;q=0.5', 'text'],
    ['application/openmetrics-text;q=high,text/plain;q=0.1', 'text'],
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3',
      'openmetrics',
    ],
    ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily', 'text'],
    [';;,,=;q', 'text'],
  ])('for Accept: %s is %s', (accept, format) => {
    expect(chooseFormat(accept)).toBe(format);
  });
});

describe('gzip', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['gzip', true],
    ['deflate, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['*', true],
    ['*;q=0.1, gzip;q=0', false],
    ['identity', false],
  ])('for Accept-Encoding: %s is %s', (header, accepted) => {
    expect(acceptsGzip(header)).toBe(accepted);
  });
});
