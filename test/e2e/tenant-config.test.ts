import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import type { JsonObject } from '../../shared/kernel/events.ts'
import { type ModelServer, startModelServer } from '../support/model-server/model-server.ts'
import { useMongo } from '../support/mongo.ts'
import { inBothForms, type Product, useProduct } from '../support/product.ts'
import { until } from '../support/until.ts'

const KEY = 'sk-canary-0123456789'

inBothForms('runtime configuration', (startProduct, form) => {
  const mongo = form === 'cluster' ? useMongo() : undefined
  let own: ModelServer

  const product = useProduct(() =>
    startProduct({
      ...mongo?.env,
      MASTER_KEY: randomBytes(32).toString('base64'),
      ALLOW_PRIVATE_URLS: 'true',
    }),
  )

  beforeEach(async () => {
    own = await startModelServer()
    own.otherwise(() => 'from the tenant')
    product.model.otherwise(() => 'from the server')
  })

  afterEach(async () => {
    await call('PUT', '/config/engine', { routing: {} })
    await own.close()
  })

  const call = (method: string, path: string, body?: unknown) => product.call(method, path, body)

  const putInstance = (name: string, body: object = {}) =>
    call('PUT', `/config/instances/${name}`, { type: 'openai-compatible', url: own.url, key: KEY, ...body })

  const route = (routing: object) => call('PUT', '/config/engine', { routing })

  const textOf = async (body: object = {}) => {
    const stream = await product.run({ prompt: 'hi', ...body })
    const frames = await stream.all()
    const last = frames.at(-1)
    if (last?.event === 'error') return `error ${String(last.data['code'])}`
    return frames.find(({ event }) => event === 'text')?.data['text']
  }

  /** Several runs in turn reach every gateway and every worker. */
  const everywhere = async (text: string) => {
    let texts: unknown[] = []
    await until(
      async () => {
        texts = await Promise.all(Array.from({ length: 6 }, () => textOf()))
        return texts.every((each) => each === text)
      },
      { what: `every run to answer "${text}"`, lastSeen: () => texts },
    )
  }

  it('D8.5: a main route drives the runs of its tenant on every process within two seconds, and so does its end', async () => {
    expect(await textOf()).to.equal('from the server')
    await putInstance('main')
    expect((await route({ main: { instance: 'main', model: 'm-1' } })).status).to.equal(200)
    await everywhere('from the tenant')
    expect(own.requests.at(-1)).to.nested.include({ 'body.model': 'm-1', 'headers.authorization': `Bearer ${KEY}` })
    await route({})
    await everywhere('from the server')
  })

  it('D8.5: a run that is under way calls the new route from its next turn on', async () => {
    const changed = Promise.withResolvers<void>()
    product.model.answer([{ hold: changed.promise }, { tool: 'TodoWrite', input: { todos: [] } }])
    const stream = await product.run({ prompt: 'hi' })
    await stream.until('turn_start')
    await putInstance('main')
    await route({ main: { instance: 'main', model: 'm-1' } })
    await everywhere('from the tenant')
    changed.resolve()
    const frames = await stream.all()
    const models = frames.filter(({ event }) => event === 'turn_start').map(({ data }) => data['model'])
    expect(models).to.deep.equal(['test-model', 'm-1'])
    expect(frames.find(({ event }) => event === 'text')?.data['text']).to.equal('from the tenant')
  })

  it('sessions follow the route too, and a model of the request replaces the route’s', async () => {
    await putInstance('main')
    await route({ main: { instance: 'main', model: 'm-1' } })
    await everywhere('from the tenant')
    const { body } = await call('POST', '/sessions')
    const { session_id } = body as { session_id: string }
    const stream = await product.stream(`/sessions/${session_id}/messages`, { prompt: 'hi', model: 'm-2' })
    await stream.all()
    expect(own.requests.at(-1)).to.have.nested.property('body.model', 'm-2')
  })

  const healthOf = async (name: string) => {
    const { text } = await call('GET', `/config/instances/${name}/capabilities`)
    return (JSON.parse(text) as { room: { health: string }[] }).room[0]?.health
  }

  it('api.md "Role route": the fallback takes the turn of a main provider that fails, which all processes pass over then', async () => {
    const down = await startModelServer()
    await putInstance('down', { url: down.url })
    await putInstance('spare')
    await down.close()
    const main = { instance: 'down', model: 'm-1', fallback_instance: 'spare', fallback_model: 'm-9' }
    await route({ main })
    await everywhere('from the tenant')
    expect(own.requests.at(-1)).to.have.nested.property('body.model', 'm-9')
    const reasons = async () => {
      const runs = Array.from({ length: 6 }, async () => (await product.run({ prompt: 'hi' })).all())
      const warnings = (await Promise.all(runs)).flat().map(({ data }) => data)
      return warnings.flatMap(({ code, detail }) =>
        code === 'provider_failover' ? [(detail as JsonObject)['reason']] : [],
      )
    }
    await until(async () => (await healthOf('down')) === 'unhealthy', { what: 'the room to show it' })
    const skipped = Array.from({ length: 6 }, () => 'provider_skipped')
    await until(async () => isDeepStrictEqual(await reasons(), skipped), { what: 'every process to pass it over' })
    await route({})
    await Promise.all([call('DELETE', '/config/instances/down'), call('DELETE', '/config/instances/spare')])
  })

  it('D56: of two models the cheaper one is called; the other one takes the turn of one that hangs, and both are paid', async () => {
    const late = await startModelServer()
    late.otherwise(() => 'in time')
    const price = (input: number) => ({ prices: { m: { input, output: input } } })
    const main = { instance: 'late', model: 'm', fallback_instance: 'spare', fallback_model: 'm', hedge: true }
    await Promise.all([putInstance('late', { url: late.url, ...price(9) }), putInstance('spare', price(1))])
    await route({ main: { ...main, strategy: 'cheapest' } })
    await everywhere('from the tenant')
    await route({ main })
    await everywhere('in time')
    let frames: Awaited<ReturnType<Awaited<ReturnType<Product['run']>>['all']>> = []
    const isHedged = async () => {
      late.otherwise(() => 'in time')
      await Promise.all(Array.from({ length: 48 }, () => textOf())) // So every worker knows how long its calls take.
      late.otherwise(() => [{ wait: 5_000 }, { text: 'too late' }])
      frames = await (await product.run({ prompt: 'hi' })).all()
      return JSON.stringify(frames).includes('"hedged"')
    }
    await until(isHedged, { what: 'a second request' })
    const texts = frames.filter(({ event }) => event === 'text').map(({ data }) => data['text'])
    expect(texts).to.deep.equal(['from the tenant'])
    await until(() => late.openRequests() === 0, { what: 'the late request to be aborted' })
    const [turn, end] = [frames.find(({ event }) => event === 'turn_end'), frames.at(-1)]
    const more = Number(end?.data['cost_usd']) - Number(turn?.data['cost_usd'])
    expect(more, 'the input of the late one, in dollars').to.be.greaterThan(0)
    expect(Number(end?.data['total_input_tokens'])).to.be.greaterThan(Number(turn?.data['input_tokens']))
    await late.close()
    await route({})
    await Promise.all([call('DELETE', '/config/instances/late'), call('DELETE', '/config/instances/spare')])
  })

  it('a secret that is replaced or deleted counts from then on', async () => {
    await call('PUT', '/config/secrets/team', { value: KEY })
    await putInstance('named', { key: undefined, secret: 'team' })
    await route({ main: { instance: 'named', model: 'm-1' } })
    await everywhere('from the tenant')
    await call('PUT', '/config/secrets/team', { value: 'sk-second-0123456789' })
    await until(
      async () => {
        await Promise.all(Array.from({ length: 4 }, () => textOf()))
        const keys = own.requests.slice(-4).map(({ headers }) => headers['authorization'])
        return keys.every((key) => key === 'Bearer sk-second-0123456789')
      },
      { what: 'every process to use the second key' },
    )
    await call('DELETE', '/config/secrets/team')
    await until(
      async () => {
        const { status } = await call('POST', '/agent/run', { prompt: 'hi' })
        return status === 503
      },
      { what: 'runs without a key to be refused' },
    )
  })

  it('D8.4: discovery and probes are kept with the instance, and not beyond a change of it', async () => {
    own.models = ['m-1', 'm-2']
    await putInstance('asked')
    const discovered = await call('POST', '/config/instances/asked/discover')
    expect(discovered.status).to.equal(200)
    expect(discovered.body).to.have.nested.property('models[1].id', 'm-2')
    const probed = await call('POST', '/config/instances/asked/probe', { model: 'm-1' })
    expect(probed.body).to.have.nested.property('capabilities.streaming', true)
    const kept = await call('GET', '/config/instances/asked/capabilities')
    expect(kept.body).to.deep.include({ discovery: discovered.body, probes: [probed.body] })
    await putInstance('asked', { url: `${own.url}/other` })
    expect((await call('GET', '/config/instances/asked/capabilities')).body).to.deep.include({
      discovery: null,
      probes: [],
    })
    await own.close()
    expect((await call('POST', '/config/instances/asked/discover')).status).to.equal(502)
  })

  it('D28.1: changes are listed, newest first, with who has made which, from what to what, and no key', async () => {
    const since = new Date().toISOString()
    await putInstance('audited')
    await putInstance('audited', { key: 'sk-other-canary-9876' })
    await call('DELETE', '/config/instances/audited')
    await call('PUT', '/config/engine', { routing: {}, audit: { store_payloads: true, retention_days: 7 } })
    const { status, body, text } = await call('GET', '/config/changes?limit=4')
    expect(status, text).to.equal(200)
    type Listed = {
      at: string
      subject: string
      changes: { part: string; name: string | null; from: unknown; to: unknown }[]
    }
    const listed = (body as { changes: Listed[] }).changes
    expect(listed.map(({ subject }) => subject)).to.deep.equal(Array.from({ length: 4 }, () => 'anonymous'))
    for (const { at } of listed) expect(at >= since).to.equal(true)
    const [audit, removed, replaced, added] = listed.map(({ changes: [change] }) => change)
    expect(audit).to.include({ part: 'audit', name: null })
    expect(audit?.to).to.include({ retention_days: 7 })
    expect([added, replaced, removed].map((change) => [change?.part, change?.name])).to.deep.equal(
      Array.from({ length: 3 }, () => ['instance', 'audited']),
    )
    expect([added?.from, removed?.to]).to.deep.equal([null, null])
    expect(added?.to).to.deep.equal(replaced?.from)
    expect(replaced?.to).to.deep.equal(removed?.from).and.not.deep.equal(added?.to)
    for (const secret of [KEY, 'sk-other-canary-9876']) expect(text).to.not.include(secret)
  })

  it('D19.1: GET /me says who asks, and what this server has and allows', async () => {
    const { body } = await call('GET', '/me')
    expect(body).to.deep.include({ tenant: 't_default', subject: 'anonymous', rate_limit_rpm: 0, model: 'test-model' })
    expect(body).to.have.property('base_path', form === 'cluster' ? '/api/v1' : '/v1')
    expect(body).to.have.nested.property('features.config', true)
  })

  it('nothing that was stored is answered in clear', async () => {
    await putInstance('hidden', { options: { headers: { 'x-token': 'canary-header-value' } } })
    await call('PUT', '/config/secrets/hidden', { value: KEY })
    for (const path of ['/engine', '/instances', '/instances/hidden', '/secrets', '/secrets/hidden']) {
      const { status, text } = await call('GET', `/config${path}`)
      expect(status, path).to.equal(200)
      expect(text, path).to.contain('sk-c…')
      expect(text, path).not.to.contain('canary')
    }
    expect(product.log.join('\n')).not.to.contain(KEY)
  })

  it('D2.1: a PUT without a body is 400 and resets nothing, and {} is a body', async () => {
    await call('PUT', '/config/limits', { concurrent_runs: 7 })
    await call('PUT', '/config/engine', { audit: { retention_days: 7 } })
    for (const path of ['/config/limits', '/config/engine']) {
      const { status, body } = await call('PUT', path)
      expect(status, path).to.equal(400)
      expect(body).to.have.nested.property('error.message').that.includes('a PUT needs a body')
    }
    expect((await call('GET', '/config/limits')).body).to.include({ concurrent_runs: 7 })
    expect((await call('GET', '/config/engine')).body).to.have.nested.property('audit.retention_days', 7)
    expect((await call('PUT', '/config/limits', {})).body).to.include({ concurrent_runs: null })
  })
})
