// Tests conversation.ts and the ids of responses through every door that makes sessions, and what a message is known by when it is sent again.
import { expect } from 'chai'
import { NEW_SESSION } from '../../../../services/gateway/params.ts'
import type { RunSummary } from '../../../../shared/cluster/commands/runs.ts'
import { notFound } from '../../../../shared/kernel/errors.ts'
import { createIdempotency } from '../../../../shared/platform/store/idempotency.ts'
import { useTestStore } from '../../../support/test-store.ts'
import { sessionOf } from '../../session-of.ts'
import { DONE, framesOf, LIVE_RUN, RUN_ID, refusalOf, useGateways } from '../../setup.ts'

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

const agUi = { threadId: 's', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'hi' }] }
const ui = (fields: object = {}, id?: string) => ({ id: 's', messages: [{ id, role: 'user', parts }], ...fields })
const [edited, regenerated] = [{ messageId: 'm' }, { trigger: 'regenerate-message', messageId: 'm' }]
type Status = RunSummary['status'] | 'forgotten'

/** A message that is sent twice: the state of its first run, and whether there is a second one. */
const AGAIN: [what: string, path: string, body: object, status: Status, isAnother: boolean][] = [
  ['a message of a page without an id', '/ui/chat', ui(), 'running', true],
  ['one with an id while it is answered', '/ui/chat', ui({}, 'm'), 'running', false],
  ['one that was answered', '/ui/chat', ui({}, 'm'), 'done', false],
  ['one whose run failed', '/ui/chat', ui({}, 'm'), 'failed', true],
  ['one whose run was cancelled', '/ui/chat', ui({}, 'm'), 'cancelled', true],
  ['one whose run is forgotten', '/ui/chat', ui({}, 'm'), 'forgotten', true],
  ['an edited one while it is answered', '/ui/chat', ui(edited, 'm'), 'running', false],
  ['an edited one that was answered', '/ui/chat', ui(edited, 'm'), 'done', true],
  ['one whose answer is wanted anew', '/ui/chat', ui(regenerated, 'm'), 'running', true],
  ['a run of a thread, however it has ended', '/ag-ui', agUi, 'failed', false],
  ['a message of a context, however its run has ended', '/a2a', a2a('s'), 'failed', false],
]

describe('a message that is sent again', () => {
  const start = useGateways()
  const stores = useTestStore({ perTest: true })

  for (const [what, path, body, status, isAnother] of AGAIN)
    it(`D31.5a: ${isAnother ? 'has another run' : 'joins the run of the first'}: ${what}`, async () => {
      let count = 0
      const run = async () => {
        if (status === 'forgotten') throw notFound('no run')
        return { ...LIVE_RUN, status, ended_at: status === 'running' ? null : LIVE_RUN.started_at }
      }
      const { post } = await start({
        startKeys: createIdempotency(stores.store),
        methods: {
          getSession: async () => sessionOf('s'),
          getRun: run,
          followRun: async () => framesOf(DONE),
          sendMessage: async () => ({ runId: `${RUN_ID.slice(0, -1)}${++count}`, frames: framesOf(DONE) }),
        },
      })
      const replayed = []
      for (const _ of [1, 2]) {
        const response = await post(path, body)
        await response.text()
        replayed.push(response.headers.get('idempotency-replayed'))
      }
      expect([count, replayed]).to.deep.equal([isAnother ? 2 : 1, [null, isAnother ? null : 'true']])
    })
})
