import { readFile } from 'node:fs/promises'

/** A schema as `openapi.yaml` holds it; `schema-check.ts` says how the `x-` fields are read. */
export type Schema = {
  $ref?: string
  type?: string
  properties?: Record<string, Schema>
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  maxItems?: number
  'x-wanted'?: string
  'x-refused'?: string
  'x-ignored'?: boolean
}

export type Schemas = Record<string, Schema>

export type ApiDocument = {
  servers: { url: string }[]
  paths: Record<string, Record<string, unknown>>
  components: { schemas: Schemas }
  [key: string]: unknown
}

const SOURCE = new URL('openapi.yaml', import.meta.url)

/** The whole API description, as served at `<basePath>/openapi.json`. */
export async function readDocument(basePath: string): Promise<ApiDocument> {
  const document: ApiDocument = await parseYaml(await readFile(SOURCE, 'utf8'))
  return { ...document, servers: [{ url: basePath }] }
}

/**
 * The named schemas and those they refer to. Only their own lines are parsed: the whole document would cost the first prompt
 * 50 ms and 20 MB.
 */
export async function readSchemas(names: readonly string[]): Promise<Schemas> {
  const document = await readFile(SOURCE, 'utf8')
  const text = document.slice(document.indexOf('\n  schemas:\n'))
  const schemas: Schemas = {}
  const wanted = new Set(names)
  for (const name of wanted) {
    const lines = linesOf(text, name)
    schemas[name] = await parseYaml(lines)
    for (const [, referred] of lines.matchAll(/#\/components\/schemas\/(\w+)/g)) if (referred) wanted.add(referred)
  }
  return schemas
}

/** What stands under `components.schemas.<name>`: the indented lines that follow its own. */
function linesOf(text: string, name: string): string {
  const lines = new RegExp(`^ {4}${name}:\\n((?: {6}.*\\n|\\n)+)`, 'm').exec(text)?.[1]
  if (lines === undefined) throw new Error(`openapi.yaml has no schema ${name}`)
  return lines
}

async function parseYaml<T>(text: string): Promise<T> {
  const { parse } = await import('yaml') // On first use: a start, and an idle process, do without it.
  return parse(text) as T
}
