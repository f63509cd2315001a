// Tests reduce-run.ts and reduce-blocks.ts: the view of a run, from recorded streams.

import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { EMPTY_RUN, type RunEvent, type RunView, reduceRun } from '../../../shared/client/client.ts'
import { countReads } from '../../support/counted.ts'

const STREAMS = new URL('../../conformance/streams/', import.meta.url)

/** The events of a recorded stream, in order. */
function recorded(name: string): RunEvent[] {
  const lines = readFileSync(new URL(`${name}.jsonl`, STREAMS), 'utf8')
    .trimEnd()
    .split('\n')
  return lines.map((line) => JSON.parse(line) as RunEvent).filter((step) => 'event' in step)
}

const reduceAll = (events: readonly RunEvent[], at?: (event: RunEvent) => number): RunView =>
  events.reduce<RunView>((view, event) => reduceRun(view, event, at?.(event)), EMPTY_RUN)

describe('reduceRun', () => {
  it('shows text and tool calls in order, with the result and the duration of a call', () => {
    const view = reduceAll(recorded('whole'), ({ id }) => id * 100)
    expect(view.blocks.map(({ kind }) => kind)).to.deep.equal(['text', 'tool', 'text'])
    expect(view.blocks[0]).to.deep.equal({ kind: 'text', text: 'I will look.', isOpen: false })
    expect(view.blocks[1]).to.nested.include({
      'call.tool_name': 'TodoWrite',
      'result.is_error': false,
      durationMs: 200,
    })
    expect(view.blocks[1]).to.nested.include({ 'progress.detail': '0 of 1 done' })
    expect(view).to.nested.include({ status: 'done', 'end.event': 'done', 'turn.turn_number': 2 })
    expect(view.usage).to.include({ input_tokens: 3659, output_tokens: 8, turn_count: 2 })
  })

  it('D54.3: shows the newest place of a run that waits', () => {
    const at = (place: number): RunEvent => ({ id: 0, event: 'waiting', data: { place, expected_start: null } })
    const waits = reduceAll([at(3), at(2)])
    expect(waits).to.deep.include({ lastEventId: 0, waiting: { place: 2, expected_start: null } })
    const { waiting: _, ...begun } = reduceAll([at(3), at(2), ...recorded('whole')])
    expect(begun).to.deep.equal(reduceAll(recorded('whole')))
  })

  it('shows a block that is coming, and its usage turn by turn', () => {
    const events = recorded('whole')
    const half = reduceAll(events.slice(0, 3))
    expect(half.blocks).to.deep.equal([{ kind: 'text', text: 'I will', isOpen: true }])
    expect(half.status).to.equal('running')
    expect(reduceAll(events.slice(0, 9)).usage).to.include({ input_tokens: 1791, turn_count: 1 })
  })

  it('shows a sub-agent in its place with blocks of its own, and whose request waits', () => {
    const events = recorded('permission-of-a-sub-agent')
    const waiting = reduceAll(events.slice(0, 7))
    expect(waiting.status).to.equal('waiting')
    expect(waiting.permissions).to.have.length(1)
    expect(waiting.permissions[0]).to.include({ state: 'pending' })
    expect(waiting.permissions[0]?.subagentId).to.match(/^sub_/)
    const { blocks, permissions } = reduceAll(events)
    expect(blocks.map(({ kind }) => kind)).to.deep.equal(['tool', 'subagent', 'text'])
    const subagent = blocks[1]
    expect(subagent).to.nested.include({ kind: 'subagent', 'end.status': 'completed', 'start.description': 'writes' })
    if (subagent?.kind !== 'subagent') throw new Error('no sub-agent')
    expect(subagent.blocks.map(({ kind }) => kind)).to.deep.equal(['tool', 'text'])
    expect(permissions[0]).to.nested.include({ state: 'allowed', 'resolution.how': 'reply' })
  })

  it('puts the sub-agent of a sub-agent into that one', () => {
    const start = (id: number, subagent_id: string, parent?: string): RunEvent => ({
      id,
      event: 'subagent_start',
      data: { subagent_id, start_time_ms: 0, ...(parent !== undefined && { parent_subagent_id: parent }) },
    })
    const text = (id: number, subagent_id: string, say: string): RunEvent => ({
      id,
      event: 'subagent_event',
      data: { subagent_id, event_type: 'text', text: say },
    })
    const view = reduceAll([start(1, 'a'), start(2, 'b', 'a'), text(3, 'b', 'inner'), text(4, 'a', 'outer')])
    expect(view.blocks).to.have.length(1)
    const [outer] = view.blocks
    if (outer?.kind !== 'subagent') throw new Error('no sub-agent')
    expect(outer.blocks.map(({ kind }) => kind)).to.deep.equal(['subagent', 'text'])
    expect(outer.blocks[0]).to.deep.nested.include({ 'start.subagent_id': 'b', 'blocks[0].text': 'inner' })
  })

  it('shows how a request was decided, and closes with the run those that were not', () => {
    expect(reduceAll(recorded('permission-denied')).permissions[0]).to.include({ state: 'denied' })
    const cut = [...recorded('permission').slice(0, 3), ...recorded('failed').slice(-1)]
    const view = reduceAll(cut.map((event, i) => ({ ...event, id: i + 1 })))
    expect(view.permissions[0]).to.include({ state: 'ended' })
    expect(view).to.nested.include({ status: 'failed', 'end.data.code': 'provider_unavailable' })
  })

  it('shows the input that a call has run with when the reply has changed it', () => {
    const events = recorded('permission').map((event) =>
      event.event === 'permission_resolved' ? { ...event, data: { ...event.data, input: { path: 'b.txt' } } } : event,
    )
    expect(reduceAll(events).blocks[0]).to.deep.nested.include({ 'call.input': { path: 'b.txt' } })
  })

  it('D40.4: shows the input of a call also when its tool has asked a question, whose answer is none', () => {
    const form = { kind: 'form', schema: {} } as const
    const of = (wanted: boolean) =>
      recorded('permission').map((event) => {
        if (event.event === 'permission_request' && wanted) return { ...event, data: { ...event.data, preview: form } }
        if (event.event !== 'permission_resolved') return event
        return { ...event, data: { ...event.data, input: { branch: 'main' } } }
      })
    expect(reduceAll(of(true)).blocks).to.deep.equal(reduceAll(recorded('permission')).blocks)
    expect(reduceAll(of(false)).blocks).to.not.deep.equal(reduceAll(recorded('permission')).blocks)
  })

  it('shows a run that was recorded without increments like the one that was followed', () => {
    const events = recorded('cuts')
    const { blocks } = reduceAll(events.filter(({ event }) => event !== 'text_delta'))
    expect(blocks).to.deep.equal(reduceAll(events).blocks)
  })

  it('changes nothing for an event that it has seen, or one behind the end, and leaves the view before as it was', () => {
    const events = recorded('whole')
    const [first, second, third] = events
    if (!first || !second || !third) throw new Error('too short')
    const before = reduceAll([first, second])
    const copy = structuredClone(before)
    expect(reduceRun(before, second)).to.equal(before)
    reduceRun(before, third)
    expect(before).to.deep.equal(copy)
    const ended = reduceAll(events)
    expect(reduceRun(ended, { ...first, id: 99 })).to.equal(ended)
  })

  it('an increment reads as much of the view as the first ones did, however many came before', () => {
    let view: RunView | undefined
    const reads = Array.from({ length: 1_000 }, (_, i) => {
      const counted = countReads(view ?? EMPTY_RUN)
      const increment: RunEvent = { id: i + 1, event: 'text_delta', data: { text: 'word ' } }
      expect(reduceRun(counted.value, increment).blocks).to.have.length(1)
      view = reduceRun(view, increment)
      return counted.reads
    })
    expect(new Set(reads.slice(1)).size).to.equal(1)
  })

  /** The view after these events, which are numbered from 1 on. */
  const viewOf = (...events: [event: string, data: object][]) =>
    reduceAll(events.map(([event, data], i) => ({ id: i + 1, event, data }) as RunEvent))
  const call = (id: string) => ({ id, tool_name: 'Read', input: {} })
  const within = (event_type: string, data: object) =>
    ['subagent_event', { subagent_id: 's', event_type, ...data }] as [string, object]
  const turnEnd = { input_tokens: 2, output_tokens: 1, cost_usd: 0.5, turn_number: 1 }
  const totals = { total_tokens: 7, total_input_tokens: 4, total_output_tokens: 3, cost_usd: 2, turn_count: 5 }
  const begun: [string, object] = ['subagent_start', { subagent_id: 's', start_time_ms: 0 }]

  const ROWS: [what: string, view: () => RunView, expected: object][] = [
    [
      'thoughts, words of a person and files are blocks, and a thought ends no text',
      () =>
        viewOf(
          ...([
            ['text_delta', { text: 'a' }],
            ['thinking_delta', { text: 'h' }],
          ] as [string, object][]),
          ...([
            ['thinking', { text: 'hm' }],
            ['steered', { id: 'st', text: 'b' }],
          ] as [string, object][]),
          ['artifact', { file_id: 'f' }],
        ),
      {
        blocks: [
          { kind: 'text', text: 'a', isOpen: true },
          { kind: 'thinking', text: 'hm', isOpen: false },
          { kind: 'steered', id: 'st', text: 'b' },
          { kind: 'artifact', file_id: 'f' },
        ],
      },
    ],
    [
      'a result is that of the newest call of its id, and one of an unknown call is none',
      () =>
        viewOf(
          ['tool_use', call('c')],
          ['tool_use', call('c')],
          ['tool_result', { id: 'c' }],
          ['tool_result', { id: 'x' }],
        ),
      {
        blocks: [
          { kind: 'tool', call: call('c'), startedAt: undefined },
          { kind: 'tool', call: call('c'), startedAt: undefined, result: { id: 'c' } },
        ],
      },
    ],
    [
      'a warning that makes nothing void is one of many',
      () =>
        viewOf(
          ['turn_start', { turn_number: 1 }],
          ['text', { text: 'a' }],
          ['warning', { code: 'other', detail: { turn_number: 1 } }],
        ),
      {
        blocks: [{ kind: 'text', text: 'a', isOpen: false }],
        warnings: [{ code: 'other', detail: { turn_number: 1 } }],
      },
    ],
    [
      'the usage of a sub-agent is that of its run, and its warning, too; another one changes nothing',
      () =>
        viewOf(
          begun,
          within('turn_end', { ...turnEnd, cache_read_tokens: 9 }),
          ['turn_end', turnEnd],
          within('warning', { code: 'w' }),
          ['subagent_end', { subagent_id: 'other' }],
        ),
      {
        usage: { input_tokens: 4, output_tokens: 2, cache_read_tokens: 9, cost_usd: 1, turn_count: 2 },
        warnings: [{ subagent_id: 's', event_type: 'warning', code: 'w' }],
        blocks: [{ kind: 'subagent', start: begun[1], blocks: [] }],
      },
    ],
    [
      'the totals of the end count, where it has them',
      () => viewOf(['turn_end', turnEnd], ['error', { code: 'x', ...totals, cache_read_tokens: 1 }]),
      {
        status: 'failed',
        usage: { input_tokens: 4, output_tokens: 3, cache_read_tokens: 1, cost_usd: 2, turn_count: 5 },
      },
    ],
    [
      'an end without totals leaves the usage',
      () => viewOf(['turn_end', turnEnd], ['plan_queued', { plan_id: 'p', total_tokens: undefined }]),
      {
        status: 'plan_queued',
        usage: { input_tokens: 2, output_tokens: 1, cache_read_tokens: 0, cost_usd: 0.5, turn_count: 1 },
      },
    ],
    [
      'D40.4: the answer to a question of a sub-agent is not the input of its call',
      () =>
        viewOf(
          begun,
          within('tool_use', call('c')),
          ['permission_request', { id: 'q', preview: { kind: 'link' } }],
          within('permission_resolved', { id: 'q', tool_use_id: 'c', input: { a: 1 } }),
          within('permission_resolved', { id: 'p', tool_use_id: 'c', input: { b: 2 } }),
        ),
      {
        blocks: [
          {
            ...{ kind: 'subagent', start: begun[1] },
            blocks: [
              {
                ...{ kind: 'tool', startedAt: undefined },
                call: { subagent_id: 's', event_type: 'tool_use', ...call('c'), input: { b: 2 } },
              },
            ],
          },
        ],
      },
    ],
  ]
  for (const [what, view, expected] of ROWS)
    it(`shows that ${what}`, () => {
      expect(view()).to.deep.include(expected)
    })

  it('an error ends the run also with the number of the last event', () => {
    const end = { id: 1, event: 'error', data: { code: 'worker_lost' } } as RunEvent
    expect(reduceRun(viewOf(['text', { text: 'a' }]), end)).to.include({ status: 'failed', lastEventId: 1 })
  })

  it('D32.7a: what came of a turn that another server begins anew is void', () => {
    const at = (id: number, event: string, data: object) => ({ id, event, data }) as RunEvent
    const events = [
      at(1, 'turn_start', { turn_number: 1, model: 'm' }),
      at(2, 'text', { text: 'kept' }),
      at(3, 'turn_end', { turn_number: 1, input_tokens: 1, output_tokens: 1, cost_usd: 0 }),
      at(4, 'turn_start', { turn_number: 2, model: 'm' }),
      at(5, 'tool_use', { id: 'c1', tool_name: 'Write', input: {} }),
      at(6, 'permission_request', { id: 'p1', tool_use_id: 'c1', tool_name: 'Write', input: {} }),
      at(7, 'warning', { code: 'run_recovered', message: 'again', detail: { turn_number: 2 } }),
      at(8, 'turn_start', { turn_number: 2, model: 'm' }),
      at(9, 'text_delta', { text: 'new' }),
    ]
    const view = reduceAll(events)
    expect(view.blocks.map((block) => block.kind === 'text' && block.text)).to.deep.equal(['kept', 'new'])
    expect([view.permissions, view.status, view.usage.turn_count]).to.deep.equal([[], 'running', 1])
    const anew = [at(10, 'warning', { code: 'run_recovered', detail: { turn_number: 1 } })]
    expect([...events, ...anew].reduce<RunView>((so, event) => reduceRun(so, event), EMPTY_RUN).blocks).to.deep.equal(
      [],
    )
  })
})
