// Tests session-calls.ts, handler.ts and server.ts, and what mcp-routes.ts refuses.
import { expect } from 'chai'
import { SessionCalls } from '../../../../services/gateway/dialects/mcp/session-calls.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { createIdempotency, IDEMPOTENCY } from '../../../../shared/platform/store/idempotency.ts'
import { tenantId } from '../../../support/tenant.ts'
import { useTestStore } from '../../../support/test-store.ts'
import { RUN_ID, refusalOf, useGateways } from '../../setup.ts'

const OTHER = tenantId('t_other')
const JSON_AND_STREAMS = { accept: 'application/json, text/event-stream' }

describe('the calls of sessions of MCP', () => {
  const call = { sessionId: 's', requestId: 1 }
  const opened = useTestStore({ collections: [IDEMPOTENCY], perTest: true })
  const openCalls = () => new SessionCalls(createIdempotency(opened.store))

  it('a call is cancelled by its session and id, at any gateway, and by nothing else', async () => {
    const calls = openCalls()
    expect(await calls.begin(DEFAULT_TENANT, call, RUN_ID)).to.equal(false)
    expect(await calls.cancel(OTHER, call)).to.equal(undefined)
    for (const other of [
      { sessionId: 's', requestId: '1' },
      { sessionId: 't', requestId: 1 },
    ])
      expect(await calls.cancel(DEFAULT_TENANT, other)).to.equal(undefined)
    expect(await calls.cancel(DEFAULT_TENANT, call)).to.equal(RUN_ID)
  })

  it('a call that is cancelled before its run is known is cancelled when it begins', async () => {
    const calls = openCalls()
    await calls.cancel(DEFAULT_TENANT, call)
    expect(await calls.begin(DEFAULT_TENANT, call, RUN_ID)).to.equal(true)
  })

  it('an id that is used again stands for its newest run', async () => {
    const calls = openCalls()
    for (const runId of ['run_1', 'run_2']) await calls.begin(DEFAULT_TENANT, call, runId)
    expect(await calls.cancel(DEFAULT_TENANT, call)).to.equal('run_2')
  })
})

describe('POST /mcp', () => {
  const start = useGateways({ perTest: false })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

  it('D31.8b: a wrong message and a missing part are errors of JSON-RPC, a wrong body is one of this API', async () => {
    const { post } = await start()
    expect((await refusalOf(await post('/mcp', '[1', JSON_AND_STREAMS))).type).to.equal('invalid_request_error')
    expect((await post('/mcp', list, { accept: 'text/plain' })).status).to.equal(406)
    const errors: [object, number][] = [
      [list, -32_603],
      [{ ...list, method: 'tools/call' }, -32_602],
      [{ ...list, method: 'prompts/list' }, -32_601],
      [{ hello: 1 }, -32_600],
    ]
    for (const [body, code] of errors) {
      const text = await (await post('/mcp', body, JSON_AND_STREAMS)).text()
      expect(text, JSON.stringify(body)).to.include(`"code":${code}`)
    }
  })

  it('D31.8c: nobody but POST is answered, since there are no sessions', async () => {
    const { get } = await start()
    const response = await get('/mcp')
    expect([response.status, response.headers.get('allow')]).to.deep.equal([405, 'POST, OPTIONS'])
  })
})
