import type { Paths } from '../api.ts'
import type { CallOptions, Query, Transport } from './transport.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** The paths that have the method. */
export type PathWith<M extends Method> = {
  [P in keyof Paths]: Paths[P][M] extends object ? P : never
}[keyof Paths]

type Operation<P extends keyof Paths, M extends Method> = NonNullable<Paths[P][M]>

type PathOf<Op> = Op extends { parameters: { path: infer Path } } ? { path: Path } : { path?: never }

type QueryOf<Op> = Op extends { parameters: { query?: infer Q } } ? { query?: NonNullable<Q> } : { query?: never }

type BodyOf<Op> = Op extends { requestBody: { content: { 'application/json': infer Body } } }
  ? { body: Body }
  : Op extends { requestBody?: { content: { 'application/json': infer Body } } }
    ? { body?: Body }
    : { body?: never }

/** The parts of a request: the parameters of its path, query and body. */
export type RawInit<P extends keyof Paths, M extends Method> = PathOf<Operation<P, M>> &
  QueryOf<Operation<P, M>> &
  BodyOf<Operation<P, M>> &
  CallOptions & { idempotencyKey?: string }

type JsonIn<Answer> = Answer extends { content: { 'application/json': infer Body } } ? Body : never

/** The JSON of a successful answer. */
export type RawAnswer<P extends keyof Paths, M extends Method> =
  Operation<P, M> extends { responses: infer Answers }
    ? { [Status in keyof Answers]: Status extends 200 | 201 | 202 ? JsonIn<Answers[Status]> : never }[keyof Answers]
    : never

/** `init` may be left out if none of its fields is required. */
type Args<Init> = object extends Init ? [init?: Init] : [init: Init]

export type UntypedInit = CallOptions & { query?: Query; body?: unknown; idempotencyKey?: string }

/** Every endpoint that answers with JSON, with the types of the API document and the transport's deadlines and repetitions. */
export type Raw = { [M in Method]: Send<M> } & {
  /** Any request, without types. `path` is sent unchanged. */
  request<Answer = unknown>(method: string, path: string, init?: UntypedInit): Promise<Answer>
}

type Send<M extends Method> = <P extends PathWith<M>>(
  path: P,
  ...[init]: Args<RawInit<P, M>>
) => Promise<RawAnswer<P, M>>

type AnyInit = UntypedInit & { path?: Record<string, string | number> }

export function createRaw(transport: Transport): Raw {
  const sendWith =
    <M extends Method>(method: string) =>
    <P extends PathWith<M>>(template: P, init: unknown = {}): Promise<RawAnswer<P, M>> => {
      const { path: values = {}, ...rest } = init as AnyInit
      const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
      return transport.json(method, path, rest)
    }
  return {
    get: sendWith<'get'>('GET'),
    post: sendWith<'post'>('POST'),
    put: sendWith<'put'>('PUT'),
    patch: sendWith<'patch'>('PATCH'),
    delete: sendWith<'delete'>('DELETE'),
    request: (method, path, init) => transport.json(method, path, init),
  }
}
