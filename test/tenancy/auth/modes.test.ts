import { expect } from 'chai'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { OidcOptions } from '../../../shared/tenancy/auth/oidc.ts'
import { type Gateway, refusalOf, useGateways } from '../../gateway/setup.ts'
import type { Signer } from '../../support/issuer/signer.ts'
import { newSigners, type Setup, setUp } from './setup.ts'

const PATH = '/runs'

describe('authentication modes on the gateway', () => {
  const openGateway = useGateways()
  let signers: Signer[]
  let auth: Setup
  let gateway: Gateway
  let tenants: TenantId[]
  before(async () => {
    signers = await newSigners()
  })
  afterEach(() => auth.close())

  async function open(mode: OidcOptions['mode']) {
    auth = await setUp(signers, { mode })
    tenants = []
    const listRuns = async (tenant: TenantId) => {
      tenants.push(tenant)
      return { runs: [], next_cursor: null }
    }
    gateway = await openGateway({ identify: auth.identify, basePath: '/api/v1', methods: { listRuns } })
  }

  const get = (authorization?: string) => gateway.get(PATH, authorization === undefined ? {} : { authorization })
  const notices = () => auth.log.filter((line) => line.includes('deprecated'))

  for (const mode of ['legacy', 'enforced'] as const) {
    it(`api.md Authentication 6: ${mode} refuses a request without a token with 401 and says what to send`, async () => {
      await open(mode)
      for (const authorization of [undefined, '', 'Basic dTpw', 'Token x']) {
        const response = await get(authorization)
        expect(response.status, authorization).to.equal(401)
        expect(response.headers.get('www-authenticate')).to.equal('Bearer')
        expect(await refusalOf(response)).to.deep.equal({
          type: 'authentication_error',
          message: 'send a token: Authorization: Bearer <ACCESS_TOKEN>',
        })
      }
      expect(auth.issuer.requests).to.deep.equal([])
    })

    it(`api.md Authentication 2: ${mode} reads the tenant from the claim of the token`, async () => {
      await open(mode)
      for (const client of ['acme', 'globex']) {
        const token = await auth.issuer.token(client)
        expect((await get(`bearer  ${token} `)).status).to.equal(200)
      }
      expect(tenants).to.deep.equal(['acme', 'globex'])
    })
  }

  for (const mode of ['legacy', 'enforced', 'soft'] as const)
    it(`api.md Authentication 3: ${mode} refuses a token that does not verify with 401, never 403`, async () => {
      await open(mode)
      for (const authorization of ['Bearer x', 'Bearer', `Bearer ${(await auth.issuer.token()).slice(0, -4)}AAAA`]) {
        const response = await get(authorization)
        expect(response.status).to.equal(401)
        expect(response.headers.get('www-authenticate')).to.equal('Bearer error="invalid_token"')
        expect(await refusalOf(response)).to.deep.equal({
          type: 'authentication_error',
          message: 'the token could not be verified; get a new one from your identity provider',
          code: 'invalid_token',
        })
      }
      expect(tenants).to.deep.equal([])
    })

  it('api.md Authentication 6: soft accepts a request without a token as t_default, and one with a token as its tenant', async () => {
    await open('soft')
    expect((await get()).status).to.equal(200)
    expect((await get(`Bearer ${await auth.issuer.token('acme')}`)).status).to.equal(200)
    expect((await get('Basic dTpw')).status).to.equal(401)
    expect(tenants).to.deep.equal(['t_default', 'acme'])
  })

  it('api.md Authentication 6: soft logs the deprecation at once, then once a minute with the number of requests', async () => {
    await open('soft')
    for (let i = 0; i < 10; i++) await get()
    expect(notices()).to.have.length(1)
    auth.clock.pass(60_000)
    await get()
    expect(notices().map((line) => JSON.parse(line).requests)).to.deep.equal([1, 10])
  })

  for (const mode of ['enforced', 'soft'] as const)
    it(`D3.1: while the issuer is down a token is 503 with Retry-After in ${mode} mode and never accepted`, async () => {
      await open(mode)
      const token = await auth.issuer.token()
      await auth.issuer.down()
      const response = await get(`Bearer ${token}`)
      expect(response.status).to.equal(503)
      expect(response.headers.get('retry-after')).to.equal('1')
      expect(await refusalOf(response)).to.deep.equal({
        type: 'unavailable_error',
        message: 'the token cannot be checked: the identity provider does not answer; try again in 1 s',
      })
      expect(tenants).to.deep.equal([])
    })

  it('api.md Authentication 4: health and preflights need no token and no issuer', async () => {
    await open('enforced')
    await auth.issuer.down()
    expect((await gateway.get('/health')).status).to.equal(200)
    expect((await fetch(gateway.url + PATH, { method: 'OPTIONS' })).status).to.equal(204)
  })

  it('neither a token nor a part of one is in the log', async () => {
    await open('enforced')
    const token = await auth.issuer.token()
    await get(`Bearer ${token}`)
    await get(`Bearer ${token.slice(0, -1)}`)
    const logged = JSON.stringify([auth.log, gateway.lines])
    for (const part of token.split('.')) expect(logged).not.to.contain(part.slice(0, 20))
  })
})
