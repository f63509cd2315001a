// Tests ui-routes.ts and request.ts.
import { expect } from 'chai'
import { notFound } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { Scope } from '../../../../shared/tenancy/auth/port.ts'
import { sessionOf } from '../../session-of.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const text = (content: string) => ({ role: 'user', parts: [{ type: 'text', text: content }] })
const answer = (id: string = PERMISSION_ID) => ({
  id: 'chat-1',
  messages: [
    {
      id: RUN_ID,
      role: 'assistant',
      parts: [{ type: 'dynamic-tool', state: 'approval-responded', approval: { id, approved: true, reason: 'yes' } }],
    },
  ],
})

describe('POST /ui/chat', () => {
  const start = useGateways()

  it('D31.1: what this server cannot take is refused by its place in the request, before anything is done', async () => {
    const { post } = await start()
    const refused: [object, string][] = [
      [{}, '/id'],
      [{ id: 'a/b', messages: [text('hi')] }, '/id'],
      [{ id: 'c' }, '/messages'],
      [{ id: 'c', messages: {} }, '/messages'],
      [{ id: 'c', messages: [7] }, '/messages/0'],
      [{ id: 'c', messages: [{ role: 'system', parts: [] }] }, '/messages/0/role'],
      [{ id: 'c', messages: [text(' ')] }, '/messages/0/parts'],
      [{ id: 'c', messages: [{ role: 'user', parts: [{ type: 'data-x', data: 1 }] }] }, '/messages/0/parts/0/type'],
      [{ id: 'c', model: 7, messages: [text('hi')] }, '/model'],
      [{ id: 'c', messages: [{ id: RUN_ID, role: 'assistant', parts: [] }] }, '/messages/0'],
      [{ id: 'c', messages: [{ id: 'msg-1', role: 'assistant', parts: [] }] }, '/messages/0/id'],
      [answer('approval-1'), '/messages/0/parts/0/approval/id'],
    ]
    for (const [body, param] of refused) {
      const response = await post('/ui/chat', body)
      expect(response.status, JSON.stringify(body)).to.equal(400)
      expect((await refusalOf(response)).param).to.equal(param)
    }
  })

  it('D31.2: a message of an unknown chat creates its session with the history of the page', async () => {
    const created: unknown[] = []
    const sent: unknown[] = []
    const { post } = await start({
      methods: {
        createSession: async (...args) => {
          created.push(args)
          return sessionOf()
        },
        sendMessage: async (...args) => {
          sent.push(args.slice(0, 3)) // Behind them is the function that names the run.
          if (created.length === 0) throw notFound('no session')
          return { runId: RUN_ID, frames: framesOf(DONE) }
        },
      },
    })
    const messages = [text('a'), { role: 'assistant', parts: [{ type: 'text', text: 'b' }] }, { id: 'm', ...text('c') }]
    const response = await post('/ui/chat', { id: 'chat-1', messages, model: 'small' })
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).to.equal('v1')
    expect(await response.text()).to.match(/"type":"start".*"type":"finish".*\[DONE\]\n\n$/s)
    const seed = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ]
    expect(created).to.deep.equal([[DEFAULT_TENANT, 'chat-1', seed]])
    const message = {
      prompt: 'c',
      id: 'm',
      model: 'small',
      priority: 'interactive',
      background: true,
      if_waiting: 'deny',
    }
    expect(sent).to.deep.equal([1, 2].map(() => [DEFAULT_TENANT, 'chat-1', message]))
  })

  it('D31.4: answers need the scope approve, and one that comes too late shows how the run has gone on', async () => {
    const replies: unknown[] = []
    const gateway = (...scopes: Scope[]) =>
      start({
        identify: async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) }),
        methods: {
          replyPermission: async (_tenant, ...reply) => {
            replies.push(reply)
            throw notFound('it expired')
          },
          followRun: async () => framesOf(DONE),
        },
      })
    const refused = await (await gateway('run')).post('/ui/chat', answer())
    expect([refused.status, (await refusalOf(refused)).code]).to.deep.equal([403, 'missing_scope'])
    const late = await (await gateway('run', 'approve')).post('/ui/chat', answer())
    expect([late.status, (await late.text()).includes('"type":"finish"')]).to.deep.equal([200, true])
    expect(replies).to.deep.equal([['chat-1', PERMISSION_ID, { allow: true, reason: 'yes', by: 'ada' }]])
  })

  it('D46.3: the outputs of the tools of a page need no scope approve, and the answer ends where another request still waits', async () => {
    const other = `perm_${'ab'.repeat(16)}`
    const asked = [of.turn(1), of.call('a'), of.call('b'), of.asked(PERMISSION_ID, 'a'), of.asked(other, 'b')]
    const calls: unknown[] = []
    const gateway = (...scopes: Scope[]) =>
      start({
        identify: async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) }),
        methods: {
          answerCall: async (_tenant, _scope, _id, { answer: made }) => void calls.push(made),
          findPermission: async () => undefined,
          getRun: async () => ({ ...LIVE_RUN, session_id: 'chat-1' }),
          replyPermission: async (_tenant, _scope, id) => void calls.push(id),
          followRun: async () => framesOf(...asked, of.resolved(PERMISSION_ID, 'a'), of.result('a'), DONE),
        },
      })
    const send = async ({ post }: Awaited<ReturnType<typeof start>>, ...parts: object[]) =>
      (await post('/ui/chat', { id: 'chat-1', messages: [{ id: RUN_ID, role: 'assistant', parts }] })).text()
    await send(await gateway('run'), { type: 'tool-pick', toolCallId: 'c', state: 'output-available', output: 'red' })
    expect(calls.splice(0)).to.deep.equal([{ output: 'red', isError: false }])
    const approval = (id: string, state: string) => ({ type: 'dynamic-tool', state, approval: { id, approved: true } })
    const both = [approval(PERMISSION_ID, 'approval-responded'), approval(other, 'approval-requested')]
    expect(await send(await gateway('run', 'approve'), ...both))
      .to.match(/"tool-output-available".*"finishReason":"tool-calls"/s)
      .and.not.include('"finishReason":"stop"')
    expect(calls).to.deep.equal([PERMISSION_ID])
  })

  it('the stream of a chat in which no run answers is 204, and stopping it is, too', async () => {
    const { get, url } = await start({ methods: { getSession: async () => sessionOf() } })
    expect((await get('/ui/chat/chat-1/stream')).status).to.equal(204)
    expect((await fetch(`${url}/ui/chat/chat-1/stream`, { method: 'DELETE' })).status).to.equal(204)
    const active = await start({
      methods: {
        getSession: async () => sessionOf('chat-1', { active_run_id: RUN_ID }),
        getRun: async () => LIVE_RUN,
        followRun: async () => framesOf(DONE),
      },
    })
    expect(await (await active.get('/ui/chat/chat-1/stream')).text()).to.include(`"messageId":"${RUN_ID}"`)
    const head = await fetch(`${active.url}/ui/chat/chat-1/stream`, { method: 'HEAD' })
    expect([head.status, head.headers.get('x-run-id')]).to.deep.equal([200, RUN_ID])
    const broken = await start({ methods: { getSession: async () => Promise.reject(new Error('broken')) } })
    expect((await fetch(`${broken.url}/ui/chat/chat-1/stream`, { method: 'DELETE' })).status).to.equal(500)
    const unknown = await start({ methods: { getSession: async () => Promise.reject(notFound('no session')) } })
    expect((await fetch(`${unknown.url}/ui/chat/chat-1/stream`, { method: 'DELETE' })).status).to.equal(204)
  })

  it('D31.5b: a stop cancels the run that it names, and without a name the only one of the chat', async () => {
    const cancelled: string[] = []
    const other = `run_${'ab'.repeat(16)}`
    const gateway = (queued: number) =>
      start({
        methods: {
          getSession: async () => sessionOf('chat-1', { active_run_id: RUN_ID, queued }),
          getRun: async (_tenant, runId) => ({ ...LIVE_RUN, session_id: runId === other ? 'chat-1' : 'chat-2' }),
          async cancelRun(_tenant, runId) {
            cancelled.push(runId)
          },
        },
      })
    const busy = await gateway(1)
    const stop = async (query = '', headers = {}, { url } = busy) =>
      (await fetch(`${url}/ui/chat/chat-1/stream${query}`, { method: 'DELETE', headers })).status
    expect([await stop(), cancelled]).to.deep.equal([409, []])
    expect([await stop(`?run_id=${other}`), cancelled]).to.deep.equal([204, [other]])
    expect([await stop('', { 'x-run-id': other }), cancelled.length]).to.deep.equal([204, 2])
    expect([await stop(`?run_id=${RUN_ID}`), await stop('?run_id=run_1'), cancelled.length]).to.deep.equal([
      404, 404, 2,
    ])
    expect([await stop('', {}, await gateway(0)), cancelled.at(-1)]).to.deep.equal([204, RUN_ID])
  })

  it('D31: the paths exist only where DIALECTS names the dialect', async () => {
    const { post } = await start({ dialects: [] })
    expect((await post('/ui/chat', {})).status).to.equal(404)
  })
})
