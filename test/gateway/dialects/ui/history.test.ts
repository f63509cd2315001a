import { expect } from 'chai'
import { newestRun, uiMessages } from '../../../../services/gateway/dialects/ui/history.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import type { MessagePage } from '../../../../shared/cluster/commands/sessions.ts'
import { readerFailure } from '../../../../shared/cluster/journal/frames.ts'
import { notFound } from '../../../../shared/kernel/errors.ts'
import type { RunEvent } from '../../../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { sessionOf } from '../../session-of.ts'
import { DONE, framesOf, LIVE_RUN } from '../../setup.ts'
import * as of from '../recorded.ts'

type Message = MessagePage['messages'][number]
type Block = Message['blocks'][number]
const run = (digit: string) => `run_${digit.repeat(32)}`
const text = (said: string) => ({ type: 'text', text: said }) as Block
const message = (id: string, role: Message['role'], run_id: string | null, ...blocks: Block[]) =>
  ({ id, parent_id: null, at: '2026-11-21T09:30:00.000Z', role, run_id, blocks }) as Message
const metadataOf = (runId: string) => ({ metadata: { runId, sessionId: 'chat' } })
const done = (said: string) => ({ type: 'text', text: said, state: 'done' })
const refuse = (cause: Error) => () => Promise.reject(cause)

/** The messages of a chat with this history, and the runs whose events were read. */
async function shown(
  messages: readonly Message[],
  events: Record<string, RunEvent[]> = {},
  more: Partial<Broker> = {},
) {
  const replayed: string[] = []
  const broker = {
    listMessages: async (_tenant: unknown, _id: string, { cursor }: { cursor?: string }) => {
      const at = Number(cursor ?? 0)
      return {
        messages: messages.slice(at, at + 2),
        branches: [],
        next_cursor: at + 2 < messages.length ? String(at + 2) : null,
      }
    },
    getRun: async (_tenant: unknown, id: string) => {
      replayed.push(id)
      const found = events[id]
      if (!found) throw notFound('no run')
      return { ...LIVE_RUN, event_count: found.length }
    },
    followRun: async (_tenant: unknown, id: string) => framesOf(...(events[id] ?? [])),
    ...more,
  } as unknown as Broker
  const reading = { broker, tenant: DEFAULT_TENANT, signal: new AbortController().signal, basePath: '/v1' }
  return { parts: await uiMessages(reading, 'chat'), replayed }
}

describe('the messages of a chat, for a page that is opened anew', () => {
  it('D31.5b: those of a run are its question and one answer, with its thoughts, texts, calls and files', async () => {
    const call = (id: string) => ({ type: 'tool_use', id, tool_name: 'Read', input: { of: id } }) as Block
    const result = (id: string, output: string, is_error: boolean, artifacts?: object[]) =>
      ({ type: 'tool_result', id, tool_name: 'Read', output, is_error, ...(artifacts && { artifacts }) }) as Block
    const file = { file_id: 'file_1', name: 'a.md', media_type: 'text/markdown', bytes: 6 }
    const { parts } = await shown([
      message('u', 'user', run('1'), text('look'), { type: 'file', ...file } as unknown as Block),
      message('a', 'assistant', run('1'), { type: 'thinking', text: 'hm' }, call('c'), call('d')),
      message('t', 'tool', run('1'), result('c', 'a file', false, [file]), result('d', 'none', true)),
      message('b', 'assistant', run('1'), text('done')),
    ])
    const tool = (id: string) => ({
      type: 'dynamic-tool',
      toolName: 'Read',
      toolCallId: id,
      providerExecuted: true,
      input: { of: id },
    })
    const url = '/v1/files/file_1/content'
    const artifact = { fileId: 'file_1', name: 'a.md', mediaType: 'text/markdown', bytes: 6, toolCallId: 'c' }
    expect(parts).to.deep.equal([
      {
        id: 'u',
        role: 'user',
        parts: [text('look'), { type: 'file', mediaType: 'text/markdown', filename: 'a.md', url }],
      },
      {
        ...{ id: run('1'), role: 'assistant', ...metadataOf(run('1')) },
        parts: [
          ...[{ type: 'step-start' }, { type: 'reasoning', text: 'hm', state: 'done' }],
          ...[
            { ...tool('c'), state: 'output-available', output: 'a file' },
            { ...tool('d'), state: 'output-error', errorText: 'none' },
          ],
          ...[
            { type: 'file', url, mediaType: 'text/markdown' },
            { type: 'data-artifact', id: 'file_1', data: artifact },
          ],
          ...[{ type: 'step-start' }, done('done')],
        ],
      },
    ])
  })

  it('D31.5b: the history that a session began with has the ids of its client, and an answer to each question', async () => {
    const client = (made: Message, client_id: string) => ({ ...made, client_id })
    const { parts, replayed } = await shown([
      client(message('m1', 'user', null, text('one')), 'u1'),
      client(message('m2', 'assistant', null, text('two')), 'a1'),
      message('m3', 'user', null, text('three')),
      message('m4', 'assistant', null, text('four')),
    ])
    expect(parts.map(({ id, metadata }) => [id, metadata])).to.deep.equal(
      ['u1', 'a1', 'm3', 'm4'].map((id) => [id, undefined]),
    )
    expect(replayed).to.deep.equal([])
  })

  it('D49: what steered a run is a part of its answer, and a correction that the engine asked for is none', async () => {
    const steer = {
      ...message('m3', 'user', run('1'), text('stop'), { type: 'thinking', text: 'x' }, text('now')),
      client_id: `steer_${'0'.repeat(32)}`,
    }
    const { parts } = await shown([
      message('m1', 'user', run('1'), text('one')),
      message('m2', 'assistant', run('1'), text('two')),
      steer,
      message('m4', 'user', run('1'), text('correct that')),
      message('m5', 'assistant', run('1'), text('four')),
    ])
    expect(parts.map(({ id }) => id)).to.deep.equal(['m1', run('1')])
    expect(parts[1]?.parts.slice(1)).to.deep.equal([
      done('two'),
      { type: 'data-steered', id: steer.client_id, data: { text: 'stop\n\nnow' } },
      { type: 'step-start' },
      done('four'),
    ])
  })

  it('D31.5b: the newest run and those that left no answer are as their events tell, as long as these are kept', async () => {
    const history = ['1', '2', '3', '4'].flatMap((digit) => [
      message(`u${digit}`, 'user', run(digit), text(digit)),
      ...(digit === '2' || digit === '3' ? [] : [message(`a${digit}`, 'assistant', run(digit), text(`of ${digit}`))]),
    ])
    const { parts, replayed } = await shown(history, {
      [run('2')]: [of.turn(1), of.failed],
      [run('4')]: [of.turn(1), ...of.said('told'), DONE],
    })
    expect(replayed).to.deep.equal(['2', '3', '4'].map(run))
    expect(parts.map(({ id }) => id)).to.deep.equal(['u1', run('1'), 'u2', run('2'), 'u3', 'u4', run('4')])
    expect(parts[3]?.metadata).to.include({ errorCode: 'provider_rejected' })
    expect(JSON.stringify(parts[6])).to.include('told').and.not.include('of 4')
    const one = [message('u', 'user', run('1'), text('hi'))]
    for (const events of [[readerFailure('stream_gap')], []] as RunEvent[][])
      expect((await shown(one, { [run('1')]: events })).parts).to.have.length(1)
    expect((await shown(one, { [run('1')]: [of.cancelled] })).parts).to.have.length(2)
    const many = Array.from({ length: 25 }, (_, i) =>
      message(`u${i}`, 'user', `run_${String(i).padStart(32, '0')}`, text('hi')),
    )
    expect((await shown(many)).replayed).to.deep.equal(many.slice(-20).map(({ run_id }) => run_id))
  })

  it('D31.5b: there are none for a chat that is not there, and any other failure is one', async () => {
    expect((await shown([], {}, { listMessages: refuse(notFound('no session')) })).parts).to.deep.equal([])
    const one = [message('u', 'user', run('1'), text('hi'))]
    for (const [messages, more] of [
      [[], { listMessages: refuse(new Error('broken')) }],
      [one, { getRun: refuse(new Error('broken')) }],
    ] as const)
      expect(String(await shown(messages, {}, more).catch((cause: unknown) => cause))).to.include('broken')
  })

  it('D31.5b: the run of its stream is the one at work, or else the last one, as long as it is known', async () => {
    const newest = (fields: object, getRun: () => unknown = () => LIVE_RUN) =>
      newestRun(
        { getSession: async () => sessionOf('chat', fields), getRun: async () => getRun() } as unknown as Broker,
        DEFAULT_TENANT,
        'chat',
      )
    expect(await newest({ active_run_id: run('1'), last_run_id: run('2') })).to.equal(run('1'))
    expect(await newest({ last_run_id: run('2') })).to.equal(run('2'))
    expect(await newest({}, () => expect.fail('no run is asked for'))).to.equal(undefined)
    const gone = (cause: Error) =>
      newest({ last_run_id: run('2') }, () => {
        throw cause
      })
    expect(await gone(notFound('no run'))).to.equal(undefined)
    expect(String(await gone(new Error('broken')).catch((cause: unknown) => cause))).to.include('broken')
  })
})
