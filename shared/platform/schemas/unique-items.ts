import type { FuncKeywordDefinition, SchemaValidateFunction } from 'ajv'

/** Replaces ajv's `uniqueItems`, which compares each item with each other one. This one takes time linear in the array's size. */
export const UNIQUE_ITEMS: FuncKeywordDefinition = {
  keyword: 'uniqueItems',
  type: 'array',
  schemaType: 'boolean',
  errors: true,
  compile(isUnique: boolean) {
    const check: SchemaValidateFunction = (items: readonly unknown[]) => {
      const pair = isUnique ? findEqualItems(items) : undefined
      check.errors = pair ? [{ keyword: 'uniqueItems', params: pair }] : []
      return !pair
    }
    return check
  },
}

/** The indices of an item and of an earlier one that is equal to it. */
function findEqualItems(items: readonly unknown[]): { i: number; j: number } | undefined {
  const seen = new Map<string, number>()
  for (const [at, item] of items.entries()) {
    const text = canonicalJson(item)
    const earlier = seen.get(text)
    if (earlier !== undefined) return { i: earlier, j: at }
    seen.set(text, at)
  }
  return undefined
}

/** JSON with sorted keys: two values have the same text when they are equal. */
function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join()}}`
}
