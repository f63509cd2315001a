import { expect } from 'chai'
import { openHttp } from '../../services/gateway/open-http.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { loadConfig } from '../../shared/platform/config/config.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import { groupSettings } from '../../shared/platform/config/groups.ts'
import { MemoryEventLog } from '../../shared/tenancy/events/memory.ts'
import { APP_DEFAULTS, NO_TOOLS } from '../support/app-defaults.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { request, Wire } from './wire.ts'

type Opened = Awaited<ReturnType<typeof openHttp>> & { port: number }

const PAGE = 'https://app.example.com'

describe('the public listener, opened from the configuration', () => {
  const opened: Opened[] = []
  afterEach(() => Promise.all(opened.splice(0).map((http) => http.close(0))))

  async function open(env: Record<string, string>, form: Form = 'standalone'): Promise<Opened> {
    const places = { HOST: '127.0.0.1', PORT: '0', OPS_PORT: '0', REDIS_URL: 'redis://127.0.0.1:1' }
    const config = loadConfig({ ...places, ...env }, form)
    const log = SILENT_LOG
    const absent = {
      store: undefined,
      tenantConfig: undefined,
      queued: undefined,
      link: undefined,
    }
    const parts = {
      broker: {} as Broker,
      events: new MemoryEventLog(),
      startKeys: APP_DEFAULTS.startKeys,
      toolBox: NO_TOOLS,
      isHeapHigh: () => false,
      metrics: NO_METRICS,
      log,
    }
    const http = await openHttp(groupSettings(config).http, { form, ...parts, ...absent })
    opened.push({ ...http, port: Number(new URL(http.url).port) })
    return opened.at(-1) as Opened
  }

  const statusFrom = async ({ url }: Opened, forwarded: string) =>
    (await fetch(`${url}/tools`, { headers: { 'x-forwarded-for': forwarded } })).status

  const statusAt = async ({ port }: Opened, path: string, ...hosts: string[]) => {
    const lines = [`GET ${path} HTTP/1.1`, ...hosts.map((host) => `Host: ${host}`), 'Connection: close', '', '']
    return Number((await (await Wire.open(port)).send(...lines).end).split(' ')[1])
  }

  it('D1.3 TRUST_PROXY=1: two addresses of one IPv6 /64 share a limit, another /64 has its own', async () => {
    const http = await open({ TRUST_PROXY: '1', RATE_LIMIT_RPM: '1' })
    expect(await statusFrom(http, '2001:db8:1:2::1')).to.equal(200)
    expect(await statusFrom(http, '2001:db8:1:2:ffff:ffff:ffff:ffff')).to.equal(429)
    expect(await statusFrom(http, '2001:db8:1:3::1')).to.equal(200)
  })

  it('D1.3 TRUST_PROXY, RATE_LIMIT_RPM: without a trusted proxy all requests of a connection share one limit', async () => {
    const http = await open({ RATE_LIMIT_RPM: '1' })
    expect(await statusFrom(http, '2001:db8:1:2::1')).to.equal(200)
    expect(await statusFrom(http, '2001:db8:1:3::1')).to.equal(429)
  })

  it('D2.10: on a loopback address both forms refuse a foreign Host, and ALLOWED_HOSTS adds names', async () => {
    const http = await open({ ALLOWED_HOSTS: 'my.box' })
    expect(await statusAt(http, '/v1/health', 'evil.example')).to.equal(403)
    expect(await statusAt(http, '/v1/health', 'my.box:8080')).to.equal(200)
    const cluster = await open({}, 'cluster')
    expect(await statusAt(cluster, '/api/v1/health', 'any.example')).to.equal(403)
    expect(await statusAt(cluster, '/api/v1/health', 'localhost')).to.equal(200)
    const limited = await open({ ALLOWED_HOSTS: 'api.example' }, 'cluster')
    expect(await statusAt(limited, '/api/v1/health', 'any.example')).to.equal(403)
  })

  it('api.md Authentication 7: API_TOKEN is required, RATE_LIMIT_RPM=0 sets no limit', async () => {
    const { url } = await open({ API_TOKEN: 'token-1', RATE_LIMIT_RPM: '0' })
    expect((await fetch(`${url}/tools`)).status).to.equal(401)
    const allowed = await fetch(`${url}/tools`, { headers: { authorization: 'Bearer token-1' } })
    expect([allowed.status, allowed.headers.has('ratelimit-limit')]).to.deep.equal([200, false])
  })

  it('D17b: with CORS_RESUME a page of another origin may start a run once, read its id and resume it', async () => {
    const plain = (await fetch(`${(await open({ CORS_ORIGINS: PAGE })).url}/health`)).headers
    expect(plain.get('access-control-allow-headers')).to.equal('Content-Type, Authorization')
    expect(plain.get('access-control-allow-methods')).to.equal('GET, POST, PUT, DELETE, OPTIONS')
    const { headers } = await fetch(`${(await open({ CORS_ORIGINS: PAGE, CORS_RESUME: 'true' })).url}/health`)
    expect(headers.get('access-control-allow-methods')).to.equal('GET, POST, PUT, DELETE, OPTIONS, PATCH')
    for (const name of ['Last-Event-ID', 'Idempotency-Key'])
      expect(headers.get('access-control-allow-headers')).to.include(name)
    for (const name of ['X-Run-ID', 'Retry-After'])
      expect(headers.get('access-control-expose-headers')).to.include(name)
  })

  it('D19: GET /me says what is configured here', async () => {
    const response = await fetch(`${(await open({ PERMISSION_TIMEOUT_SECS: '7' })).url}/me`)
    const body = (await response.json()) as { features: object; version: string }
    expect(body).to.deep.include({
      tenant: 't_default',
      scopes: ['read', 'run', 'approve', 'flows', 'admin'],
      base_path: '/v1',
      rate_limit_rpm: 60,
      permission_timeout_secs: 7,
      limits: null,
    })
    expect(body.features).to.include({ config: false, plans: false })
    expect(body.version).to.match(/^\d+\.\d+\.\d+$/)
  })

  it('after drain each answer closes its connection', async () => {
    const http = await open({})
    http.drain()
    const wire = await Wire.open(http.port)
    expect(await wire.send(request('GET /v1/health HTTP/1.1')).end).to.match(/^HTTP\/1.1 200 [^]*Connection: close/)
  })
})
