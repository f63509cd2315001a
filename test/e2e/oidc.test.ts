import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { AUDIENCE, Issuer } from '../support/issuer/issuer.ts'
import { compact, newSigner, type Signer, signatureOf } from '../support/issuer/signer.ts'
import { inBothForms, inStandaloneForm, type Product, type Reply, type StartProduct } from '../support/product.ts'
import { TenantEvents } from '../support/tenant-events.ts'
import { until } from '../support/until.ts'

const WRITE = { tool: 'Write', input: { path: 'a.txt', content: 'hello' } }

/** The issuer and the product of one describe block. The tenant of a token is the client that it was issued to. */
function useOidc(startProduct: StartProduct, mode: string) {
  const world = {} as { issuer: Issuer; product: Product; signer: Signer }
  before(async () => {
    world.signer = await newSigner('RS256', 'r1')
    world.issuer = await Issuer.start([world.signer])
    const env = {
      OIDC_ISSUER: world.issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_MODE: mode,
      ADMIN_SCOPE: 'admin',
      SCOPE_CLAIM: 'ae_scopes',
    }
    world.product = await startProduct(env)
  })
  after(async () => {
    await world.product.close()
    await world.issuer.close()
  })
  const as = async (client: string) => ({ authorization: `Bearer ${await world.issuer.token(client)}` })
  return { world, as }
}

inBothForms('OIDC, legacy mode', (startProduct, form) => {
  const { world, as } = useOidc(startProduct, '')
  const call = (...args: Parameters<Product['call']>) => world.product.call(...args)

  function forge(changes: object, { privateKey }: Signer): string {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: world.issuer.url, aud: AUDIENCE, exp: now + 600, tenant_id: 'acme', sub: 'acme' }
    return compact(
      { alg: 'RS256', kid: 'r1', typ: 'at+jwt' },
      { ...claims, ...changes },
      signatureOf('RS256', privateKey),
    )
  }

  it('api.md Authentication 6: with an issuer a request without a token is 401, and asks for a bearer token', async () => {
    for (const [method, path] of [
      ['GET', '/tools'],
      ['POST', '/agent/run'],
      ['GET', '/permissions'],
    ] as const) {
      const reply = await call(method, path)
      expect(reply.status, path).to.equal(401)
      expect(reply.headers.get('www-authenticate')).to.equal('Bearer')
      expect(reply.body).to.nested.include({ 'error.type': 'authentication_error' })
    }
  })

  it('api.md Authentication 3: a token of another key, audience, or past its time is 401 invalid_token', async () => {
    const other = await newSigner('RS256', 'r1')
    const now = Math.floor(Date.now() / 1000)
    const good = { authorization: `Bearer ${forge({}, world.signer)}` }
    expect((await call('GET', '/tools', undefined, good)).status).to.equal(200)
    for (const token of [
      forge({}, other),
      forge({ aud: 'another' }, world.signer),
      forge({ exp: now - 120 }, world.signer),
      forge({ tenant_id: undefined }, world.signer),
      'x',
    ]) {
      const reply = await call('GET', '/tools', undefined, { authorization: `Bearer ${token}` })
      expect(reply.status).to.equal(401)
      expect(reply.headers.get('www-authenticate')).to.equal('Bearer error="invalid_token"')
    }
  })

  it('D18: a token of some scopes is refused the rest, with the name of the one that is missing', async () => {
    const headers = { authorization: `Bearer ${forge({ ae_scopes: ['read'] }, world.signer)}` }
    expect((await call('GET', '/runs', undefined, headers)).status).to.equal(200)
    const refused = await call('POST', '/agent/run', { prompt: 'hi' }, headers)
    expect(refused.status).to.equal(403)
    expect(refused.body).to.nested.include({ 'error.code': 'missing_scope' })
    expect(refused.text).to.include('the scope run')
    expect((await call('GET', '/me', undefined, headers)).body).to.deep.include({ tenant: 'acme', scopes: ['read'] })
  })

  it("D16a: each tenant's stream has its own events alone", async () => {
    world.product.model.otherwise(() => 'fine')
    const [acme, globex] = [await as('acme'), await as('globex')]
    const [ours, theirs] = [
      await TenantEvents.open(world.product.url, '', acme),
      await TenantEvents.open(world.product.url, '', globex),
    ]
    const runs = [
      await world.product.run({ prompt: 'ours' }, acme),
      await world.product.run({ prompt: 'theirs' }, globex),
    ]
    await Promise.all(runs.map((run) => run.all()))
    await ours.until('run.ended', { run_id: runs[0]?.runId })
    await theirs.until('run.ended', { run_id: runs[1]?.runId })
    expect(JSON.stringify(theirs.seen)).not.to.include(runs[0]?.runId)
    expect(JSON.stringify(ours.seen)).not.to.include(runs[1]?.runId)
    ours.leave()
    theirs.leave()
  })

  // The cluster of this file has no store, so no limits.
  if (form === 'standalone')
    it('with ADMIN_SCOPE only a token of this scope changes the limits of its tenant; each token may read them', async () => {
      const bearing = (claims: object) => ({ authorization: `Bearer ${forge(claims, world.signer)}` })
      const put = async (claims: object) => (await call('PUT', '/config/limits', {}, bearing(claims))).status
      for (const claims of [{}, { scope: 'administrator openid' }, { scope: { admin: true } }, { scp: ['other', 7] }]) {
        const reply = await call('PUT', '/config/limits', { usd_per_day: 1 }, bearing(claims))
        expect(reply.status, JSON.stringify(claims)).to.equal(403)
        expect(reply.body).to.have.nested.property('error.message').that.includes('the scope admin')
        expect((await call('GET', '/config/limits', undefined, bearing(claims))).body).to.include({ usd_per_day: null })
      }
      expect([await put({ scope: 'openid admin' }), await put({ scp: ['admin'] })]).to.deep.equal([200, 200])
    })

  it('api.md Authentication 4: /health, OPTIONS and the explorer need no token', async () => {
    expect((await call('GET', '/health')).status).to.equal(200)
    expect((await call('OPTIONS', '/agent/run')).status).to.equal(204)
    expect((await call('GET', '/openapi.json')).status).to.equal(200)
  })

  it('api.md Authentication 2: a run and its workspace belong to the tenant of its token', async () => {
    world.product.model.answer([WRITE], 'done')
    const acme = await as('acme')
    const stream = await world.product.run({ prompt: 'write' }, acme)
    const { data } = await stream.until('permission_request')
    const path = `/sessions/${stream.runId}/permissions/${data['id']}`
    expect((await call('POST', path, { allow: true }, await as('globex'))).status).to.equal(404)
    expect((await call('POST', path, { allow: true }, acme)).status).to.equal(200)
    expect((await stream.all()).at(-1)?.event).to.equal('done')
    expect((await call('GET', `/runs/${stream.runId}`, undefined, acme)).body).to.include({ status: 'done' })
    await access(join(world.product.dataDir, 'workspaces', 'acme', stream.runId, 'a.txt'))
  })

  it('api.md Authentication 8: two tenants may have sessions of the same name, and each has its own', async () => {
    const [acme, globex] = [await as('acme'), await as('globex')]
    for (const headers of [acme, globex]) {
      expect((await call('POST', '/sessions', { session_id: 'support' }, headers)).status).to.equal(201)
      expect((await call('POST', '/sessions', { session_id: 'support' }, headers)).status).to.equal(409)
    }
    world.product.model.answer('ok')
    await (await world.product.stream('/sessions/support/messages', { prompt: 'hi' }, acme)).all()
    const countOf = async (headers: Record<string, string>) =>
      ((await call('GET', '/sessions/support', undefined, headers)).body as { message_count: number }).message_count
    expect([await countOf(acme), await countOf(globex)]).to.deep.equal([2, 0])
    expect((await call('DELETE', '/sessions/support', undefined, globex)).status).to.equal(200)
    expect(await countOf(acme)).to.equal(2)
  })

  it('resources of another tenant are answered like resources that never existed, byte for byte', async () => {
    const [acme, globex] = [await as('acme'), await as('globex')]
    await call('POST', '/sessions', { session_id: 'secret' }, acme)
    world.product.model.answer([WRITE])
    const stream = await world.product.stream('/sessions/secret/messages', { prompt: 'write' }, acme)
    const { data } = await stream.until('permission_request')
    const theirs = { session: 'secret', run: stream.runId, permission: String(data['id']) }
    const nobodys = { session: 'sicrit', run: reversed(stream.runId), permission: reversed(theirs.permission) }
    for (const [method, pathOf, body] of routes()) {
      const foreign = await call(method, pathOf(theirs), body, globex)
      const unknown = await call(method, pathOf(nobodys), body, globex)
      expect(foreign.status, pathOf(theirs)).to.equal(404)
      expect(masked(foreign, theirs)).to.deep.equal(masked(unknown, nobodys))
    }
    for (const path of ['/runs', '/permissions']) {
      const list = await call('GET', path, undefined, globex)
      for (const id of Object.values(theirs)) expect(list.text).not.to.include(id)
    }
    expect((await call('DELETE', '/sessions/secret', undefined, acme)).status).to.equal(200)
    expect((await stream.all()).at(-1)?.data).to.include({ code: 'session_deleted' })
  })

  it('no token and no part of one is in a log', async () => {
    const { authorization } = await as('acme')
    await call('GET', '/tools', undefined, { authorization })
    await call('GET', '/tools', undefined, { authorization: authorization.slice(0, -5) })
    const log = world.product.log.join('\n')
    for (const part of authorization.slice('Bearer '.length).split('.')) expect(log).not.to.include(part.slice(0, 30))
  })
})

type Ids = { session: string; run: string; permission: string }

function routes(): [method: string, path: (ids: Ids) => string, body?: unknown][] {
  return [
    ['GET', ({ session }) => `/sessions/${session}`],
    ['DELETE', ({ session }) => `/sessions/${session}`],
    ['POST', ({ session }) => `/sessions/${session}/messages`, { prompt: 'hi' }],
    ['POST', ({ session, permission }) => `/sessions/${session}/permissions/${permission}`, { allow: true }],
    ['POST', ({ run, permission }) => `/sessions/${run}/permissions/${permission}`, { allow: true }],
    ['GET', ({ run }) => `/runs/${run}`],
    ['GET', ({ run }) => `/runs/${run}/events`],
    ['DELETE', ({ run }) => `/runs/${run}`],
  ]
}

/** An unused id of the same form. The id of a run keeps the part that names its worker. */
const reversed = (id: string) => id.replace(/[0-9a-f]{16}$/, (end) => Array.from(end).toReversed().join(''))

/** An answer without the requested ids and without the headers that differ from request to request. */
function masked({ status, headers, text }: Reply, ids: Ids) {
  const own = ['date', 'x-request-id', 'content-length']
  const kept = [...headers].filter(([name]) => !own.includes(name))
  let body = text
  for (const [what, id] of Object.entries(ids)) body = body.replaceAll(id, `<${what}>`)
  return { status, kept, body }
}

inStandaloneForm('OIDC, soft mode', (startProduct) => {
  const { world, as } = useOidc(startProduct, 'soft')

  it('api.md Authentication 6: no token is the tenant t_default with a deprecation log; a token must verify', async () => {
    const { product } = world
    product.model.answer('ok')
    const stream = await product.run({ prompt: 'hi' })
    await stream.all()
    // The log of a separate process may arrive after its answer.
    const isLogged = () => product.log.some((line) => /"warn".*requests without a token are deprecated/.test(line))
    await until(isLogged, { what: 'the deprecation log', lastSeen: () => product.log.slice(-5) })
    const read = (headers: Record<string, string>) => product.call('GET', `/runs/${stream.runId}`, undefined, headers)
    expect((await read({})).status).to.equal(200)
    expect((await read(await as('acme'))).status).to.equal(404)
    const refusal = await read({ authorization: 'Bearer x' })
    expect(refusal.status).to.equal(401)
    expect(refusal.headers.get('www-authenticate')).to.equal('Bearer error="invalid_token"')
  })
})

inStandaloneForm('OIDC without its issuer', (startProduct) => {
  const { world, as } = useOidc(startProduct, 'enforced')

  it('D3.1: the product starts; a token is 503 with Retry-After, and accepted once the issuer answers', async () => {
    const { issuer, product } = world
    const headers = await as('acme')
    await issuer.down()
    const refusal = await product.call('GET', '/tools', undefined, headers)
    expect(refusal.status).to.equal(503)
    expect(Number(refusal.headers.get('retry-after'))).to.be.at.least(1)
    expect(refusal.body).to.nested.include({ 'error.type': 'unavailable_error' })
    expect(refusal.text).not.to.include(issuer.url.slice('http://'.length))
    expect((await product.call('GET', '/tools')).status).to.equal(401)
    expect((await product.call('GET', '/health')).status).to.equal(200)
    await issuer.up()
    const settled = async () => {
      const { status: answered } = await product.call('GET', '/tools', undefined, headers)
      return answered !== 503 && answered
    }
    const status = await until(settled, { what: 'the token to be verified', withinMs: 10_000, everyMs: 20 })
    expect(status).to.equal(200)
  })
})
