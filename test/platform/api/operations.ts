import type { AnySchemaObject } from 'ajv/dist/2020.js'
import type { ApiDocument } from '../../../shared/platform/api/document.ts'

export type Node = Record<string, unknown>

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

export type Found = {
  /** `undefined`: neither this path nor this method of it is described. */
  operation: Node | undefined
  /** The path in the document. */
  template: string | undefined
  /** The value of `Allow` for another method of a path that is described. */
  allow: string | undefined
}

export function findOperation(document: ApiDocument, method: string, path: string): Found {
  const template = templateOf(document, path.split('?', 1)[0] ?? '')
  const item = template === undefined ? undefined : document.paths[template]
  const name = method === 'HEAD' ? 'get' : method.toLowerCase()
  return { template, operation: item?.[name] as Node | undefined, allow: item && allowOf(item) }
}

function templateOf({ paths }: ApiDocument, path: string): string | undefined {
  if (paths[path]) return path
  const segments = path.split('/')
  return Object.keys(paths).find((template) => {
    const parts = template.split('/')
    if (parts.length !== segments.length) return false
    return parts.every((part, i) => part === segments[i] || (part.startsWith('{') && segments[i] !== ''))
  })
}

const allowOf = (item: Node): string =>
  [...METHODS.filter((method) => item[method]).flatMap(allowedFor), 'OPTIONS'].join(', ')

const allowedFor = (method: string): string[] => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()])

/** Statuses of requests that are refused before their path is looked up. */
const BEFORE_ROUTING = [400, 401, 403, 429, 503]

/** Tells whether an answer to an undescribed path or method refuses it: 404, or 405 with the methods that exist (D2.2). */
export function isJsonRefusal(
  { status, headers }: { status: number; headers: Headers },
  allow: string | undefined,
): boolean {
  if (BEFORE_ROUTING.includes(status)) return true
  return allow === undefined ? status === 404 : status === 405 && headers.get('allow') === allow
}

/** Follows a reference into the document. */
export function resolve(document: ApiDocument, node: unknown): Node | undefined {
  const reference = (node as Node | undefined)?.['$ref']
  return typeof reference === 'string' ? (at(document, reference) as Node) : (node as Node | undefined)
}

/** The schema of the frames of an operation's stream; `undefined` when it has none. */
export function frameSchemaOf(document: ApiDocument, operation: Node): AnySchemaObject | undefined {
  const answer = resolve(document, (operation['responses'] as Node)['200'])
  const content = answer?.['content'] as Record<string, Node> | undefined
  return content?.['text/event-stream']?.['x-itemSchema'] as AnySchemaObject | undefined
}

/** The node that a reference points to. */
export const at = (document: ApiDocument, reference: string): unknown =>
  reference
    .slice(2)
    .split('/')
    .reduce<unknown>((node, key) => (node as Node | undefined)?.[key], document)

export type Operation = { method: string; path: string; operation: Node; parameters: Node[] }

/** Every operation, with the parameters of its path. */
export function operationsOf(document: ApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
      const operation = item[method] as Node
      const given = [item['parameters'] ?? [], operation['parameters'] ?? []].flat()
      const parameters = given.map((parameter) => resolve(document, parameter) ?? {})
      return { method: method.toUpperCase(), path, operation, parameters }
    }),
  )
}

export type Body = { type: string; schema: AnySchemaObject; examples: unknown[] }

/** The body that an operation takes. */
export function bodyOf(operation: Node): Body | undefined {
  const content = (operation['requestBody'] as Node | undefined)?.['content'] as Record<string, Node> | undefined
  const [type, media] = Object.entries(content ?? {})[0] ?? []
  if (type === undefined || !media) return undefined
  return { type, schema: media['schema'] as AnySchemaObject, examples: examplesIn(media) }
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
  const media = (node as Node)['application/json'] as Node | undefined
  if (!media) return inner
  return [...inner, ...examplesIn(media).map((value) => ({ schema: media['schema'] as AnySchemaObject, value, where }))]
}

function examplesIn({ example, examples }: Node): unknown[] {
  const named = Object.values((examples ?? {}) as Record<string, Node>).map((one) => one['value'])
  return example === undefined ? named : [example, ...named]
}
