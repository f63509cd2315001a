import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { ApiDocument } from '../../shared/api/document.ts'

type Node = Record<string, unknown>

export type Contract = {
  /** Describes what is wrong with a value; `''` when it is valid. */
  problemsOf(schema: AnySchemaObject, value: unknown): string
  /** Describes what is wrong with a JSON answer according to the document. */
  problemsOfAnswer(method: string, path: string, response: Response, body: unknown): string
}

/** Checks values against the API description. An unknown keyword in a schema throws. */
export function createContract(document: ApiDocument): Contract {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addVocabulary(['x-wanted', 'x-refused', 'x-ignored'])
  for (const [name, schema] of Object.entries(document.components.schemas)) ajv.addSchema(withNames(schema), name)
  const problemsOf = (schema: AnySchemaObject, value: unknown) => {
    const validate = ajv.compile(withNames(schema))
    return validate(value) ? '' : ajv.errorsText(validate.errors)
  }
  return {
    problemsOf,
    problemsOfAnswer(method, path, response, body) {
      const operation = document.paths[path]?.[method.toLowerCase()] as Node | undefined
      const answer = resolve(document, (operation?.['responses'] as Node | undefined)?.[String(response.status)])
      if (!answer) return `${method} ${path} is not described with ${response.status}`
      const missing = Object.keys((answer['headers'] ?? {}) as Node).filter((name) => !response.headers.has(name))
      const limits = missing.filter((name) => !name.startsWith('RateLimit-')) // Off in most tests.
      if (limits.length > 0) return `${method} ${path} lacks ${limits.join(', ')}`
      const content = (answer['content'] as Node)['application/json'] as { schema: AnySchemaObject }
      return problemsOf(content.schema, body)
    },
  }
}

/** Rewrites references to plain schema names, which ajv uses here. */
const withNames = (schema: object): AnySchemaObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"')) as AnySchemaObject

function resolve(document: ApiDocument, node: unknown): Node | undefined {
  const reference = (node as Node | undefined)?.['$ref']
  if (typeof reference !== 'string') return node as Node | undefined
  const target = reference
    .slice(2)
    .split('/')
    .reduce<unknown>((at, key) => (at as Node)[key], document)
  return target as Node
}

export function referencesOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) =>
    key === '$ref' && typeof value === 'string' ? [value] : referencesOf(value),
  )
}

export type Example = { schema: AnySchemaObject; value: unknown; where: string }

/** Every JSON example with its schema. */
export function examplesOf(node: unknown, where = '#'): Example[] {
  if (typeof node !== 'object' || node === null) return []
  const inner = Object.entries(node).flatMap(([key, value]) => examplesOf(value, `${where}/${key}`))
  const media = (node as Node)['application/json'] as { schema: AnySchemaObject } | undefined
  if (!media) return inner
  const { schema, example, examples } = media as { schema: AnySchemaObject; example?: unknown; examples?: Node }
  const named = Object.values(examples ?? {}).map((one) => (one as Node)['value'])
  const values = example === undefined ? named : [example, ...named]
  return [...inner, ...values.map((value) => ({ schema, value, where }))]
}
