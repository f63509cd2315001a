import { readFile } from 'node:fs/promises'

/** A schema of `openapi.yaml`. `schema-check.ts` defines the meaning of the `x-` fields. */
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

/** Reads the whole API description, as `<basePath>/openapi.json` serves it. */
export async function readDocument(basePath: string): Promise<ApiDocument> {
  const document: ApiDocument = await parseYaml(await readFile(SOURCE, 'utf8'))
  return { ...document, servers: [{ url: basePath }] }
}

/**
 * Reads the schemas of all request bodies, which are those whose names end in `Request`, and the schemas that they refer to. Only
 * their own lines are parsed: the whole document would delay the first request by 50 ms and take 20 MB.
 */
export async function readBodySchemas(): Promise<Schemas> {
  const document = await readFile(SOURCE, 'utf8')
  const text = document.slice(document.indexOf('\n  schemas:\n'))
  const schemas: Schemas = {}
  const wanted = new Set(Array.from(text.matchAll(/^ {4}(\w+Request):$/gm), ([, name = '']) => name))
  for (const name of wanted) {
    const lines = linesOf(text, name)
    schemas[name] = await parseYaml(lines)
    for (const [, referred] of lines.matchAll(/#\/components\/schemas\/(\w+)/g)) if (referred) wanted.add(referred)
  }
  return schemas
}

/** The text of `components.schemas.<name>`: the indented lines below its name. */
function linesOf(text: string, name: string): string {
  const lines = new RegExp(`^ {4}${name}:\\n((?: {6}.*\\n|\\n)+)`, 'm').exec(text)?.[1]
  if (lines === undefined) throw new Error(`openapi.yaml has no schema ${name}`)
  return lines
}

async function parseYaml<T>(text: string): Promise<T> {
  const { parse } = await import('yaml') // Imported on first use, so that a start does not load it.
  return parse(text) as T
}
