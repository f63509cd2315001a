import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { FlowAnswer } from '../../shared/kernel/events.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { type ModelServer, type Received, startModelServer } from './model-server/model-server.ts'
import { useMongo } from './mongo.ts'
import type { Product, Reply, StartProduct } from './product.ts'
import { until } from './until.ts'

/** The API keys of the instances. They must not appear in any answer, record or log line. */
export const KEYS = { main: 'sk-canary-main-0123456789', spare: 'sk-canary-spare-0123456789' }

/** A running product whose tenant has the instances `main` and `spare`, each with its own provider. */
export type FlowBench = {
  readonly product: Product
  readonly main: ModelServer
  readonly spare: ModelServer
  /** The settings of the cluster's MongoDB; none in the standalone form. */
  readonly mongoEnv: Record<string, string>
  call: Product['call']
  /** Stores and publishes a flow, and returns its name. */
  publish(definition: object, name?: string): Promise<string>
  /** Runs a flow with the model `m-1` of `main`; `body` adds to the request or replaces its fields. */
  run(name: string, body?: object, headers?: Record<string, string>): Promise<Reply>
  /** The record of the execution that this answer belongs to. */
  dispatch(reply: Reply): Promise<Record<string, unknown>>
}

const START_MS = 60_000

type Env = Record<string, string>

/**
 * Starts the product before the enclosing `describe` and stops it afterwards. The cluster gets a MongoDB of its own. A function as
 * `env` is called in the `before` hook.
 */
export function useFlows(startProduct: StartProduct, form: Form, env: Env | (() => Env) = {}): FlowBench {
  const opened: { close(): Promise<void> }[] = []
  // Hooks run in their order: the product ends before its MongoDB.
  after(async () => {
    for (const each of opened.toReversed()) await each.close()
  })
  const mongo = form === 'cluster' ? useMongo() : undefined
  const bench = {
    call: (...args) => bench.product.call(...args),
    async publish(definition, name = newName()) {
      for (const [method, path, body] of [
        ['PUT', `/flows/${name}`, definition],
        ['POST', `/flows/${name}/publish`],
      ] as const) {
        const { status, text } = await bench.call(method, path, body)
        expect(status, text).to.equal(200)
      }
      return name
    },
    run: (name, body = {}, headers = {}) =>
      bench.call('POST', `/flows/${name}/run`, { ...REQUEST, ...body }, { ...headers }),
    async dispatch({ headers }) {
      const { status, body } = await bench.call('GET', `/dispatches/${headers.get('x-trace-id')}`)
      expect(status).to.equal(200)
      return body as Record<string, unknown>
    },
  } as { -readonly [field in keyof FlowBench]: FlowBench[field] }

  before(async function () {
    this.timeout(START_MS)
    opened.push((bench.main = await startModelServer()))
    opened.push((bench.spare = await startModelServer()))
    bench.mongoEnv = { ...mongo?.env }
    bench.product = await startProduct({
      ...bench.mongoEnv,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      ...(typeof env === 'function' ? env() : env),
    })
    opened.push(bench.product)
    await putInstance(bench, 'main', { url: bench.main.url, key: KEYS.main })
    await putInstance(bench, 'spare', { url: bench.spare.url, key: KEYS.spare })
  })

  return bench
}

/** A request for `DEFINITION`. */
export const REQUEST = { input: { text: 'hello' }, provider_instance: 'main', model: 'm-1' }

/** Stores an instance and waits until every gateway knows it. */
export async function putInstance({ product }: Pick<FlowBench, 'product'>, name: string, body: object): Promise<void> {
  const { status, text } = await product.call('PUT', `/config/instances/${name}`, {
    type: 'openai-compatible',
    ...body,
  })
  expect(status, text).to.equal(200)
  // This request is refused for its fallback, unless the gateway refuses its instance before.
  const request = { ...REQUEST, provider_instance: name, fallback_instance: 'nobody', fallback_model: 'm-1' }
  const isKnown = async () => {
    const replies = await Promise.all([1, 2].map(() => product.call('POST', '/flows/summarize/run', request)))
    return replies.every(({ text: refusal }) => refusal.includes('/fallback_instance'))
  }
  await until(isKnown, { what: `every gateway to know the instance ${name}`, everyMs: 20 })
}

/** A name of no other flow. */
export const newName = (): string => `flow-${randomBytes(6).toString('hex')}`

/** The schema of an object with one required text. */
export const textSchema = (name: string) => ({
  type: 'object',
  properties: { [name]: { type: 'string' } },
  required: [name],
  additionalProperties: false,
})

/** A flow from `{text}` to `{answer}`. */
export const DEFINITION = { input_schema: textSchema('text'), output_schema: textSchema('answer') }

/** An answer that fits the output of `DEFINITION`. */
export const GOOD = '{"answer":"yes"}'

export const answerOf = ({ status, text, body }: Reply): FlowAnswer => {
  expect(status, text).to.equal(200)
  return body as FlowAnswer
}

type Message = { role: string; content: string }

const messagesOf = ({ body }: Received): Message[] => body['messages'] as Message[]

export function systemOf(request: Received): string {
  const [first] = messagesOf(request)
  return first?.role === 'system' ? first.content : ''
}

/** The last message of a request. */
export const lastOf = (request: Received): string => messagesOf(request).at(-1)?.content ?? ''
