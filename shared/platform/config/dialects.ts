import { InvalidValue, listOf, oneOf, type Parse } from './values.ts'

/** The formats of other products in which the gateway can be used (D31). */
export const DIALECT_NAMES = ['ui', 'openai', 'ag-ui', 'mcp', 'a2a'] as const
export type DialectName = (typeof DIALECT_NAMES)[number]

const parseNames = listOf(oneOf(...DIALECT_NAMES))

/** `none` switches all dialects off, `all` switches all of them on. */
export const dialects: Parse<readonly DialectName[]> = (raw) => {
  if (raw.trim() === 'none') return Object.freeze([])
  if (raw.trim() === 'all') return DIALECT_NAMES
  const names = parseNames(raw)
  return names instanceof InvalidValue
    ? new InvalidValue(`\`all\`, \`none\`, or ${names.text}`)
    : Object.freeze([...new Set(names)])
}
