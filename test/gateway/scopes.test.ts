import { expect } from 'chai'
import { scopeOf } from '../../services/gateway/middleware/scopes.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { readDocument } from '../../shared/platform/api/document.ts'
import { SCOPES, type Scope } from '../../shared/tenancy/auth/port.ts'
import { operationsOf } from '../platform/api/operations.ts'
import { PERMISSION_ID, RUN_ID, refusalOf, useGateways } from './setup.ts'

describe('scopes', () => {
  const start = useGateways()

  /** A gateway whose callers have these scopes, and a broker that does nothing. */
  const open = (...scopes: Scope[]) =>
    start({
      identify: async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) }),
      methods: {
        listRuns: async () => ({ runs: [], next_cursor: null }),
        cancelRun: async () => {},
        replyPermission: async () => {},
      },
    })

  it('D18b: the API description names the scope of every operation', async () => {
    const document = await readDocument({ basePath: '/v1', authentication: 'oidc' })
    const operations = operationsOf(document).filter(({ path }) => !/^\/(health|docs|openapi)/.test(path))
    expect(operations).to.have.length.above(50)
    for (const { method, path, operation } of operations)
      expect(operation['x-scope'], `${method} ${path}`).to.equal(scopeOf(method, path))
  })

  it('D18c: a token gets what its scopes allow, and 403 with the name of the one that is missing', async () => {
    const requests: [Scope, (gateway: Awaited<ReturnType<typeof open>>) => Promise<Response>][] = [
      ['read', ({ get }) => get('/runs')],
      ['run', ({ url }) => fetch(`${url}/runs/${RUN_ID}`, { method: 'DELETE' })],
      ['approve', ({ post }) => post(`/sessions/s/permissions/${PERMISSION_ID}`, { allow: true })],
      ['flows', ({ post }) => post('/flows/a/publish')],
      ['admin', ({ get }) => get('/config/engine')],
    ]
    for (const [scope, send] of requests) {
      const others = SCOPES.filter((each) => each !== scope)
      const refused = await send(await open(...others))
      expect(refused.status, scope).to.equal(403)
      const { code, message } = await refusalOf(refused)
      expect(code).to.equal('missing_scope')
      expect(message).to.include(`the scope ${scope}`)
      expect((await send(await open(scope))).status, scope).not.to.equal(403)
    }
  })

  it('D18b: GET /me needs none, and lists those of the token', async () => {
    const { get } = await open('approve')
    const response = await get('/me')
    expect(response.status).to.equal(200)
    expect(await response.json())
      .to.include({ tenant: 't_default', subject: 'ada' })
      .and.deep.include({ scopes: ['approve'] })
  })

  it('HEAD needs the scope of GET', async () => {
    const { url } = await open('run')
    expect((await fetch(`${url}/runs`, { method: 'HEAD' })).status).to.equal(403)
  })
})
