import { expect } from 'chai'
import type { PlanCheck } from '../../../shared/work/plans/submit.ts'
import type { PlanView, StepRunView } from '../../../shared/work/plans/view.ts'
import { AUDIENCE, Issuer } from '../../support/issuer/issuer.ts'
import { newSigner } from '../../support/issuer/signer.ts'
import { planOf, step, stepIdOf, usePlans } from '../../support/plans.ts'
import { inBothForms, type Reply } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const TWO = { steps: [step('a'), step('b', 'a')] }

const MAX_PLANS = 12

const errorOf = ({ body }: Reply) => (body as { error: { type: string; message: string; param?: string } }).error

inBothForms('requests for plans', (startProduct, form) => {
  const issuer = {} as { current: Issuer }
  before(async () => {
    issuer.current = await Issuer.start([await newSigner('RS256', 'r1')])
  })
  const start: typeof startProduct = (env) =>
    startProduct({ ...env, OIDC_ISSUER: issuer.current.url, OIDC_AUDIENCE: AUDIENCE })
  const bench = usePlans(start, form, { PLANS_PER_TENANT: `${MAX_PLANS}` })
  after(() => issuer.current.close())

  const as = async (client: string) => ({ authorization: `Bearer ${await issuer.current.token(client)}` })
  const call = async (method: string, path: string, body?: unknown, headers = {}, client = 'acme') =>
    bench.call(method, path, body, { ...(await as(client)), ...headers })
  const submit = (plan: unknown, headers = {}, client = 'acme') => call('POST', '/plans/submit', plan, headers, client)
  const idsOf = async (client: string) => {
    const { body } = await call('GET', '/plans?limit=200', undefined, {}, client)
    return (body as { plans: { id: string }[] }).plans.map(({ id }) => id)
  }
  const ended = async (id: string, client = 'acme'): Promise<PlanView> => {
    await (await bench.product.stream(`/plans/${id}/events`, undefined, await as(client))).all()
    return planOf(await call('GET', `/plans/${id}`, undefined, {}, client))
  }

  beforeEach(() => bench.product.model.otherwise((request) => `out of ${stepIdOf(request)}`))

  it('D6.6: requests with one key at the same time, through every gateway, are one plan', async () => {
    const key = { 'idempotency-key': 'key 1' }
    const replies = await Promise.all(Array.from({ length: 6 }, () => submit(TWO, key)))
    const ids = new Set(replies.map((reply) => planOf(reply, 202).id))
    expect(ids.size).to.equal(1)
    const replayed = replies.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')
    expect(replayed).to.have.length(5)
    const [id = ''] = ids
    await ended(id)
    const later = await submit({ ...TWO, unknown: 1 }, key)
    expect(later.headers.get('idempotency-replayed')).to.equal('true')
    expect(planOf(later, 202)).to.include({ id, status: 'done' })
    expect(bench.product.model.requests.map(stepIdOf)).to.deep.equal(['a', 'b'])
    const other = await submit({ ...TWO, parallel: true }, key)
    expect(other.status).to.equal(409)
    expect(other.body).to.nested.include({ 'error.code': 'idempotency_mismatch' })
    expect(planOf(await submit(TWO, key, 'umbrella'), 202).id).not.to.equal(id)
  })

  it('a tenant has at most PLANS_PER_TENANT plans that wait or run, through whatever gateway; another one still submits', async () => {
    bench.product.model.otherwise(() => [{ hang: true }])
    const submitOne = (key: number) => submit(TWO, { 'idempotency-key': `full ${key}` }, 'initech')
    const first = await Promise.all(Array.from({ length: MAX_PLANS - 2 }, (_, key) => submitOne(key)))
    for (const reply of first) planOf(reply, 202)
    const race = await Promise.all(Array.from({ length: 20 }, (_, i) => submitOne(MAX_PLANS + i)))
    const refused = race.filter(({ status }) => status !== 202)
    expect(refused).to.have.length.within(18, 20)
    for (const reply of refused) {
      expect(reply.status).to.equal(429)
      expect(reply.headers.get('retry-after')).to.equal('10')
      expect(errorOf(reply)).to.include({ type: 'rate_limit_error' })
      expect(errorOf(reply).message).to.include(`${MAX_PLANS} plans that wait or run`)
    }
    expect(planOf(await submit(TWO, {}, 'umbrella'), 202)).to.include({ status: 'queued' })
    for (const id of await idsOf('initech')) await call('POST', `/plans/${id}/cancel`, undefined, {}, 'initech')
    const again = () => submitOne(MAX_PLANS + race.findIndex(({ status }) => status !== 202))
    const accepted = await until(
      async () => {
        const reply = await again()
        return reply.status === 202 && reply
      },
      { what: 'room after the cancellations' },
    )
    expect(accepted.headers.get('idempotency-replayed')).to.equal(null)
  })

  it('D27: a retry takes over what is done, with its output, and carries out the rest, once for a key', async () => {
    bench.product.model.otherwise((request) =>
      stepIdOf(request) === 'b' ? { status: 400, message: 'no' } : `out of ${stepIdOf(request)}`,
    )
    const failed = await ended(planOf(await submit({ ...TWO, title: 'Two' }), 202).id)
    expect(failed).to.deep.include({ status: 'failed', step_statuses: { a: 'done', b: 'failed' } })
    const { a, b } = failed.step_runs as Record<'a' | 'b', StepRunView>
    expect(a).to.include({ wave: 1 })
    expect(a.input_tokens).to.be.above(0)
    expect(a.started_at?.localeCompare(a.ended_at ?? '')).to.equal(-1)
    expect(b).to.include({ wave: 2 })
    expect(new Set([a.run_id, b.run_id, failed.id.replace('plan', 'run')]).size).to.equal(3)
    expect(failed.usage).to.include({ input_tokens: a.input_tokens, output_tokens: a.output_tokens })

    bench.product.model.requests.length = 0
    bench.product.model.otherwise((request) => `out of ${stepIdOf(request)}`)
    const retry = () => call('POST', `/plans/${failed.id}/retry`, undefined, { 'idempotency-key': 'again' })
    const replies = await Promise.all([retry(), retry(), retry()])
    const [first, ...others] = replies.map((reply) => planOf(reply, 202))
    expect(first).to.include({ retry_of: failed.id, title: 'Two' }).and.not.include({ id: failed.id })
    expect(first?.step_runs['a']).to.deep.equal({ ...a, taken_from: failed.id })
    for (const { id } of others) expect(id).to.equal(first?.id)
    const done = await ended(first?.id ?? '')
    expect(done).to.deep.include({ status: 'done', step_outputs: { a: 'out of a', b: 'out of b' } })
    expect(bench.product.model.requests.map(stepIdOf)).to.deep.equal(['b'])
    expect(bench.requestOf('b').prompt).to.include('out of a')
    expect(done.usage.input_tokens).to.equal(done.step_runs['b']?.input_tokens)
    expect((await call('POST', `/plans/${done.id}/retry`)).status).to.equal(409)
  })

  it('D27.3: POST /plans/check says all problems at once, or the waves, and stores nothing', async () => {
    const check = async (plan: unknown) => {
      const { status, text, body } = await call('POST', '/plans/check', plan, {}, 'umbrella')
      expect(status, text).to.equal(200)
      return body as PlanCheck
    }
    const before = await idsOf('umbrella')
    const wrong = await check({ steps: [step('a', 'x'), step('b', 'c'), step('c', 'b'), step('a')] })
    expect(wrong.problems.map(({ param }) => param)).to.deep.equal([
      '/steps/3/id',
      '/steps/0/depends_on/0',
      '/steps/1/depends_on',
    ])
    expect(wrong.waves).to.deep.equal([])
    expect((await check({ steps: [{ id: 'a' }] })).problems.map(({ param }) => param)).to.deep.equal([
      '/steps/0/prompt',
    ])
    const right = await check({ steps: [step('a'), step('b', 'a'), step('c')] })
    expect(right).to.deep.equal({ problems: [], waves: [['a', 'c'], ['b']] })
    expect((await call('POST', '/plans/check', [TWO])).status).to.equal(400)
    expect(await idsOf('umbrella')).to.deep.equal(before)
  })
})
