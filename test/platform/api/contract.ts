import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { ApiDocument } from '../../../shared/platform/api/document.ts'
import { close, closeInner, type Schemas } from './closed.ts'
import { findOperation, frameSchemaOf, isJsonRefusal, type Node, resolve } from './operations.ts'

/** A response as a test received it. `body` is parsed when it is JSON, and absent when the test does not read it. */
export type Received = { status: number; headers: Headers; body?: unknown }

export type Contract = {
  /** Describes what is wrong with a value, fields that the schema does not describe included; `''` when it is valid. */
  problemsOf(schema: AnySchemaObject, value: unknown): string
  /**
   * Describes what is wrong with an answer to a request for a path below the base path: its status, headers and JSON body. The path
   * may also be a template of the document. The body of a transcription is the backend's, and not checked.
   */
  problemsOfAnswer(method: string, path: string, received: Received): string
  /** Describes what is wrong with a frame of the stream that answers such a request. */
  problemsOfFrame(method: string, path: string, frame: object): string
}

const TRANSCRIPTIONS = '/audio/transcriptions'
const REFUSAL = { $ref: '#/components/schemas/ErrorResponse' }

/** Checks values against the API description. An unknown keyword in a schema throws. Each schema is compiled once. */
export function createContract(document: ApiDocument): Contract {
  const schemas = document.components.schemas as Schemas
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false, allErrors: true })
  addFormats.default(ajv)
  ajv.addVocabulary(['x-wanted', 'x-refused', 'x-ignored', 'x-max-values', 'x-enum-varnames', 'x-go-name'])
  for (const [name, schema] of Object.entries(schemas)) ajv.addSchema(closeInner(schema, schemas), name)
  const compiled = new Map<object, ValidateFunction>()
  const problemsOf = (schema: AnySchemaObject, value: unknown) => {
    const validate = compiled.get(schema) ?? ajv.compile(close(schema, schemas))
    compiled.set(schema, validate)
    return validate(value) ? '' : ajv.errorsText(validate.errors)
  }
  const problemsOfDescribed = (answer: Node, received: Received, isBodyOurs: boolean) =>
    [
      ...problemsOfHeaders((answer['headers'] ?? {}) as Node, received.headers, { document, problemsOf }),
      ...(isBodyOurs ? problemsOfBody((answer['content'] ?? {}) as Content, received, problemsOf) : []),
    ].join('; ')
  return {
    problemsOf,
    problemsOfFrame(method, path, frame) {
      const { operation } = findOperation(document, method, path)
      const schema = operation && frameSchemaOf(document, operation)
      return schema ? problemsOf(schema, frame) : `${method} ${path} has no stream`
    },
    problemsOfAnswer(method, path, received) {
      const { operation, template, allow } = findOperation(document, method, path)
      const where = `${method} ${path.split('?', 1)[0]} with ${received.status}`
      const problem = (text: string) => (text === '' ? '' : `${where}: ${text}`)
      if (method === 'OPTIONS') return received.status === 204 ? '' : problem('OPTIONS is 204')
      if (!operation) {
        if (!isJsonRefusal(received, allow)) return problem('is not described')
        return problem(received.body === undefined ? '' : problemsOf(REFUSAL, received.body))
      }
      const responses = operation['responses'] as Node
      const answer = resolve(document, responses[String(received.status)] ?? responses['default'])
      if (!answer) return problem('is not described')
      return problem(problemsOfDescribed(answer, received, template !== TRANSCRIPTIONS))
    },
  }
}

type Checks = { document: ApiDocument; problemsOf: Contract['problemsOf'] }

/** Headers that an answer may have only where the document says so. */
const TOLD = [
  'Retry-After',
  'WWW-Authenticate',
  'X-Run-ID',
  'X-Trace-ID',
  'Idempotency-Replayed',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
]

function problemsOfHeaders(described: Node, headers: Headers, { document, problemsOf }: Checks): string[] {
  const problems = TOLD.filter((name) => headers.has(name) && !described[name]).map(
    (name) => `${name} is not described`,
  )
  for (const [name, node] of Object.entries(described)) {
    const { required, schema } = resolve(document, node) as { required?: boolean; schema: AnySchemaObject }
    const text = headers.get(name)
    if (text === null && required) problems.push(`${name} is missing`)
    if (text === null) continue
    const wrong = problemsOf(schema, schema['type'] === 'integer' ? Number(text) : text)
    if (wrong !== '') problems.push(`${name} is "${text}": ${wrong}`)
  }
  const limits = TOLD.filter((name) => name.startsWith('RateLimit-') && headers.has(name))
  if (limits.length % 3 !== 0) problems.push(`of the rate limit there is only ${limits.join(', ')}`)
  return problems
}

type Content = Record<string, { schema: AnySchemaObject }>

function problemsOfBody(content: Content, { headers, body }: Received, problemsOf: Contract['problemsOf']): string[] {
  const type = (headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  if (type === '' && Object.keys(content).length === 0) return body ? ['it has a body'] : []
  const media = content[type] ?? content['*/*']
  if (!media) return [`content type "${type}" is not described`]
  const problem = type === 'application/json' && body !== undefined ? problemsOf(media.schema, body) : ''
  return problem === '' ? [] : [problem]
}
