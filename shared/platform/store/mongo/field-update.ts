import type { JsonObject } from '../../../kernel/events.ts'
import type { Scalar } from '../port.ts'

/** The update that sets these fields of a row's document. `indexed` are the set fields that the row also has as indexed fields. */
export const settingFields = (set: JsonObject, indexed: readonly (readonly [string, Scalar])[]): object[] => [
  { $set: { ...literals(indexed), version: { $add: ['$version', 1] }, doc: withFields(set) } },
]

const literals = (fields: readonly (readonly [string, Scalar])[]): object =>
  Object.fromEntries(fields.map(([field, value]) => [field, { $literal: value }]))

/**
 * The text of the document with these fields at its end, where they replace earlier ones of the same names: if JSON has a name twice, the last
 * value counts. So MongoDB need not parse the text.
 */
function withFields(set: JsonObject): object {
  const withoutBrace = { $substrBytes: ['$doc', 0, { $subtract: [{ $strLenBytes: '$doc' }, 1] }] }
  return { $concat: [withoutBrace, { $literal: `,${JSON.stringify(set).slice(1)}` }] }
}
