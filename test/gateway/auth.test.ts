import { expect } from 'chai'
import { createTokenIdentify } from '../../services/gateway/open-identify.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/kernel/tenant.ts'
import { tenantId } from '../support/tenant.ts'
import { sessionOf } from './session-of.ts'
import { refusalOf, useGateways } from './setup.ts'

describe('authentication', () => {
  const start = useGateways()
  const identify = createTokenIdentify('s3cret')

  it('api.md Authentication 7: a missing Authorization header is 401 authentication_error and asks for a bearer token', async () => {
    const { get } = await start({ identify })
    for (const headers of [{}, { authorization: '' }]) {
      const response = await get('/tools', headers)
      expect(response.status).to.equal(401)
      expect(response.headers.get('www-authenticate')).to.equal('Bearer')
      expect((await refusalOf(response)).type).to.equal('authentication_error')
    }
  })

  it('api.md Authentication 7: an invalid token is 403 permission_error', async () => {
    const { get } = await start({ identify })
    const wrong = [
      'Bearer wrong',
      'Bearer s3cre',
      'Bearer s3crett',
      'Bearer',
      'Basic s3cret',
      's3cret',
      'Bearer a s3cret',
    ]
    for (const authorization of wrong) {
      const response = await get('/tools', { authorization })
      expect(response.status, authorization).to.equal(403)
      expect((await refusalOf(response)).type).to.equal('permission_error')
    }
  })

  it('the right token is accepted, and the scheme is not case-sensitive (RFC 9110)', async () => {
    const { get } = await start({ identify })
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await get('/tools', { authorization: `${scheme} s3cret` })).status, scheme).to.equal(200)
    }
  })

  it('api.md Authentication 4: /health, OPTIONS and the explorer need no token, whatever is sent', async () => {
    const { url } = await start({ identify })
    const exempt = [
      ['GET', '/health', 200],
      ['HEAD', '/health', 200],
      ['OPTIONS', '/agent/run', 204],
      ['OPTIONS', '/nowhere', 204],
      ['GET', '/docs', 200],
      ['GET', '/docs/swagger-ui.css', 200],
      ['GET', '/openapi.json', 200],
    ] as const
    for (const [method, path, status] of exempt) {
      const response = await fetch(url + path, { method, headers: { authorization: 'Bearer wrong' } })
      expect(response.status, `${method} ${path}`).to.equal(status)
      await response.arrayBuffer()
    }
  })

  it('every other path requires a token: known ones, unknown ones, and the explorer when it is off', async () => {
    const { get, post } = await start({ identify, hasExplorer: false })
    for (const path of ['/tools', '/runs', '/sessions/x', '/nowhere', '/docs', '/openapi.json', '/health/x']) {
      expect((await get(path)).status, path).to.equal(401)
    }
    for (const path of ['/agent/run', '/sessions', '/sessions/x/messages']) {
      expect((await post(path, '{')).status, path).to.equal(401)
    }
  })

  it('api.md Authentication 5, D3.4: development needs no token and uses the tenant t_default', async () => {
    const tenants: TenantId[] = []
    const { get } = await start({
      methods: {
        async listRuns(tenant) {
          tenants.push(tenant)
          return { runs: [], next_cursor: null }
        },
      },
    })
    expect((await get('/runs', { authorization: 'Bearer anything' })).status).to.equal(200)
    expect(tenants).to.deep.equal([DEFAULT_TENANT])
  })

  it('api.md Authentication 8: every call to the broker has the tenant of the identity', async () => {
    const tenants: TenantId[] = []
    const { get, post } = await start({
      identify: async (authorization = '') => ({ tenant: tenantId(authorization), subject: 'x' }),
      methods: {
        async getSession(tenant) {
          tenants.push(tenant)
          return sessionOf('s')
        },
        async createSession(tenant) {
          tenants.push(tenant)
          return sessionOf('s')
        },
      },
    })
    await get('/sessions/s', { authorization: 'acme' })
    await post('/sessions', { tenant: 'other', tenant_id: 'other' }, { authorization: 'umbrella' })
    expect(tenants).to.deep.equal(['acme', 'umbrella'])
  })
})
