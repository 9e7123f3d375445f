import type { Document, ToStringOptions } from 'yaml';
import { visible } from '../model/one-line.ts';

/** Writes a document. Text that must not reach a terminal as it is gets quotes, because only quoted texts of YAML have escapes. */
export async function yamlText(document: Document, options: ToStringOptions = {}): Promise<string> {
  const { visit } = await import('yaml');
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === 'string' && visible(node.value) !== node.value) node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ ...options, doubleQuotedAsJSON: true }).replace(/[\u{10000}-\u{10ffff}]/gu, (character) =>
    // JSON escapes these as two surrogates, and YAML does not.
    visible(character) === character ? character : `\\U${(character.codePointAt(0) as number).toString(16).padStart(8, '0')}`,
  );
}
