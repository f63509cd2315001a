// Tests thread.ts, and ag-ui-routes.ts where a client asks for a thread.
import { EventSchemas } from '@ag-ui/core/schemas'
import { expect } from 'chai'
import { AgUiProjection } from '../../../../services/gateway/dialects/ag-ui/ag-ui-projection.ts'
import { threadMessages } from '../../../../services/gateway/dialects/ag-ui/thread.ts'
import { Fields } from '../../../../services/gateway/dialects/shared/fields.ts'
import { placeInList } from '../../../../services/gateway/dialects/shared/messages.ts'
import type { UiMessage } from '../../../../services/gateway/dialects/ui/message.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import type { Scope } from '../../../../shared/tenancy/auth/port.ts'
import { sessionOf } from '../../session-of.ts'
import { refusalOf, useGateways } from '../../setup.ts'
import * as of from '../recorded.ts'

const text = (said: string) => ({ type: 'text', text: said })
const called = (fields: object) => ({ type: 'dynamic-tool', toolName: 'Read', toolCallId: 'c-1', input: {}, ...fields })

const SEEDED = {
  ...{ id: 'msg_1', run_id: null, role: 'assistant' as const, at: '2026-01-01T00:00:00.000Z' },
  ...{ parent_id: null, blocks: [{ type: 'text' as const, text: 'welcome' }] },
}

describe('the messages of a thread, for a client of AG-UI that has none', () => {
  const start = useGateways()

  it('D31.7a: answers and calls are messages that the protocol takes, with results for the calls that have ended', () => {
    const parts = [
      { type: 'step-start' },
      { type: 'reasoning', text: 'hm' },
      called({ output: 'a file' }),
      called({ errorText: 'no such file' }),
      called({ state: 'output-denied' }),
      called({ state: 'approval-requested' }),
      text('done'),
    ]
    const asked: UiMessage = { id: 'm-1', role: 'user', parts: [text('one'), text('two')] }
    const messages = threadMessages([asked, { id: of.RUN, role: 'assistant', parts }])
    EventSchemas.parse({ type: 'MESSAGES_SNAPSHOT', messages })
    expect(messages.map(({ role, content }) => [role, content])).to.deep.equal([
      ['user', 'one\n\ntwo'],
      ['reasoning', 'hm'],
      ...['a file', 'no such file', 'denied'].flatMap((result) => [
        ['assistant', undefined],
        ['tool', result],
      ]),
      ['assistant', undefined],
      ['assistant', 'done'],
    ])
    expect(new Set(messages.map(({ id }) => id)).size).to.equal(messages.length)
  })

  it('D31.7a: files, calls and what steered a run are messages in the forms of the protocol', () => {
    const file = (mediaType: string) => ({ type: 'file', mediaType, url: `/v1/${mediaType}` })
    const media = (type: string, mimeType: string) => ({
      type,
      source: { type: 'url', value: `/v1/${mimeType}`, mimeType },
    })
    const types = ['image/png', 'audio/wav', 'application/pdf', 'x-image/png']
    const asked: UiMessage = { id: 'm-1', role: 'user', parts: [text('look'), ...types.map(file)] }
    const parts = [called({ input: undefined, output: 'a file' }), { type: 'data-steered', data: { text: 'stop' } }]
    const call = { id: 'c-1', type: 'function', function: { name: 'Read', arguments: '{}' } }
    expect(threadMessages([asked, { id: of.RUN, role: 'assistant', parts }])).to.deep.equal([
      {
        ...{ id: 'm-1', role: 'user' },
        content: [
          text('look'),
          ...[media('image', 'image/png'), media('audio', 'audio/wav')],
          ...[media('document', 'application/pdf'), media('document', 'x-image/png')],
        ],
      },
      { id: `${of.RUN}-0-1`, role: 'assistant', toolCalls: [call] },
      { id: `${of.RUN}-0-2`, role: 'tool', toolCallId: 'c-1', content: 'a file' },
      { id: `${of.RUN}-0-3`, role: 'user', content: 'stop' },
    ])
    const seeded = threadMessages([{ id: 'seeded-1', role: 'assistant', parts: [text('a'), text('b')] }])
    expect(seeded.map(({ id }) => id)).to.deep.equal(['seeded-1-0-1', 'seeded-1'])
    const facts = { threadId: 't', runId: 'r', engineRunId: undefined, isCurrent: true, messages: seeded }
    const ids = { threadId: 't', runId: 'r' }
    expect(new AgUiProjection(facts).begin()).to.deep.equal([
      { type: 'RUN_STARTED', ...ids },
      { type: 'MESSAGES_SNAPSHOT', messages: seeded },
      { type: 'RUN_FINISHED', ...ids, outcome: { type: 'success' } },
    ])
  })

  it('D38.1a: a list that follows them names the last answer as its place, that of a run or one that the session began with', () => {
    for (const id of [of.RUN, 'seeded-1']) {
      const messages = threadMessages([{ id, role: 'assistant', parts: [called({ output: 'x' }), text('done')] }])
      const list = [...messages, { id: 'm-2', role: 'user', content: 'and?' }].map((message) => new Fields(message))
      expect(placeInList(list, { isList: true }).path?.at(-1)).to.equal(id)
    }
  })

  it('D31.7a: they are shown to a token with the scope read, and nothing is started for them', async () => {
    const gateway = (...scopes: Scope[]) =>
      start({
        identify: async () => ({ tenant: DEFAULT_TENANT, subject: 'ada', scopes: new Set(scopes) }),
        methods: {
          getSession: async () => sessionOf(),
          listMessages: async () => ({ messages: [SEEDED], branches: [], next_cursor: null }),
        },
      })
    const request = { threadId: 't', runId: 'r', messages: [] }
    const refused = await (await gateway('run')).post('/ag-ui', request)
    expect([refused.status, (await refusalOf(refused)).param]).to.deep.equal([400, '/messages'])
    const shown = await (await (await gateway('run', 'read')).post('/ag-ui', request)).text()
    expect(shown.match(/"type":"[A-Z_]+"/g)).to.deep.equal([
      '"type":"RUN_STARTED"',
      '"type":"MESSAGES_SNAPSHOT"',
      '"type":"RUN_FINISHED"',
    ])
  })
})
