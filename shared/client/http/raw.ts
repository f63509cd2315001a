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

/** The JSON of a good answer. */
export type RawAnswer<P extends keyof Paths, M extends Method> =
  Operation<P, M> extends { responses: infer Answers }
    ? { [Status in keyof Answers]: Status extends 200 | 201 | 202 ? JsonIn<Answers[Status]> : never }[keyof Answers]
    : never

/** `init` may be left out where nothing in it is required. */
type Args<Init> = object extends Init ? [init?: Init] : [init: Init]

export type UntypedInit = CallOptions & { query?: Query; body?: unknown; idempotencyKey?: string }

/** Every endpoint that answers JSON, with the types of the API document, and with the transport's deadlines and repeats. */
export class Raw {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  get<P extends PathWith<'get'>>(path: P, ...[init]: Args<RawInit<P, 'get'>>): Promise<RawAnswer<P, 'get'>> {
    return this.#call('GET', path, init)
  }

  post<P extends PathWith<'post'>>(path: P, ...[init]: Args<RawInit<P, 'post'>>): Promise<RawAnswer<P, 'post'>> {
    return this.#call('POST', path, init)
  }

  put<P extends PathWith<'put'>>(path: P, ...[init]: Args<RawInit<P, 'put'>>): Promise<RawAnswer<P, 'put'>> {
    return this.#call('PUT', path, init)
  }

  patch<P extends PathWith<'patch'>>(path: P, ...[init]: Args<RawInit<P, 'patch'>>): Promise<RawAnswer<P, 'patch'>> {
    return this.#call('PATCH', path, init)
  }

  delete<P extends PathWith<'delete'>>(
    path: P,
    ...[init]: Args<RawInit<P, 'delete'>>
  ): Promise<RawAnswer<P, 'delete'>> {
    return this.#call('DELETE', path, init)
  }

  /** Any request, without types. `path` is sent as it is. */
  request<Answer = unknown>(method: string, path: string, init: UntypedInit = {}): Promise<Answer> {
    return this.#transport.json(method, path, init)
  }

  #call<Answer>(method: string, template: string, init: object | undefined): Promise<Answer> {
    const { path: values = {}, ...rest } = (init ?? {}) as UntypedInit & { path?: Record<string, string | number> }
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
    return this.#transport.json(method, path, rest)
  }
}
