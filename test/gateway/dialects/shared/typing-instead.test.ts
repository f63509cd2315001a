// Tests the routes of all dialects with sessions, and waiting-run.ts: people who write while a permission request waits.
import { expect } from 'chai'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { notFound } from '../../../../shared/kernel/errors.ts'
import { sessionOf } from '../../session-of.ts'
import { DONE, framesOf, LIVE_RUN, PERMISSION_ID, RUN_ID, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const NEW_RUN = `run_${'ab'.repeat(16)}`
const OLD = `perm_${'cd'.repeat(16)}`
const ASKED = [of.turn(1), ...of.said('hm'), of.call('c1'), of.asked(PERMISSION_ID, 'c1')]
const INTERRUPT = `${RUN_ID}/${PERMISSION_ID}`

const said = (text: string) => ({ id: 'm2', role: 'user', parts: [{ type: 'text', text }] })
const approval = (id: string, state = 'approval-responded') => ({
  ...{ type: 'dynamic-tool', toolName: 'Write', toolCallId: 'c1', state, input: {} },
  approval: { id, approved: true },
})
const asking = (...parts: object[]) => ({ id: RUN_ID, role: 'assistant', parts })
const thread = [
  { id: 'm1', role: 'user', content: 'first' },
  { id: 'a1', role: 'assistant', content: 'hm' },
]
const more = { id: 'm2', role: 'user', content: 'hi' }
const agUi = (rest: object) => ({ threadId: 's', runId: 'r2', ...rest })
const resume = (status: string) => [{ interruptId: INTERRUPT, status, payload: { approved: true } }]
const response = `resp_${RUN_ID.slice('run_'.length)}01_s`
const answer = { type: 'mcp_approval_response', approval_request_id: PERMISSION_ID, approve: true }

describe('a message to a conversation that waits for permission', () => {
  const start = useGateways()

  /** A gateway whose session waits, unless `isOver`: its request was not answered in time. */
  async function waiting({ isOver = false } = {}) {
    const calls: unknown[] = []
    const methods: Partial<Broker> = {
      getSession: async () => sessionOf('s', { active_run_id: isOver ? null : RUN_ID }),
      getRun: async () => ({ ...LIVE_RUN, event_count: ASKED.length, permission_ids: [PERMISSION_ID] }),
      listMessages: async () => ({ messages: [], branches: [], next_cursor: null }),
      followRun: async (_tenant, runId) => {
        calls.push(['follow', runId])
        return framesOf(...ASKED, ...(isOver ? [of.resolved(PERMISSION_ID, 'c1', { allow: false }), DONE] : []))
      },
      async replyPermission(_tenant, _scope, id, { allow, reason }) {
        calls.push(['reply', id, allow, reason])
        if (isOver) throw notFound('expired')
      },
      async sendMessage(_tenant, id, { prompt, if_waiting: ifWaiting }) {
        calls.push(['send', id, prompt, ifWaiting])
        return { runId: NEW_RUN, frames: framesOf(of.turn(1), DONE) }
      },
    }
    const { post } = await start({ methods })
    return { calls, send: async (path: string, body: object) => (await post(path, body)).text() }
  }

  const SENT = ['send', 's', 'hi', 'deny']

  it('D39.1: denies what waits, in every dialect', async () => {
    const bodies: [string, object][] = [
      ['/ui/chat', { id: 's', messages: [asking(approval(PERMISSION_ID, 'approval-requested')), said('hi')] }],
      ['/openai/v1/responses', { model: 'main', input: 'hi', previous_response_id: response }],
      [
        '/a2a',
        {
          ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
          params: { message: { messageId: 'm', role: 'ROLE_USER', contextId: 's', parts: [{ text: 'hi' }] } },
        },
      ],
    ]
    for (const [path, body] of bodies) {
      const { calls, send } = await waiting()
      await send(path, body)
      expect(calls, path).to.deep.equal([SENT])
    }
    const { calls, send } = await waiting()
    await send('/ag-ui', agUi({ messages: [...thread, more], resume: resume('cancelled') }))
    expect(calls).to.deep.equal([['reply', PERMISSION_ID, false, 'a new message came'], SENT])
  })

  it('D39.3: brings the answers along that are still waited for, wherever they stand in the list', async () => {
    const reply = ['reply', PERMISSION_ID, true, undefined]
    const ui = await waiting()
    const messages = [asking(approval('call-of-another-server'), approval(OLD), approval(PERMISSION_ID)), said('hi')]
    await ui.send('/ui/chat', { id: 's', messages })
    expect(ui.calls).to.deep.equal([reply, SENT])
    for (const input of [
      [answer, { role: 'user', content: 'hi' }],
      [{ role: 'user', content: 'hi' }, answer],
    ]) {
      const { calls, send } = await waiting()
      await send('/openai/v1/responses', { model: 'main', input, previous_response_id: response })
      expect(calls).to.deep.equal([reply, SENT])
    }
    const thirdTab = await waiting()
    await thirdTab.send('/ag-ui', agUi({ messages: [...thread, more], resume: resume('resolved') }))
    expect(thirdTab.calls).to.deep.equal([reply, SENT])
  })

  it('D39.3: answers without a message go on with the run that asked', async () => {
    const bodies: [string, object][] = [
      ['/ag-ui', agUi({ messages: thread, resume: resume('resolved') })],
      ['/ag-ui', agUi({ messages: thread.slice(0, 1), resume: resume('resolved') })],
      ['/openai/v1/responses', { model: 'main', input: [answer], previous_response_id: response }],
    ]
    for (const [path, body] of bodies) {
      const { calls, send } = await waiting()
      await send(path, { stream: true, ...body })
      expect(calls, path).to.deep.equal([
        ['reply', PERMISSION_ID, true, undefined],
        ['follow', RUN_ID],
      ])
    }
  })

  it('D39.1: a message that is refused answers nothing', async () => {
    const bad = [{ type: 'image' }]
    const bodies: [string, object][] = [
      ['/ui/chat', { id: 's', messages: [asking(approval(PERMISSION_ID)), { role: 'user', parts: bad }] }],
      ['/ag-ui', agUi({ messages: [...thread, { ...more, content: bad }], resume: resume('cancelled') })],
      [
        '/openai/v1/responses',
        { model: 'main', input: [answer, { role: 'user', content: bad }], previous_response_id: response },
      ],
    ]
    for (const [path, body] of bodies) {
      const { calls, send } = await waiting()
      expect(await send(path, body), path).to.include('invalid_request_error')
      expect(calls, path).to.deep.equal([])
    }
  })

  it("AG-UI's contract: a request without resume gets the open interrupts again", async () => {
    for (const messages of [[...thread, more], thread]) {
      const { calls, send } = await waiting()
      const events = eventsIn(await send('/ag-ui', agUi({ messages })))
      expect(events.map(({ type }) => type)).to.deep.equal(['RUN_STARTED', 'RUN_FINISHED'])
      expect(events[1]).to.nested.include({ 'outcome.type': 'interrupt', 'outcome.interrupts[0].id': INTERRUPT })
      expect(calls).to.deep.equal([['follow', RUN_ID]])
    }
  })

  it('D31.7a: a request without messages gets those of the thread, and its open interrupts', async () => {
    const { calls, send } = await waiting()
    const events = eventsIn(await send('/ag-ui', agUi({ messages: [] })))
    expect(events.slice(0, 2).map(({ type }) => type)).to.deep.equal(['RUN_STARTED', 'MESSAGES_SNAPSHOT'])
    expect(events.at(-1)).to.nested.include({ 'outcome.interrupts[0].id': INTERRUPT })
    expect(events.map(({ delta }) => delta)).to.include('hm')
    expect(calls.map(String).filter((call) => call !== `follow,${RUN_ID}`)).to.deep.equal([])
  })

  it('D31.7b: nobody is kept from a late answer or the next message, and the late answer shows how the run went on', async () => {
    const { send } = await waiting()
    const asked = eventsIn(await send('/ag-ui', agUi({ messages: [] }))).at(-1)
    expect(asked).not.to.have.nested.property('outcome.interrupts[0].expiresAt')
    expect(asked).to.have.nested.property('outcome.interrupts[0].metadata.expiresAt')
    const late = await waiting({ isOver: true })
    const events = eventsIn(await late.send('/ag-ui', agUi({ messages: thread, resume: resume('resolved') })))
    expect(events.map(({ name, type }) => name ?? type)).to.include.members(['permission_resolved', 'RUN_FINISHED'])
    expect(late.calls).to.deep.include(['follow', RUN_ID])
    const next = await waiting({ isOver: true })
    await next.send('/ag-ui', agUi({ messages: [...thread, more] }))
    expect(next.calls).to.deep.equal([SENT])
  })
})

type Event = { type: string; name?: string } & Record<string, unknown>

const eventsIn = (text: string): Event[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Event)
