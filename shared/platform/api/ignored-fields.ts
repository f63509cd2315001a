import { escapePointer } from '../../kernel/json.ts'
import { truncate } from '../../kernel/text.ts'

/** The most fields that are named. */
export const MAX_FIELDS = 20
/** A longer name is cut. */
const MAX_NAME_CHARS = 64
const MAX_HEADER_CHARS = 2_048

/** Collects the JSON pointers of a body's unknown fields, at most 20 (D2.4). `enter` and `leave` track the present place. */
export class IgnoredFields {
  readonly pointers: string[] = []
  readonly #path: (string | number)[] = []

  enter(key: string | number): void {
    this.#path.push(key)
  }

  leave(): void {
    this.#path.pop()
  }

  add(name: string): void {
    if (this.pointers.length === MAX_FIELDS) return
    const keys = [...this.#path.map(String), truncate(name, MAX_NAME_CHARS)]
    this.pointers.push(keys.map((key) => `/${escapePointer(key)}`).join(''))
  }
}

export type Warning = { code: 'ignored_field'; message: string; param: string }

/** The same as a part of an answer; nothing when all fields were read. */
export function ignoredFieldWarnings(pointers: readonly string[] = []): { warnings?: Warning[] } {
  const warnings = pointers.map(
    (param): Warning => ({ code: 'ignored_field', message: `nothing reads ${param}; check its name`, param }),
  )
  return warnings.length > 0 ? { warnings } : {}
}

/**
 * The value of `X-Ignored-Fields`: the pointers are percent-encoded, so that a field's name cannot end the header or an entry. It names
 * fewer fields if the header would become too long.
 */
export function ignoredFieldsHeader(pointers: readonly string[]): string {
  let header = ''
  for (const pointer of pointers) {
    const next = header + (header && ', ') + encodeURI(pointer.toWellFormed()).replaceAll(',', '%2C')
    if (next.length > MAX_HEADER_CHARS) break
    header = next
  }
  return header
}
