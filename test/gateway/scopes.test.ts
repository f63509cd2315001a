import { expect } from 'chai'
import { taskId } from '../../services/gateway/dialects/a2a/task-id.ts'
import { responseId } from '../../services/gateway/dialects/openai/response-id.ts'
import { scopeOf } from '../../services/gateway/middleware/auth.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import { readDocument } from '../../shared/platform/api/document.ts'
import { SCOPES, type Scope } from '../../shared/tenancy/auth/port.ts'
import { operationsOf } from '../platform/api/operations.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from './setup.ts'

const TEXT = { type: 'text', text: 'the work of somebody else' } as const

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
      ['read', ({ get }) => get('/tool-calls')],
      ['read', ({ get }) => get(`/runs/${RUN_ID}/files`)],
      ['read', ({ get }) => get('/sessions/s/files/content?path=a')],
      ['read', ({ get }) => get('/files')],
      ['run', ({ url }) => fetch(`${url}/runs/${RUN_ID}`, { method: 'DELETE' })],
      ['run', ({ post }) => post(`/runs/${RUN_ID}/tool-calls/call_1`, { output: 'sent' })],
      ['run', ({ post }) => post(`/runs/${RUN_ID}/steer`, { prompt: 'stop' })],
      ['run', ({ post }) => post('/sessions/s/fork', { at: RUN_ID })],
      ['run', ({ post }) => post('/files')],
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

  it('D18b: a method of a dialect needs the scope of what it does, whatever the method of HTTP', async () => {
    const rpc = (path: string, method: string, params: object) => ({
      path,
      body: { jsonrpc: '2.0', id: 1, method, params },
    })
    const a2a = (method: string, params: object) => rpc('/a2a', method, params)
    const mcp = (method: string, params: object = {}) => rpc('/mcp', method, params)
    const task = { id: RUN_ID }
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
    const initialize = {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'client', version: '1' },
    }
    const table: [Scope | undefined, { path: string; body?: object }][] = [
      ['run', a2a('SendMessage', { message })],
      ['run', a2a('SendStreamingMessage', { message })],
      ['read', a2a('GetTask', task)],
      ['read', a2a('ListTasks', {})],
      ['run', a2a('CancelTask', task)],
      ['read', a2a('SubscribeToTask', task)],
      [undefined, mcp('initialize', initialize)],
      [undefined, mcp('ping')],
      ['read', mcp('tools/list')],
      ['read', mcp('resources/read', { uri: 'a:/b' })],
      ['run', mcp('tools/call', { name: 'summarize', arguments: {} })],
      ['run', mcp('notifications/cancelled', { requestId: 1 })],
      ['read', { path: '/.well-known/agent-card.json' }],
      ['read', { path: '/openai/v1/models' }],
      ['read', { path: `/openai/v1/responses/resp_${RUN_ID}` }],
      ['run', { path: '/openai/v1/responses', body: {} }],
      ['run', { path: '/openai/v1/chat/completions', body: {} }],
      ['run', { path: `/openai/v1/responses/resp_${RUN_ID}/cancel`, body: {} }],
      ['read', { path: '/ui/chat/chat-1/stream' }],
      ['run', { path: '/ui/chat', body: {} }],
      ['run', { path: '/ag-ui', body: {} }],
    ]
    for (const scope of SCOPES) {
      const { get, post } = await open(scope)
      for (const [needed, { path, body }] of table) {
        const accept = { accept: 'application/json, text/event-stream' }
        const response = await (body ? post(path, body, accept) : get(path))
        const isRefused = response.status === 403 && (await refusalOf(response)).code === 'missing_scope'
        const isFree = needed === undefined || needed === scope
        expect(isRefused, `${scope}: ${path} ${JSON.stringify(body)}`).to.equal(!isFree)
      }
    }
  })

  it('D18b: an answer to a request of a task needs approve, and what ends a run shows its output only to read', async () => {
    const as = (...scopes: Scope[]) => {
      let isCancelled = false
      return start({
        identify: async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) }),
        methods: {
          getRun: async () => ({ ...LIVE_RUN, event_count: 1 }),
          followRun: async () => (isCancelled ? framesOf(TEXT, DONE) : framesOf(TEXT)),
          cancelRun: async () => {
            isCancelled = true
          },
        },
      })
    }
    const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })
    const id = taskId({ runId: RUN_ID, contextId: 'support-7' })
    const answer = rpc('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', taskId: id, parts: [{ text: 'allow' }] },
    })
    expect((await (await as('run', 'read')).post('/a2a', answer)).status).to.equal(403)
    const response = responseId({ runId: RUN_ID, part: 1, sessionId: 'support-7' })
    for (const [path, body] of [
      ['/a2a', rpc('CancelTask', { id })],
      [`/openai/v1/responses/${response}/cancel`, {}],
    ] as const) {
      const [blind, seeing] = [await as('run'), await as('run', 'read')]
      const [short, whole] = [await blind.post(path, body), await seeing.post(path, body)]
      expect([short.status, whole.status], path).to.deep.equal([200, 200])
      expect(await short.text(), path).not.to.include(TEXT.text)
      expect(await whole.text(), path).to.include(TEXT.text)
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
