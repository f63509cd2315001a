import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'
import { parsePage } from './prometheus-text.ts'

type Line = { msg: string; level: string; run_id?: string; request_id?: string; code?: string; kind?: string }

inBothForms('the lines and counters of what ends', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined

  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      TOOL_PERMISSIONS: '{"Write":"ask"}',
    }),
  )

  const line = async (wanted: Partial<Line>): Promise<Line> => {
    const fits = (each: Line) => Object.entries(wanted).every(([key, value]) => each[key as keyof Line] === value)
    const find = () =>
      product.log
        .filter((each) => each.startsWith('{'))
        .map((each) => JSON.parse(each) as Line)
        .find(fits)
    return until(find, { what: `a line with ${JSON.stringify(wanted)}` })
  }
  /** The sum over all processes. */
  const counted = async (series: string): Promise<number> => {
    const pages = await Promise.all(
      product.opsUrls.map(async (url) => parsePage(await (await fetch(`${url}/metrics`)).text())),
    )
    return pages.map(({ value }) => value(series)).reduce((sum, value) => sum + (Number.isNaN(value) ? 0 : value), 0)
  }
  const ended = (code: string) => counted(`agent_engine_runs_ended_total{code="${code}"}`)

  it('a run that is done: one line at info with its cost, found by the request id; tokens and seconds are counted', async () => {
    product.model.answer('fine')
    const [before, input] = [await ended('ok'), await counted('agent_engine_tokens_total{direction="input"}')]
    const stream = await product.run({ prompt: 'private prompt' }, { 'X-Request-ID': 'req-of-run' })
    const done = (await stream.all()).at(-1)?.data as { total_input_tokens: number; cost_usd: number }
    const { total_input_tokens, cost_usd } = done
    const found = await line({ run_id: stream.runId, msg: 'run ended' })
    expect(found).to.include({
      level: 'info',
      request_id: 'req-of-run',
      subject: 'anonymous',
      tenant: DEFAULT_TENANT,
      kind: 'run',
      code: 'ok',
    })
    expect(found).to.include({ model: 'test-model', turns: 1, input_tokens: total_input_tokens, cost_usd })
    expect(found).to.include.keys('ms', 'first_token_ms')
    expect(await line({ msg: 'request', run_id: stream.runId })).to.include({
      tenant: DEFAULT_TENANT,
      subject: 'anonymous',
    })
    expect(await ended('ok')).to.equal(before + 1)
    expect(await counted('agent_engine_tokens_total{direction="input"}')).to.equal(input + total_input_tokens)
    expect(await counted('agent_engine_run_first_token_seconds_count')).to.be.at.least(1)
    expect(await counted('agent_engine_runs_limit')).to.be.above(0)
    expect(product.log.filter((each) => each.includes('private prompt'))).to.deep.equal([])
  })

  it('a dead key: a line at warn with provider_auth, and the counter; the message of the provider is in no line', async () => {
    const before = await ended('provider_auth')
    product.model.answer({ status: 401, message: 'a secret of the provider' })
    const stream = await product.run({ prompt: 'hi' })
    await stream.all()
    const found = await line({ run_id: stream.runId, code: 'provider_auth' })
    expect(found).to.include({ level: 'warn', msg: 'run ended', turns: 0 })
    expect(await ended('provider_auth')).to.equal(before + 1)
    expect(await counted('agent_engine_provider_requests_total{outcome="failed"}')).to.be.at.least(1)
    expect(product.log.filter((each) => each.includes('a secret of the provider'))).to.deep.equal([])
  })

  it('a decision about a permission: a line with the tool and how, without its input', async () => {
    product.model.answer([{ tool: 'Write', input: { path: 'private.txt', content: 'b' } }], 'ok')
    const stream = await product.run({ prompt: 'hi' })
    const { data } = await stream.until('permission_request')
    await product.call('POST', `/sessions/${stream.runId}/permissions/${String(data['id'])}`, { allow: false })
    await stream.all()
    const found = await line({ msg: 'permission decided', run_id: stream.runId })
    expect(found).to.include({ level: 'info', tool: 'Write', allow: false, how: 'reply', tenant: DEFAULT_TENANT })
    expect(product.log.filter((each) => each.includes('private.txt'))).to.deep.equal([])
  })

  it('a changed configuration: a line with what changed; a flow and the steps of a plan: lines of their own', async () => {
    const { url } = product.model
    await product.call('PUT', '/config/instances/main', { type: 'openai-compatible', url, key: 'sk-0123456789' })
    expect(await line({ msg: 'configuration changed' })).to.deep.include({
      tenant: DEFAULT_TENANT,
      changed: [{ part: 'instance', name: 'main' }],
    })
    product.model.answer({ status: 401, message: 'wrong key' })
    const flow = { provider_instance: 'main', model: 'm', input: { text: 'a' } }
    // Another process may know the instance some moments later (D8.5); until then it refuses the call.
    const hasRun = async () => (await product.call('POST', '/flows/summarize/run', flow)).status === 502
    await until(hasRun, { what: 'the flow to run' })
    expect(await line({ msg: 'flow ended' })).to.include({ level: 'warn', code: 'provider_auth' })
    product.model.answer({ status: 401, message: 'wrong key' })
    const submitted = await product.call('POST', '/plans/submit', { steps: [{ id: 'one', prompt: 'go' }] })
    expect(submitted.status, submitted.text).to.equal(202)
    const { id: plan_id } = submitted.body as { id: string }
    const step = await line({ msg: 'step ended' })
    expect(step).to.include({ level: 'warn', code: 'provider_auth', plan_id, step_id: 'one' })
    expect(await line({ msg: 'plan ended' })).to.include({ level: 'warn', code: 'plan_failed' })
    const { body } = await product.call('GET', `/plans/${plan_id}`)
    expect(body).to.nested.include({ 'step_runs.one.run_id': step.run_id })
  })

  it('an exhausted budget: the refusal is counted by its cause, and its request line has the code', async () => {
    expect((await product.call('PUT', '/config/limits', { tokens_per_day: 1 })).status).to.equal(200)
    const isRefused = async () => (await product.call('POST', '/agent/run', { prompt: 'hi' })).status === 429
    await until(isRefused, { what: 'the budget to be known' })
    const found = await line({ msg: 'request', code: 'budget_exhausted' })
    expect(found).to.include({ status: 429, tenant: DEFAULT_TENANT })
    expect(await counted('agent_engine_refusals_total{cause="budget_exhausted"}')).to.be.at.least(1)
    expect(await counted('agent_engine_http_responses_total{status="429"}')).to.be.at.least(1)
  })
})
