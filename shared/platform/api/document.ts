import { readFile } from 'node:fs/promises'
import type { JsonObject } from '../../kernel/events.ts'

/** A schema of `openapi.yaml`. `schema-check.ts` defines the meaning of the `x-` fields. */
export type Schema = {
  $ref?: string
  type?: string
  enum?: readonly unknown[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  'x-go-name'?: string
  'x-wanted'?: string
  'x-refused'?: string
  'x-ignored'?: boolean
  'x-max-values'?: number
  'x-enum-varnames'?: readonly string[]
}

export type Schemas = Record<string, Schema>

export type ApiDocument = {
  servers: { url: string }[]
  paths: Record<string, Record<string, unknown>>
  components: { schemas: Schemas; securitySchemes?: Record<string, JsonObject> }
  security: JsonObject[]
  [key: string]: unknown
}

const SOURCE = new URL('openapi.yaml', import.meta.url)

/** The credentials that the server accepts (api.md "Authentication"). `optional-oidc` is AUTH_MODE=soft. */
export type Authentication = 'none' | 'api-token' | 'oidc' | 'optional-oidc'

export type DocumentOptions = { basePath: string; authentication: Authentication }

/** Reads the whole API description in the form that a server with this base path and authentication serves at `<basePath>/openapi.json`. */
export async function readDocument({ basePath, authentication }: DocumentOptions): Promise<ApiDocument> {
  const document: ApiDocument = await parseYaml(await readFile(SOURCE, 'utf8'))
  const { bearer, security } = SECURITY[authentication]
  const components = { ...document.components, ...(bearer && { securitySchemes: { bearer } }) }
  return { ...document, servers: [{ url: basePath }], security, components }
}

type Security = { bearer?: JsonObject; security: JsonObject[] }

const TOKEN = { type: 'http', scheme: 'bearer' }
const REQUIRED = { bearer: [] }

const SECURITY: Record<Authentication, Security> = {
  none: { security: [] },
  'api-token': {
    bearer: { ...TOKEN, description: 'The API_TOKEN of this server: `Authorization: Bearer <ACCESS_TOKEN>`.' },
    security: [REQUIRED],
  },
  oidc: {
    bearer: {
      ...TOKEN,
      bearerFormat: 'JWT',
      description: 'A token of the identity provider, issued for this service.',
    },
    security: [REQUIRED],
  },
  'optional-oidc': {
    bearer: {
      ...TOKEN,
      bearerFormat: 'JWT',
      description: 'A token of the identity provider. Without one the request belongs to the default tenant.',
    },
    security: [{}, REQUIRED],
  },
}

/**
 * Reads the schema of a request's body, and those that it refers to. Only their own lines are parsed: the whole document would delay
 * the first request by 50 ms and take 20 MB.
 */
export async function readBodySchemas(body: string): Promise<Schemas> {
  const document = await readFile(SOURCE, 'utf8')
  const text = document.slice(document.indexOf('\n  schemas:\n'))
  const schemas: Schemas = {}
  const wanted = new Set([body])
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
  return parse(text, { maxAliasCount: -1 }) as T // The limit of aliases is only needed for untrusted files.
}
