import { expect } from 'chai'
import { responseId } from '../../services/gateway/dialects/openai/response-id.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from './setup.ts'

describe('a heap that is too full', () => {
  const start = useGateways()

  it('what begins new work is 503 with Retry-After before its body is read, everything else is served', async () => {
    const { post, get } = await start({ isHeapHigh: () => true, methods: { listRuns: async () => EMPTY } })
    for (const path of ['/agent/run', '/sessions', '/sessions/s1/messages', '/flows/summarize/run']) {
      const response = await post(path, 'no JSON')
      expect(response.status, path).to.equal(503)
      expect(response.headers.get('retry-after'), path).to.equal('2')
      expect((await refusalOf(response)).type, path).to.equal('unavailable_error')
    }
    expect((await get('/runs')).status).to.equal(200)
  })

  it('D31.4: answers to permission requests in a dialect are taken, and its prompts are 503', async () => {
    const replied: string[] = []
    const { post } = await start({
      isHeapHigh: () => true,
      methods: {
        replyPermission: async (_tenant, _scope, id) => void replied.push(id),
        followRun: async () => framesOf(DONE),
        getRun: async () => LIVE_RUN,
      },
    })
    const [run, permission] = [RUN_ID, PERMISSION_ID]
    const answered = {
      type: 'dynamic-tool',
      toolName: 'Write',
      toolCallId: 'c',
      input: {},
      state: 'approval-responded',
    }
    const part = { ...answered, approval: { id: permission, approved: true } }
    const response = responseId({ runId: run, part: 1, sessionId: 's1' })
    const answers: [string, object][] = [
      ['/ui/chat', { id: 's1', messages: [{ role: 'assistant', id: run, parts: [part] }] }],
      [
        '/ag-ui',
        {
          ...{ threadId: 's1', runId: 'r', messages: [] },
          resume: [{ interruptId: `${run}/${permission}`, status: 'resolved', payload: { approved: true } }],
        },
      ],
      [
        '/openai/v1/responses',
        {
          ...{ model: 'main', previous_response_id: response },
          input: [{ type: 'mcp_approval_response', approval_request_id: permission, approve: true }],
        },
      ],
    ]
    for (const [path, body] of answers) expect((await post(path, body)).status, path).to.equal(200)
    expect(replied).to.deep.equal([permission, permission, permission])
    const hello = { messageId: 'm', parts: [{ text: 'hello' }] }
    const prompts: [string, object][] = [
      ['/ui/chat', { id: 's1', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] }],
      ['/ag-ui', { threadId: 's1', runId: 'r', messages: [{ role: 'user', content: 'hello' }] }],
      ['/openai/v1/responses', { model: 'main', input: 'hello' }],
      ['/a2a', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: hello } }],
      ['/ui/chat', { id: 's1', messages: [{ role: 'assistant', id: run, parts: [part] }], more: 'x'.repeat(2 ** 20) }],
    ]
    for (const [path, body] of prompts) expect((await post(path, body)).status, path).to.equal(503)
    expect(replied).to.have.length(3)
    const read = {
      jsonrpc: '2.0',
      id: 1,
      method: 'GetTask',
      params: { id: `task_${run.slice(4)}_s1`, historyLength: 0 },
    }
    expect((await post('/a2a', read)).status).to.equal(200)
  })
})

const EMPTY = { runs: [], next_cursor: null }
