import { visible } from '../model/one-line.ts';
import { type Configuration, describeOrigin } from './configuration.ts';
import { toFileValue, toText } from './values.ts';
import { yamlText } from './yaml-text.ts';

/** Prints the effective values as a configuration file, each with its origin as a comment. Reading the file gives the same values. */
export async function printYaml(configuration: Configuration): Promise<string> {
  const { Document, Scalar, isMap, isSeq } = await import('yaml');
  const document = new Document({});
  const place = (path: readonly string[], value: unknown, origin: string): void => {
    const node = document.createNode(value, { flow: Array.isArray(value) && value.every((item) => typeof item === 'string') });
    // Values with several lines get the comment before the key. So does an empty mapping, because YAML would move a comment after it.
    if (isMap(node) || (isSeq(node) && !node.flow && node.items.length > 0)) {
      const key = new Scalar(path.at(-1));
      key.commentBefore = ` ${origin}`;
      document.setIn(path.slice(0, -1), document.getIn(path.slice(0, -1)) ?? document.createNode({}));
      document.addIn(path.slice(0, -1), document.createPair(key, node));
      return;
    }
    node.comment = ` ${origin}`;
    document.setIn(path, node);
  };
  for (const { entry, value, origin } of configuration.settings) {
    if (entry.filePath !== undefined) place(entry.filePath, toFileValue(entry.spec, value), visible(describeOrigin(origin)));
  }
  for (const { part, value, origin } of configuration.structured) place(part.path.split('.'), value, visible(describeOrigin(origin)));
  return await yamlText(document, { lineWidth: 0 });
}

/** Returns rows of option, value and origin. */
export function configurationRows(configuration: Configuration): (readonly [string, string, string])[] {
  return [
    ...configuration.settings.map(({ entry, value, origin }) => [entry.key, toText(entry.spec, value), describeOrigin(origin)] as const),
    ...configuration.structured.map(({ part, value, origin }) => [part.path, JSON.stringify(value), describeOrigin(origin)] as const),
  ];
}

/** Prints JSON keyed by option key; `more` adds values that are derived from the configuration. */
export function printJson(configuration: Configuration, more: Readonly<Record<string, unknown>> = {}): string {
  const options = configuration.settings.map(({ entry, value, origin }) => [
    entry.key,
    { value: toFileValue(entry.spec, value), origin: describeOrigin(origin) },
  ]);
  const structured = configuration.structured.map(({ part, value, origin }) => [part.path, { value, origin: describeOrigin(origin) }]);
  return `${JSON.stringify({ ...Object.fromEntries([...options, ...structured]), ...more }, null, 2)}\n`;
}
