// Tests conversation.ts and the ids of responses: through every door that makes sessions.
import { expect } from 'chai'
import { NEW_SESSION } from '../../../../services/gateway/params.ts'
import { refusalOf, useGateways } from '../../setup.ts'

const REFUSED = ['.', '..', `run_${'0f'.repeat(16)}`, '', 'a/b', 'x'.repeat(129)]
const parts = [{ type: 'text', text: 'hi' }]
const a2a = (contextId: string) => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
  params: { message: { messageId: 'm', role: 'ROLE_USER', contextId, parts: [{ text: 'hi' }] } },
})

/** Where a session begins: the request with an id, and the place of the id in it. */
const DOORS: [path: string, body: (id: string) => object, param: string][] = [
  ['/sessions', (id) => ({ session_id: id }), '/session_id'],
  ['/ui/chat', (id) => ({ id, messages: [{ id: 'm', role: 'user', parts }] }), '/id'],
  ['/ag-ui', (id) => ({ threadId: id, runId: 'r', messages: [{ id: 'm', role: 'user', content: 'hi' }] }), '/threadId'],
  ['/openai/v1/responses', (id) => ({ model: 'main', input: 'hi', conversation: id }), '/conversation'],
  ['/openai/v1/responses', (id) => ({ model: 'main', input: 'hi', conversation: { id } }), '/conversation/id'],
]

describe('the ids of sessions', () => {
  const start = useGateways({ perTest: false })

  it('D2.8: an id that POST /sessions refuses is refused by every dialect, before anything is done', async () => {
    const { post } = await start()
    for (const [path, body, param] of DOORS)
      for (const id of REFUSED) {
        const response = await post(path, body(id))
        expect(response.status, `${path} ${id}`).to.equal(400)
        expect((await refusalOf(response)).param, `${path} ${id}`).to.equal(param)
      }
    for (const id of REFUSED.filter((each) => each !== '')) {
      const { error } = (await (await post('/a2a', a2a(id))).json()) as { error?: { code: number } }
      expect(error?.code, id).to.equal(-32_602)
      const previous = `resp_${'0f'.repeat(16)}01_${id}`
      const again = { model: 'main', input: 'hi', previous_response_id: previous }
      expect((await post('/openai/v1/responses', again)).status, id).to.equal(404)
    }
  })

  it('D2.8: the form of params.ts is that of the API document', async () => {
    const { post } = await start({ methods: { createSession: async () => Promise.reject(new Error('asked')) } })
    for (const id of [...REFUSED, '...', '.a', 'run_1', `run_${'0F'.repeat(16)}`, 'a:b-c_d.e', 'x'.repeat(128)])
      expect((await post('/sessions', { session_id: id })).status !== 400, id).to.equal(NEW_SESSION.pattern.test(id))
  })
})
