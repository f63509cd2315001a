import { expect } from 'chai'
import type { ConfigSurface } from '../../../services/gateway/routes/config/enabled.ts'
import { notFound } from '../../../shared/kernel/errors.ts'
import { tenantId } from '../../support/tenant.ts'
import { type Gateway, refusalOf, useGateways } from '../setup.ts'

const acme = tenantId('acme')
const ENGINE = { routing: {}, audit: { store_payloads: true, retention_days: 30 }, instances: [], secrets: [] }
const LIMITS = { concurrent_runs: 3 }

describe('the routes of the runtime configuration', () => {
  const start = useGateways()
  const calls: unknown[][] = []
  beforeEach(() => void calls.splice(0))

  /** Notes each call with its tenant, and answers with `value`. */
  const noting =
    <T>(name: string, value: T) =>
    async (...args: unknown[]) => {
      calls.push([name, ...args])
      return value
    }
  const config = {
    settings: {
      engine: noting('engine', ENGINE),
      putEngine: noting('putEngine', ENGINE),
      secrets: noting(
        'secrets',
        ['a', 'b', 'c'].map((name) => ({ name, key: 'sk-a…' })),
      ),
      putSecret: noting('putSecret', { name: 'team', key: 'sk-a…' }),
      deleteSecret: noting('deleteSecret', undefined),
      instance: () => Promise.reject(notFound('no such instance')),
      putInstance: noting('putInstance', { name: 'main' }),
      deleteInstance: noting('deleteInstance', undefined),
    },
    limits: { settings: { get: noting('limits', LIMITS) } },
    inspector: { probe: noting('probe', { model: 'm' }) },
    providers: () => [{ type: 'demo' }],
  } as unknown as ConfigSurface
  const open = (surface: ConfigSurface | undefined = config) =>
    start({ config: surface, identify: async () => ({ tenant: acme, subject: 'ada' }) })
  const send = ({ url }: Gateway, method: string, path: string, body?: object) =>
    fetch(url + path, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })

  it('D8: each path is 503 where configuration is disabled', async () => {
    const { get } = await start({ config: undefined })
    for (const path of ['engine', 'providers', 'changes', 'secrets', 'instances/main', 'webhooks', 'limits']) {
      const response = await get(`/config/${path}`)
      expect([response.status, (await refusalOf(response)).code], path).to.deep.equal([503, 'config_disabled'])
    }
  })

  it("D8.1: the engine's configuration is the tenant's own, and has its limits", async () => {
    const gateway = await open()
    expect(await (await gateway.get('/config/engine')).json()).to.deep.equal({ ...ENGINE, limits: LIMITS })
    const put = await send(gateway, 'PUT', '/config/engine', { audit: ENGINE.audit })
    expect(await put.json()).to.deep.equal({ ...ENGINE, limits: LIMITS })
    expect(calls.map(([name, tenant]) => [name, tenant])).to.deep.include.members([
      ['engine', acme],
      ['putEngine', acme],
      ['limits', acme],
    ])
  })

  it('D2.7: the lists are pages by name', async () => {
    const gateway = await open()
    const first = (await (await gateway.get('/config/secrets?limit=2')).json()) as {
      secrets: { name: string }[]
      next_cursor: string
    }
    expect(first.secrets.map(({ name }) => name)).to.deep.equal(['a', 'b'])
    const next = await (await gateway.get(`/config/secrets?limit=2&cursor=${first.next_cursor}`)).json()
    expect(next).to.deep.equal({ secrets: [{ name: 'c', key: 'sk-a…' }], next_cursor: null })
  })

  it('D8.2, D2.11: a name of the wrong form is 400 in a PUT and changes nothing, and 404 elsewhere', async () => {
    const gateway = await open()
    for (const [path, body] of [
      ['/config/secrets/a%20b', { value: 'sk-1' }],
      ['/config/instances/.hidden', { type: 'demo' }],
    ] as const) {
      expect((await send(gateway, 'PUT', path, body)).status, path).to.equal(400)
      expect((await send(gateway, 'DELETE', path)).status, path).to.equal(404)
    }
    expect(calls).to.deep.equal([])
  })

  it('D8.2: a secret and an instance are stored, deleted, and 404 when they are not there', async () => {
    const gateway = await open()
    expect(await (await send(gateway, 'PUT', '/config/secrets/team', { value: 'sk-1' })).json()).to.include({
      key: 'sk-a…',
    })
    expect((await send(gateway, 'PUT', '/config/instances/main', { type: 'demo' })).status).to.equal(200)
    for (const path of ['secrets/team', 'instances/main'])
      expect(await (await send(gateway, 'DELETE', `/config/${path}`)).json()).to.deep.equal({ status: 'deleted' })
    expect((await gateway.get('/config/instances/main')).status).to.equal(404)
    expect(calls.map((call) => call.slice(0, 3))).to.deep.equal([
      ['putSecret', acme, 'team'],
      ['putInstance', acme, 'main'],
      ['deleteSecret', acme, 'team'],
      ['deleteInstance', acme, 'main'],
    ])
  })

  it('D8.4: a probe is ended when its caller leaves', async () => {
    const gateway = await open()
    expect((await gateway.post('/config/instances/main/probe', { model: 'm' })).status).to.equal(200)
    expect(calls[0]?.slice(0, 3)).to.deep.equal(['probe', acme, 'main'])
    expect(calls[0]?.[3]).to.have.property('signal').that.is.instanceOf(AbortSignal)
  })
})
