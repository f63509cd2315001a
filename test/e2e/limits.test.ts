import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Estimate } from '../../shared/tenancy/limits/estimate.ts'
import { NO_LIMITS } from '../../shared/tenancy/tenant-config/config.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product } from '../support/product.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { TenantEvents } from '../support/tenant-events.ts'
import { until } from '../support/until.ts'

const JSON_ONLY = { Accept: 'application/json' }

type Refusal = { error: { type: string; code?: string; message: string } }
type Shown = { tokens_per_day: number | null; used: { tokens: number; cost_usd: number; concurrent_runs: number } }

inBothForms("a tenant's limits", (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let product: Product

  const dir = useTempFolder()
  /** What the operator allows: read again by every process within seconds. */
  const setCeilings = (ceilings: object) => writeFile(join(dir.path, 'limits.json'), JSON.stringify(ceilings))

  before(async () => {
    await setCeilings({})
    product = await startProduct({
      TENANT_LIMITS: join(dir.path, 'limits.json'),
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
      TOOL_PERMISSIONS: '{"Write":"allow"}',
    })
    product.model.otherwise(() => 'fine')
  })

  afterEach(async () => {
    await setCeilings({})
    await put({})
    await until(async () => (await refusalOf({ prompt: 'hi' })) === undefined, {
      what: 'the limits to be lifted',
    })
  })

  after(() => product.close())

  const call = (method: string, path: string, body?: unknown) => product.call(method, path, body)
  const put = async (limits: object) => {
    const { status, text } = await call('PUT', '/config/limits', limits)
    expect(status, text).to.equal(200)
    return JSON.parse(text) as Shown
  }
  /** The answer of the gateway that knows most: each reads what the others have counted once a second. */
  const shown = async () => {
    const read = async () => JSON.parse((await call('GET', '/config/limits')).text) as Shown
    const all = await Promise.all(Array.from({ length: 4 }, read))
    return all.reduce((most, each) => (each.used.tokens > most.used.tokens ? each : most))
  }

  /** The refusal of a run, or `undefined` when it was run to its end. */
  async function refusalOf(
    body: object,
  ): Promise<(Refusal['error'] & { status: number; retryAfter: string | null }) | undefined> {
    const { status, text, headers } = await call('POST', '/agent/run', body)
    if (status === 200) return undefined
    return { ...(JSON.parse(text) as Refusal).error, status, retryAfter: headers.get('retry-after') }
  }

  /** Waits until every process has reported what it has spent: at least so much more than `used`. */
  const counted = (used: Shown['used'], tokens: number) =>
    until(async () => (await shown()).used.tokens >= used.tokens + tokens, {
      what: 'the tokens to be counted',
    })

  const refusedEverywhere = (what: string) =>
    until(
      async () => {
        const answers = await Promise.all(Array.from({ length: 6 }, () => refusalOf({ prompt: 'hi' })))
        return answers.every((answer) => answer !== undefined)
      },
      { what },
    )

  /** Raises the budget from one that is used up, and resolves when every process has noticed. */
  async function raiseBudget(tokens: number): Promise<void> {
    await put({ tokens_per_day: 1 })
    await refusedEverywhere('every run to be refused')
    await put({ tokens_per_day: tokens })
    const areAccepted = async () => {
      const answers = await Promise.all(Array.from({ length: 6 }, () => refusalOf({ prompt: 'hi' })))
      return answers.every((answer) => answer === undefined)
    }
    await until(areAccepted, { what: 'every run to be accepted' })
  }

  it('D52: calls above the limits of an instance wait for their turns at all processes, as its room shows, and one that is cancelled leaves its place', async () => {
    const putInstance = (limits: unknown) =>
      call('PUT', '/config/instances/own', { type: 'openai-compatible', url: product.model.url, limits })
    expect((await putInstance({ concurrent: 0 })).status).to.equal(400)
    expect((await putInstance({ concurrent: 1 })).status).to.equal(200)
    await call('PUT', '/config/engine', { routing: { main: { instance: 'own', model: 'm' } } })
    const room = async () => {
      const { text } = await call('GET', '/config/instances/own/capabilities')
      return (JSON.parse(text) as { room: Record<'at_work' | 'waiting', number>[] }).room[0]
    }
    const start = async (prompt: string, priority?: string) => {
      const { text } = await call('POST', '/agent/run', { prompt, priority, background: true })
      return (JSON.parse(text) as { run_id: string }).run_id
    }
    product.model.otherwise(({ prompt }) => (prompt.includes('hold') ? [{ hang: true }] : 'fine'))
    const held = await start('hold')
    await until(async () => (await room())?.at_work === 1, { what: 'the first call to be at work' })
    const [left, batch] = [await start('hold', 'interactive'), await start('go', 'batch')]
    await until(async () => (await room())?.waiting === 2, { what: 'two calls to wait' })
    await call('DELETE', `/runs/${left}`)
    await call('DELETE', `/runs/${held}`)
    const ended = async () => (JSON.parse((await call('GET', `/runs/${batch}`)).text) as { status: string }).status
    await until(async () => (await ended()) === 'done', { what: 'the last run to have its turn' })
    product.model.otherwise(() => 'fine')
    await putInstance(null)
    await call('PUT', '/config/engine', { routing: {} })
  })

  it('a model without a price is named when a budget in dollars is set; with a price of its instance it is counted', async () => {
    const warningsOf = (answer: unknown) => (answer as { warnings?: { message: string }[] }).warnings ?? []
    const putInstance = (body: object) =>
      call('PUT', '/config/instances/own', { type: 'openai-compatible', url: product.model.url, ...body })
    const price = { input: 1_000, output: 1_000 }
    await putInstance({})
    await call('PUT', '/config/engine', { routing: { main: { instance: 'own', model: 'gpt-4.1.nobody' } } })
    expect(warningsOf(await put({}))).to.deep.equal([])
    const [warning, ...more] = warningsOf(await put({ usd_per_day: 1_000 }))
    expect(more).to.deep.equal([])
    expect(warning).to.include({ code: 'price_unknown', param: '/usd_per_day' })
    expect(warning?.message).to.include('gpt-4.1.nobody').and.include('PUT /config/instances/own')
    const runs = [1, 2].map(async () => (await product.run({ prompt: 'hi' })).all())
    await Promise.all(runs)
    const logged = product.log.filter((line) => line.includes('price of a model') && line.includes('gpt-4.1.nobody'))
    expect(logged).to.have.length.within(form === 'standalone' ? 1 : 0, product.workerCount)
    for (const wrong of [{ input: -1, output: 1 }, { input: 1 }, { input: '1', output: 1 }, { ...price, cached: 1 }])
      expect((await putInstance({ prices: { m: wrong } })).status, JSON.stringify(wrong)).to.equal(400)
    const { body } = await putInstance({ prices: { 'gpt-4.1.nobody': price } })
    expect(body).to.have.deep.property('prices', { 'gpt-4.1.nobody': price })
    expect(warningsOf(await put({ usd_per_day: 1_000 }))).to.deep.equal([])
    const before = (await shown()).used.cost_usd
    const costOfRun = async () => {
      const frames = await (await product.run({ prompt: 'hi' })).all()
      return Number(frames.at(-1)?.data['cost_usd'])
    }
    await until(async () => (await costOfRun()) > 0, { what: 'a run to cost what the instance says' })
    await until(async () => (await shown()).used.cost_usd > before, {
      what: 'the dollars to be counted',
    })
    expect(warningsOf(await put({}))).to.deep.equal([])
    await call('PUT', '/config/engine', { routing: {} })
  })

  it('D11.2: a run is refused with budget_exhausted when the tokens of the day are used up, and until when is said', async () => {
    await refusalOf({ prompt: 'hi' })
    await until(async () => (await shown()).used.tokens > 0, { what: 'the tokens to be counted' })
    await put({ tokens_per_day: 1 })
    await refusedEverywhere('every run to be refused')
    const refusal = await refusalOf({ prompt: 'hi' })
    expect(refusal).to.include({ status: 429, type: 'rate_limit_error', code: 'budget_exhausted' })
    expect(Number(refusal?.retryAfter)).to.be.within(1, 86_400)
    expect(refusal?.message).to.match(/^the budget of 1 tokens a day is used up; it begins anew at .*T00:00:00.000Z$/)
  })

  it('D11.2: a run that goes on ends before its next model call, with the tools of the turn before made', async () => {
    const { used } = await shown()
    const secret = `whsec_${randomBytes(32).toString('base64')}`
    const hook = { url: 'http://127.0.0.1:9/', events: ['budget.threshold'], secret }
    expect((await call('PUT', '/config/webhooks/budgets', hook)).status).to.equal(200)
    await raiseBudget(used.tokens + 100_000)
    const events = await TenantEvents.open(product.url, '?types=budget.threshold')
    const answer = { steps: [{ tool: 'TodoWrite', input: { todos: [] } }], usage: { input: 2_000_000, output: 1 } }
    product.model.answer(answer)
    const before = product.model.requests.length
    const frames = await (await product.run({ prompt: 'hi' })).all()
    expect(frames.at(-1)?.data).to.include({ code: 'budget_exhausted', retryable: false })
    expect(frames.at(-1)?.data['retry_after_secs'], 'until the budget begins anew').to.be.within(1, 86_400)
    expect(frames.some(({ event }) => event === 'tool_result')).to.equal(true)
    expect(product.model.requests.length - before).to.equal(1)
    await counted(used, 2_000_001)
    const { data } = await events.until('budget.threshold', { budget: 'tokens_per_day', percent: 100 })
    expect(data['resets_at'], 'D53.1').to.match(/T00:00:00.000Z$/)
    const deliveries = await call('GET', '/config/webhooks/budgets/deliveries')
    expect(deliveries.text).to.include('"percent":100')
    await call('DELETE', '/config/webhooks/budgets')
    events.leave()
    const percents = events.seen.map((each) => each.data['percent'])
    expect(percents, 'once by all processes').to.deep.equal([...new Set(percents)])
  })

  it('dollars count by the price of the model, and the engine configuration shows limits and use', async () => {
    const { used } = await shown()
    await put({ usd_per_day: used.cost_usd + 0.9 })
    product.model.answer({ steps: [{ text: 'dear' }], usage: { input: 1_000_000, output: 0 } })
    await refusalOf({ prompt: 'hi' })
    await refusedEverywhere('every run to be refused')
    const engine = async () => ((await call('GET', '/config/engine')).body as { limits: Shown }).limits
    expect(await engine()).to.have.property('usd_per_day', used.cost_usd + 0.9)
    const isCounted = async () => (await engine()).used.cost_usd > used.cost_usd + 0.99
    await until(isCounted, { what: 'the dollars to be counted' })
  })

  it('D11.2: a probe is counted and refused, too, and a transcription is refused', async () => {
    const { used } = await shown()
    await raiseBudget(used.tokens + 10_000_000)
    await call('PUT', '/config/instances/main', { type: 'openai-compatible', url: product.model.url })
    const probe = () => call('POST', '/config/instances/main/probe', { model: 'm' })
    /** Requests go to the gateways in turn, so that two reach each of them. */
    const answeredBoth = (wanted: number) =>
      until(async () => (await Promise.all([probe(), probe()])).every(({ status }) => status === wanted), {
        what: `both gateways to answer a probe with ${wanted}`,
      })
    await answeredBoth(200)
    await until(async () => (await shown()).used.tokens > used.tokens, { what: 'the probe to be counted' })
    await put({ tokens_per_day: 1 })
    await answeredBoth(429)
    const before = product.model.requests.length
    const transcribe = () => call('POST', '/audio/transcriptions', new FormData())
    for (const { status, headers, body } of [await probe(), await transcribe()]) {
      expect([status, Number(headers.get('retry-after')) > 0]).to.deep.equal([429, true])
      expect(body).to.have.nested.property('error.code', 'budget_exhausted')
    }
    expect(product.model.requests.length).to.equal(before)
    await put({ tokens_per_day: (await shown()).used.tokens + 100_000 })
    await answeredBoth(200)
    const asked = product.model.requests.length
    product.model.answer({ steps: [{ text: 'ok' }], usage: { input: 5_000_000, output: 1 } })
    const refused = await probe()
    expect(refused.body, 'the first call uses the budget up').to.have.nested.property('error.code', 'budget_exhausted')
    expect(product.model.requests.length).to.equal(asked + 1)
  })

  it('D11.2: flows and plans are counted and refused, too', async () => {
    const url = product.model.url
    await call('PUT', '/config/instances/main', { type: 'openai-compatible', url, key: 'sk-0123456789' })
    const flow = () =>
      call('POST', '/flows/summarize/run', { provider_instance: 'main', model: 'm', input: { text: 'a long text' } })
    const before = (await shown()).used.tokens
    await flow()
    await until(async () => (await shown()).used.tokens > before, { what: 'the flow to be counted' })
    await put({ tokens_per_day: 1 })
    await refusedEverywhere('every run to be refused')
    const refused = await flow()
    expect(refused.text).to.include('budget_exhausted')
    expect(refused.status).to.equal(429)
    await raiseBudget((await shown()).used.tokens + 100_000)
    product.model.answer({ steps: [{ text: 'no JSON' }], usage: { input: 5_000_000, output: 1 } })
    const cut = await flow()
    expect([cut.status, cut.text.includes('budget_exhausted')], cut.text).to.deep.equal([429, true])
    expect(Number(cut.headers.get('retry-after')), 'until the budget begins anew').to.be.within(6, 86_400)
    await refusedEverywhere('every run to be refused again')
    const { text } = await call('POST', '/plans/submit', { steps: [{ id: 'a', prompt: 'hello' }] })
    const { id } = JSON.parse(text) as { id: string }
    const ended = await (await product.stream(`/plans/${id}/events`)).all()
    expect(ended.at(-1)?.data['status']).to.equal('failed')
    expect(String(ended.at(-1)?.data['error'])).to.include('the budget of')
  })

  it('D11.2, D54: no more runs go on at a time than the limit, over all processes; a start that waits says its place, and begins when a run has ended', async () => {
    await put({ concurrent_runs: 2 })
    const hold = Promise.withResolvers<void>()
    product.model.otherwise(async () => {
      await hold.promise
      return 'late'
    })
    let refusal: Awaited<ReturnType<typeof refusalOf>>
    // A run that is started reaches the model; the next one is then asked for. A process may not know the limit yet.
    await until(
      async () => {
        const atWork = product.model.openRequests()
        void refusalOf({ prompt: 'hi' }).then((answer) => (refusal ??= answer))
        const isDecided = () => refusal !== undefined || product.model.openRequests() > atWork
        await until(isDecided, { what: 'a run to be refused, or to reach the model' })
        return refusal !== undefined
      },
      { what: 'a run to be refused' },
    )
    expect(refusal).to.include({ status: 429, type: 'rate_limit_error' })
    expect(Number(refusal?.retryAfter)).to.be.within(1, 3_600)
    expect((await shown()).used.concurrent_runs).to.equal(2)
    const heard: string[] = []
    product.model.otherwise(({ prompt }) => {
      heard.push(prompt)
      return 'fine'
    })
    const startWaiting = async (prompt: string) => {
      const body = { prompt, wait_secs: 60, priority: 'batch', background: true }
      return (JSON.parse((await call('POST', '/agent/run', body)).text) as { run_id: string }).run_id
    }
    const read = async (id: string) =>
      JSON.parse((await call('GET', `/runs/${id}`)).text) as { status: string; place?: number }
    const stands = (id: string, place: number) =>
      until(async () => (await read(id)).place === place, { what: `${id} to be at place ${place}` })
    const [batch, cancelled] = [await startWaiting('batch'), await startWaiting('cancelled')]
    await stands(cancelled, 2)
    const stream = await product.run({ prompt: 'first', wait_secs: 60 })
    expect(await stream.next())
      .to.deep.include({ id: 0, event: 'waiting' })
      .and.have.nested.property('data.place', 1)
    await stands(cancelled, 3)
    await call('DELETE', `/runs/${cancelled}`)
    await stands(batch, 2)
    const sendLate = () =>
      product.call('POST', '/agent/run', { prompt: 'late', wait_secs: 1 }, { ...JSON_ONLY, 'Idempotency-Key': 'late' })
    const late = await sendLate()
    expect([late.status, (JSON.parse(late.text) as Refusal).error.code]).to.deep.equal([429, 'no_room'])
    expect(Number(late.headers.get('retry-after'))).to.be.at.least(1)
    hold.resolve()
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    await until(async () => (await read(batch)).status === 'done', { what: 'the batch to end' })
    expect(heard).to.have.members(['first', 'batch'])
    expect((await sendLate()).status, 'its key is free').to.equal(200)
    product.model.otherwise(() => 'fine')
    await until(async () => (await shown()).used.concurrent_runs === 0, {
      what: 'the places to be free',
    })
  })

  it("D11.3: the operator's ceiling holds whatever the tenant sets, for one that is stored already too, and may be read and not passed", async () => {
    const ceiling = { ...NO_LIMITS, tokens_per_day: 1 }
    await put({ tokens_per_day: 1_000_000_000 })
    expect(await refusalOf({ prompt: 'hi' })).to.equal(undefined)
    await setCeilings({ '*': { tokens_per_day: 5 }, t_default: { tokens_per_day: 1 } })
    await refusedEverywhere('every run to be refused by the ceiling')
    /** Requests go to the gateways in turn, so that two reach each of them. */
    const shownByBoth = async (tokens: number | null) => {
      const areShown = async () => {
        const answers = await Promise.all([call('GET', '/config/limits'), call('GET', '/config/limits')])
        return answers.every(({ body }) => (body as Shown).tokens_per_day === tokens) && answers
      }
      return until(areShown, { what: `both gateways to show ${tokens} tokens` })
    }
    const [seen] = await shownByBoth(1)
    expect(seen?.body).to.deep.include({ ceiling })
    const { status, body } = await call('PUT', '/config/limits', { tokens_per_day: 2 })
    expect(status).to.equal(400)
    expect(body).to.have.nested.property('error.param', '/tokens_per_day')
    expect(body).to.have.nested.property('error.message').that.includes('at most 1')
    expect(await put({})).to.include({ tokens_per_day: 1 })
    await refusedEverywhere('every run to be refused without a limit of its own')
    await setCeilings({})
    await shownByBoth(null)
  })

  it('D11.1, D11.2: requests above the limit of the tenant are refused, but for those that change the limit', async () => {
    await put({ requests_per_minute: 3 })
    let refused: Awaited<ReturnType<typeof call>> | undefined
    const remaining = new Set<string | null>()
    await until(
      async () => {
        refused = await call('GET', '/tools')
        remaining.add(refused.headers.get('ratelimit-remaining'))
        return refused.status === 429
      },
      { what: 'a request to be refused' },
    )
    expect([...remaining].slice(-3), 'D2.9: every limited answer says what is left').to.deep.equal(['2', '1', '0'])
    expect(refused?.headers.get('ratelimit-limit')).to.equal('3')
    expect(refused?.body).to.have.nested.property('error.message').that.includes('of this tenant')
    expect((await call('GET', '/health')).status).to.equal(200)
    expect((await shown()).tokens_per_day).to.equal(null)
  })

  it('D11.2: a start above the budget of its customer is 429 with the code of budgets, whether it is in tokens or in dollars, and others go on', async () => {
    await product.call('PUT', '/config/engine', { routing: {} })
    const spent = { steps: [{ text: 'dear' }], usage: { input: 1_000_000, output: 1 } }
    for (const [customer, limit] of [
      ['c-tokens', { tokens_per_day: 1_000 }],
      ['c-dollars', { usd_per_month: 0.5 }],
    ] as const) {
      await put({ customers: { overrides: { [customer]: limit } } })
      const start = (more: object = {}) => call('POST', '/agent/run', { prompt: 'hi', customer_id: customer, ...more })
      product.model.answer(spent)
      expect((await start()).status, 'the call that reaches the budget').to.equal(200)
      const areRefused = async () =>
        (await Promise.all(Array.from({ length: 6 }, () => start()))).every(({ status }) => status === 429)
      await until(areRefused, { what: 'every process to refuse the customer' })
      const asked = product.model.requests.length
      for (const way of [{}, { background: true }]) {
        const { status, body, headers } = await start(way)
        expect(status).to.equal(429)
        expect(body).to.have.nested.property('error.code', 'budget_exhausted')
        expect(body).to.have.nested.property('error.message').that.includes(`of the customer ${customer} is used up`)
        expect(Number(headers.get('retry-after'))).to.be.above(0)
      }
      const dry = await call('POST', '/agent/run?dry_run=true', { prompt: 'hi', customer_id: customer })
      expect(dry.body, 'D57').to.include({ budget: 'used_up' })
      expect(product.model.requests.length).to.equal(asked)
      expect(await refusalOf({ prompt: 'hi', customer_id: 'c-other' })).to.equal(undefined)
    }
  })

  it('D57: a dry run of a run, a flow and a plan says what would be called, and nothing is called or stored', async () => {
    const options = { max_output_tokens: 500 }
    const own = {
      type: 'openai-compatible',
      url: product.model.url,
      options,
      prices: { m: { input: 1_000, output: 2_000 } },
    }
    expect((await call('PUT', '/config/instances/own', own)).status).to.equal(200)
    await call('PUT', '/config/engine', { routing: { main: { instance: 'own', model: 'm' } } })
    const dry = async (path: string, body: object) => {
      const { status, text, body: answer } = await call('POST', `${path}?dry_run=true`, body)
      expect(status, text).to.equal(200)
      return answer as Estimate
    }
    const run = { prompt: 'hello', max_output_tokens: 100 }
    const areRouted = async () => {
      const all = await Promise.all(Array.from({ length: 6 }, () => dry('/agent/run', run)))
      return all.every(({ calls: [first] }) => first?.instance === 'own' && first.cost_usd_from)
    }
    await until(areRouted, { what: 'every process to know the route' })
    const lists = async () => {
      const paths = ['/runs', '/plans', '/dispatches', '/files']
      const texts = await Promise.all(paths.map(async (path) => (await call('GET', path)).text))
      // A run that has ended just now may still change its place in the list.
      return texts.map((text) => text.match(/"(?:run|plan|trace|file)_[0-9a-f]+"/g)?.toSorted())
    }
    const [before, asked] = [await lists(), product.model.requests.length]

    const flow = { provider_instance: 'own', model: 'm', input: { text: 'a long text' } }
    const steps = [
      { id: 'a', prompt: 'hello' },
      { id: 'b', prompt: 'hello', depends_on: ['a'] },
    ]
    const attachments = [{ data: Buffer.from('%PDF-1.7').toString('base64'), name: 'a.pdf' }]
    const estimates = [
      await dry('/agent/run', { ...run, attachments }),
      await dry('/flows/summarize/run', flow),
      await dry('/plans/submit', { steps }),
    ]
    const named = estimates.map(({ calls }) =>
      calls.map(({ name, instance, model, max_output_tokens: most }) => [name, instance, model, most]),
    )
    expect(named).to.deep.equal([
      [['main', 'own', 'm', 100]],
      [['main', 'own', 'm', 500]],
      [
        ['a', 'own', 'm', 500],
        ['b', 'own', 'm', 500],
      ],
    ])
    for (const { calls, input_tokens: tokens, budget, ...sum } of estimates) {
      expect([budget, tokens > 50]).to.deep.equal(['enough', true])
      expect(sum.cost_usd_from).to.be.closeTo(tokens / 1_000, 1e-9)
      const most = calls.reduce((all, { max_output_tokens: each }) => all + (each ?? Number.NaN), 0)
      expect(sum.cost_usd_to).to.be.closeTo((tokens + 2 * most) / 1_000, 1e-9)
    }
    expect(await lists()).to.deep.equal(before)
    expect(product.model.requests.length).to.equal(asked)
    for (const [path, wrong] of [
      ['/agent/run', { prompt: 'hi', tool_choice: { name: 'Nothing' } }],
      ['/agent/run', { prompt: 'hi', attachments: [{ file_id: `file_${'0'.repeat(32)}` }] }],
      ['/agent/run', { prompt: 'hi', attachments: [{ data: 'UEsDBA==', name: 'a.png' }] }],
      ['/flows/summarize/run', { ...flow, input: {} }],
      ['/flows/summarize/run', { ...flow, provider_instance: 'nobody' }],
      ['/plans/submit', { steps: [{ id: 'a', prompt: 'hello', depends_on: ['a'] }] }],
    ] as const) {
      const [refused, started] = [await call('POST', `${path}?dry_run=true`, wrong), await call('POST', path, wrong)]
      expect([refused.status, refused.body], path).to.deep.equal([started.status, started.body])
      expect(refused.status).to.be.within(400, 404)
    }
    for (const path of [
      '/agent/run?dry_run=perhaps',
      '/sessions/s/messages?dry_run=true',
      '/flows/summarize/batch?dry_run=true',
    ])
      expect((await call('POST', path, run)).body, path).to.have.nested.property('error.param', '/dry_run')
    await call('PUT', '/config/engine', { routing: {} })
  })
})
