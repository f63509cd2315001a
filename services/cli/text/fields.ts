import { plain, plainJson, plainLine } from './plain.ts'

/** An object as lines of its fields, one below the other; nested values are indented. Fields without a value are left out. */
export function fieldLines(thing: object, indent = ''): string {
  const fields = Object.entries(thing).filter(([, value]) => !isNothing(value))
  const width = Math.max(0, ...fields.map(([name]) => name.length)) + 2
  return fields
    .map(([name, value]) => `${indent}${plainLine(name).padEnd(width)}${valueText(value, indent, width)}\n`)
    .join('')
}

function valueText(value: unknown, indent: string, width: number): string {
  if (typeof value === 'string') return plain(value).replaceAll('\n', `\n${indent}${' '.repeat(width)}`)
  if (typeof value !== 'object' || value === null) return String(value)
  if (Array.isArray(value)) return arrayText(value, `${indent}  `)
  const inner = fieldLines(value, `${indent}  `).trimEnd()
  return inner === '' ? '' : `\n${inner}`
}

function arrayText(values: readonly unknown[], indent: string): string {
  if (values.every((value) => typeof value !== 'object')) return plainLine(values.map(String).join(', '))
  return values.map((value) => `\n${indent}- ${plainJson(value)}`).join('')
}

function isNothing(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === null || value === undefined || value === ''
}
