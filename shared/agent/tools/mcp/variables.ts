import { isJsonObject } from '../../../kernel/json.ts'
import type { Env } from '../../../platform/config/model.ts'

/** Claude Code's `${VAR}` and `${VAR:-default}`, and the `${env:VAR}` of VS Code and Cursor. */
const REFERENCE = /\$\{(?:env:)?([A-Za-z_]\w*)(?::-([^}]*))?\}/g
/** References that only an editor can replace, such as `${input:token}`. */
const EDITORS_OWN = /\$\{(?!env:)\w+:(?!-)[^}]*\}/

/** The fields of an entry in which variables are replaced. In `command` and `cwd` the values are paths, not secrets. */
const FIELDS = ['command', 'args', 'cwd', 'env', 'url', 'headers']
const PATHS = ['command', 'cwd']

export type Expanded = {
  /** The entry with the values in place of the references; other fields and texts are unchanged. */
  entry: unknown
  /** Each begins with the path of the field below the entry. */
  problems: string[]
  /** The inserted values that may be secrets. */
  secrets: string[]
}

/** Replaces references to variables of the environment. An empty variable counts as unset. */
export function expandVariables(entry: unknown, env: Env): Expanded {
  if (!isJsonObject(entry)) return { entry, problems: [], secrets: [] }
  const problems: string[] = []
  const secrets: string[] = []
  const expandText = (text: string, path: string): string => {
    const [foreign] = EDITORS_OWN.exec(text) ?? []
    if (foreign !== undefined)
      problems.push(`${path} has ${foreign}, which only an editor knows: write \${VAR} and set the variable VAR`)
    return text.replaceAll(REFERENCE, (reference, name: string, fallback: string | undefined) => {
      const value = env[name] || undefined
      if (value !== undefined && !PATHS.includes(path.slice(1))) secrets.push(value)
      if (value === undefined && fallback === undefined)
        problems.push(`${path} needs the variable ${name}, which is not set`)
      return value ?? fallback ?? reference
    })
  }
  const expand = (value: unknown, path: string): unknown => {
    if (typeof value === 'string') return expandText(value, path)
    if (Array.isArray(value)) return value.map((item, index) => expand(item, `${path}.${index}`))
    if (!isJsonObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, expand(item, `${path}.${key}`)]))
  }
  const expanded = Object.entries(entry).map(([key, value]) => [
    key,
    FIELDS.includes(key) ? expand(value, `.${key}`) : value,
  ])
  return { entry: Object.fromEntries(expanded), problems, secrets }
}
