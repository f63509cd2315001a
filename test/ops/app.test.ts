import { expect } from 'chai'
import { Wire } from '../gateway/wire.ts'
import { basic, type TestOps, useOps } from './setup.ts'

type Refusal = { error: { type: string; message: string } }

const TOKEN = 'an-ops-token'

describe('the ops listener', () => {
  const open = useOps()

  const statusAt = async ({ get }: TestOps, path: string, headers: Record<string, string> = {}) =>
    (await get(path, { headers })).status

  it('D1.3 OPS_PORT: /livez is 200 whether the process is ready or not', async () => {
    const ops = await open()
    for (const change of [() => {}, () => ops.ready({ redis: () => false }), () => ops.drain.close()]) {
      change()
      const response = await ops.get('/livez')
      expect([response.status, await response.json()]).to.deep.equal([200, { status: 'ok' }])
    }
  })

  const answerOf = async (ops: TestOps) => {
    const response = await ops.get('/readyz')
    return [response.status, await response.json()]
  }

  it('/readyz is 503 until everything is open, and then names the failing checks', async () => {
    const ops = await open()
    const holds = { redis: true, store: true }
    expect(await answerOf(ops)).to.deep.equal([503, { status: 'unavailable', failing: ['starting'] }])
    ops.ready({ redis: () => holds.redis, store: () => holds.store })
    expect(await answerOf(ops)).to.deep.equal([200, { status: 'ok' }])
    holds.redis = false
    expect(await answerOf(ops)).to.deep.equal([503, { status: 'unavailable', failing: ['redis'] }])
    holds.redis = true
    expect(await answerOf(ops)).to.deep.equal([200, { status: 'ok' }])
  })

  it('/readyz is 503 from the beginning of the drain, whatever the checks say', async () => {
    const ops = await open()
    ops.ready({ redis: () => true })
    await ops.drain.close()
    expect(await answerOf(ops)).to.deep.equal([503, { status: 'unavailable', failing: ['draining'] }])
    ops.ready({})
    expect((await answerOf(ops))[0]).to.equal(503)
  })

  it('/readyz names the failing checks beside the phase, so that a drain does not hide an outage', async () => {
    const ops = await open()
    ops.ready({ redis: () => false, store: () => true })
    await ops.drain.close()
    expect(await answerOf(ops)).to.deep.equal([503, { status: 'unavailable', failing: ['draining', 'redis'] }])
  })

  const passes = [`Bearer ${TOKEN}`, `bearer  ${TOKEN}`, basic(`:${TOKEN}`), basic(`prometheus:${TOKEN}`)]
  for (const authorization of passes) {
    it(`D1.3: OPS_TOKEN opens /metrics as ${authorization}`, async () => {
      const ops = await open({ opsToken: TOKEN })
      expect(await statusAt(ops, '/metrics', { authorization })).to.equal(200)
    })
  }

  it('D1.3 OPS_TOKEN: a password may contain colons', async () => {
    const ops = await open({ opsToken: 'a:b:c' })
    expect(await statusAt(ops, '/metrics', { authorization: basic('x:a:b:c') })).to.equal(200)
  })

  const fails = ['', 'Bearer', `Bearer ${TOKEN}x`, TOKEN, basic(TOKEN), basic(`${TOKEN}:`), 'Basic ###', 'Basic']
  for (const authorization of fails) {
    it(`D1.3: with OPS_TOKEN set, ${JSON.stringify(authorization)} is 401 before 404`, async () => {
      const ops = await open({ opsToken: TOKEN })
      for (const path of ['/metrics', '/queues', '/queues/api', '/no-such-path']) {
        const response = await ops.get(path, { headers: { authorization } })
        expect(response.status, path).to.equal(401)
        expect(response.headers.get('www-authenticate')).to.match(/^Bearer .*, Basic /)
        expect(((await response.json()) as Refusal).error.type).to.equal('authentication_error')
      }
    })
  }

  it('D1.3 OPS_TOKEN: the probes require no token', async () => {
    const ops = await open({ opsToken: TOKEN })
    ops.ready({})
    expect(await statusAt(ops, '/livez')).to.equal(200)
    expect(await statusAt(ops, '/readyz')).to.equal(200)
  })

  it('D2.2: an unknown path is 404 and a wrong method is 405 with Allow, both in the envelope', async () => {
    const ops = await open()
    const missing = await ops.get('/v1/health')
    expect(missing.status).to.equal(404)
    expect(((await missing.json()) as Refusal).error.type).to.equal('not_found_error')
    for (const path of ['/livez', '/readyz', '/metrics']) {
      for (const method of ['POST', 'DELETE', 'OPTIONS']) {
        const refused = await ops.get(path, { method })
        expect([refused.status, refused.headers.get('allow')], `${method} ${path}`).to.deep.equal([405, 'GET, HEAD'])
        expect(((await refused.json()) as Refusal).error.type).to.equal('invalid_request_error')
      }
      expect((await ops.get(path, { method: 'HEAD' })).status).to.be.oneOf([200, 503])
    }
  })

  it('D2.5: every response has an X-Request-ID, the client’s own when it is valid', async () => {
    const ops = await open({ opsToken: TOKEN })
    for (const path of ['/livez', '/readyz', '/metrics', '/queues']) {
      const own = await ops.get(path, { headers: { 'x-request-id': 'probe-1' } })
      expect(own.headers.get('x-request-id')).to.equal('probe-1')
      expect((await ops.get(path)).headers.get('x-request-id')).to.match(/^req_[0-9a-f]{32}$/)
    }
  })

  it('every response has a policy for browsers, which allows nothing inline', async () => {
    const ops = await open()
    for (const path of ['/livez', '/readyz', '/metrics', '/members', '/tenants', '/no-such-path', '/%E0%A4%A'])
      for (const accept of ['application/json', 'text/html']) {
        const policy = (await ops.get(path, { headers: { accept } })).headers.get('content-security-policy')
        expect(policy, path)
          .to.include("default-src 'none'")
          .and.include("frame-ancestors 'none'")
          .and.not.include('unsafe')
      }
  })

  it('a request that is not HTTP is answered in the envelope too', async () => {
    const { port } = new URL((await open()).url)
    const text = await (await Wire.open(Number(port))).send('GARBAGE', '', '').end
    expect(text).to.match(/^HTTP\/1.1 400 [^]*X-Request-ID: req_[^]*"type":"invalid_request_error"/)
  })

  const answersTo = async (ops: TestOps, ...head: string[]) =>
    (await Wire.open(Number(new URL(ops.url).port))).send(...head, 'Connection: close', '', '').end

  const FOREIGN: [of: string, head: string[]][] = [
    ['of a foreign name', ['GET PATH HTTP/1.1', 'Host: rebound.example']],
    ["of a pod's address", ['GET PATH HTTP/1.1', 'Host: 10.1.2.3:9090']],
    ['of two names', ['GET PATH HTTP/1.1', 'Host: a.example', 'Host: b.example']],
    ['without Host', ['GET PATH HTTP/1.1']],
    ['of HTTP/1.0 without Host, as from HAProxy', ['GET PATH HTTP/1.0']],
  ]
  for (const [of, head] of FOREIGN) {
    const at = (path: string) => head.map((line) => line.replace('PATH', path))

    it(`D2.10: a request ${of} reaches the probes and nothing else, in both forms, with ALLOWED_HOSTS and without`, async () => {
      for (const form of ['standalone', 'cluster'] as const)
        for (const allowedHosts of [[], ['api.example']]) {
          const ops = await open({ allowedHosts }, form)
          ops.ready({})
          const what = `${form} ${allowedHosts}`
          expect(await answersTo(ops, ...at('/livez')), what).to.match(/^HTTP\/1.1 200 /)
          expect(await answersTo(ops, ...at('/readyz')), what).to.match(/^HTTP\/1.1 200 /)
          expect(await answersTo(ops, ...at('/metrics')), what).to.match(/^HTTP\/1.1 40[03] /)
        }
    })
  }

  it('D2.10: ALLOWED_HOSTS of the standalone form protects /metrics on any address, and allows the loopback names', async () => {
    const ops = await open({ host: '0.0.0.0', allowedHosts: ['api.example'] }, 'standalone')
    const statusFor = async (host: string) =>
      Number((await answersTo(ops, 'GET /metrics HTTP/1.1', `Host: ${host}`)).split(' ')[1])
    for (const host of ['api.example', 'localhost', '127.0.0.1:9090', '[::1]'])
      expect(await statusFor(host)).to.equal(200)
    expect(await statusFor('rebound.example')).to.equal(403)
  })

  it('the error for an OPS_PORT in use names the variable and says what to do', async () => {
    const { port } = new URL((await open()).url)
    const failure = await open({ opsPort: Number(port) }).catch(String)
    expect(failure).to.include(`127.0.0.1:${port} is in use`).and.include('OPS_PORT')
  })
})
