import { expect } from 'chai'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { PlanView } from '../../shared/work/plans/view.ts'
import type { Frame } from './event-stream.ts'
import type { Received } from './model-server/model-server.ts'
import { useMongo } from './mongo.ts'
import type { Product, Reply, StartProduct } from './product.ts'
import { until } from './until.ts'

/** A running product, and its plan queue as a client uses it. */
export type PlanBench = {
  readonly product: Product
  call: Product['call']
  /** Submits a plan and returns it as it was accepted. */
  submit(plan: object, headers?: Record<string, string>): Promise<PlanView>
  read(id: string): Promise<PlanView>
  /** All events of a plan, up to its end. */
  events(id: string): Promise<Frame[]>
  /** The plan after its end. */
  ended(id: string): Promise<PlanView>
  /** Resolves when the model server has received the prompts of these steps. */
  begun(...ids: readonly string[]): Promise<void>
  /** The request to the model for a step of `step`. */
  requestOf(id: string): Received
}

const START_MS = 60_000
const WITHIN_MS = 10_000

/** Starts the product before the enclosing `describe` and stops it afterwards. The cluster gets a MongoDB and an executor of its own. */
export function usePlans(startProduct: StartProduct, form: Form, env: Record<string, string> = {}): PlanBench {
  after(() => bench.product?.close()) // Hooks run in their order: the product ends before its MongoDB.
  const mongo = form === 'cluster' ? useMongo() : undefined
  const requestsOf = (id: string) => bench.product.model.requests.filter((request) => stepIdOf(request) === id)
  const bench = {
    call: (...args) => bench.product.call(...args),
    async submit(plan, headers) {
      const reply = await bench.call('POST', '/plans/submit', plan, headers)
      return planOf(reply, 202)
    },
    read: async (id) => planOf(await bench.call('GET', `/plans/${id}`)),
    events: async (id) => (await bench.product.stream(`/plans/${id}/events`)).all(),
    async ended(id) {
      await bench.events(id)
      return bench.read(id)
    },
    async begun(...ids) {
      const missing = () => ids.filter((id) => requestsOf(id).length === 0)
      const what = `the model to be asked for the steps ${ids.join(', ')}`
      await until(() => missing().length === 0, { what, withinMs: WITHIN_MS, lastSeen: missing })
    },
    requestOf(id) {
      const [request, ...others] = requestsOf(id)
      expect(others, `more requests for the step ${id}`).to.deep.equal([])
      if (!request) throw new Error(`the model got no request for the step ${id}`)
      return request
    },
  } as { -readonly [field in keyof PlanBench]: PlanBench[field] }

  before(async function () {
    this.timeout(START_MS)
    bench.product = await startProduct({ ...mongo?.env, ...env })
  })
  beforeEach(() => {
    bench.product.model.requests.length = 0
  })
  return bench
}

/** A step whose prompt tells the model server its id. */
export const step = (id: string, ...dependsOn: readonly string[]) => ({
  id,
  prompt: `Do ${id}.`,
  ...(dependsOn.length > 0 && { depends_on: dependsOn }),
})

/** The id of the step of `step` whose run made this request. */
export const stepIdOf = ({ prompt }: Pick<Received, 'prompt'>): string => /^Do (.+)\.$/m.exec(prompt)?.[1] ?? ''

export function planOf({ status, text, body }: Reply, wanted = 200): PlanView {
  expect(status, text).to.equal(wanted)
  return body as PlanView
}

/** Frames without their times: `step_ended a done`. */
export const heads = (frames: readonly Frame[]): string[] =>
  frames.map(({ event, data }) =>
    [event, data['step_id'], data['status']].filter((part) => part !== undefined).join(' '),
  )
