import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { AUDIENCE, Issuer } from '../support/issuer/issuer.ts'
import { compact, newSigner, type Signer, signatureOf } from '../support/issuer/signer.ts'
import { inBothForms, type Product, type StartProduct } from '../support/product.ts'
import { TenantEvents } from '../support/tenant-events.ts'

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
})
