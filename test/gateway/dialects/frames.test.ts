// Tests the projections of all dialects and their wires: what a client of each gets of every kind of run, to the letter.
import { readFile, writeFile } from 'node:fs/promises'
import { EventSchemas } from '@ag-ui/core/schemas'
import * as seven from 'ai'
import * as six from 'ai-6'
import { expect } from 'chai'
import { PlanProjection, type PlanTaskEvent } from '../../../services/gateway/dialects/a2a/plan-projection.ts'
import { rpcWire } from '../../../services/gateway/dialects/a2a/rpc-wire.ts'
import { TaskProjection } from '../../../services/gateway/dialects/a2a/task-projection.ts'
import { AgUiProjection } from '../../../services/gateway/dialects/ag-ui/ag-ui-projection.ts'
import { AG_UI_WIRE } from '../../../services/gateway/dialects/ag-ui/events.ts'
import { ChatProjection, chatWire } from '../../../services/gateway/dialects/openai/chat-projection.ts'
import { FlowProjection } from '../../../services/gateway/dialects/openai/flow-projection.ts'
import { responseWire } from '../../../services/gateway/dialects/openai/response-wire.ts'
import { ResponsesProjection } from '../../../services/gateway/dialects/openai/responses-projection.ts'
import type { Part, Projection } from '../../../services/gateway/dialects/shared/projection.ts'
import type { Wire } from '../../../services/gateway/dialects/shared/response-stream.ts'
import { UI_WIRE, type UiChunk } from '../../../services/gateway/dialects/ui/chunks.ts'
import { UiMessageProjection } from '../../../services/gateway/dialects/ui/message.ts'
import { UiProjection } from '../../../services/gateway/dialects/ui/ui-projection.ts'
import {
  type AgentEvent,
  errorEvent,
  type FlowEvent,
  type PlanEvent,
  type RunEvent,
} from '../../../shared/kernel/events.ts'
import * as of from './recorded.ts'

type Run = [what: string, events: readonly (RunEvent | PlanTaskEvent)[], part?: Part]

const AT = '2026-11-21T09:35:00.000Z'
const FILE = { file_id: 'file_1', name: 'plan.md', media_type: 'text/markdown', bytes: 6, title: 'The plan' }
const own = (id: string): AgentEvent => ({
  ...{ type: 'tool_use', id, tool_name: 'pick', input: { of: 2 }, executor: 'client', expires_at: AT },
})
const picked = (id: string, output: string, how?: 'reply' | 'timeout'): AgentEvent => ({
  ...{ type: 'tool_result', id, tool_name: 'pick', output, is_error: false, ...(how && { how }) },
})
const last = (what: string, event: AgentEvent): Run => [
  what,
  [
    of.turn(1),
    of.begun('s'),
    ...of.within('s', of.turn(1), ...of.said('half').slice(0, 1)),
    ...of.said('I beg').slice(0, 1),
    event,
  ],
]
const typed: AgentEvent = { ...(of.done as Extract<AgentEvent, { type: 'done' }>), output: { n: 1 } }

const WAITING: Run = ['waits for a call of its own and one of a sub-agent', of.WITH_SUB_AGENT]
const CLIENT_CALLS: Run = [
  'waits for calls of the client',
  [of.turn(1), ...of.said('Pick.'), own('k1'), own('k2'), of.turnEnd(1)],
]
const TYPED: Run = ['has a typed answer', [of.turn(1), ...of.thought('hm'), ...of.said('{"n":'), of.turnEnd(1), typed]]

const { expires_at: _, ...ending } = own('k1') as Extract<AgentEvent, { type: 'tool_use' }>
const CALLS_AT_END: Run = [
  'ends with calls of the client',
  [of.turn(1), ...of.said('Pick.'), ending, of.turnEnd(1), typed],
]
const CUT: Run = ['makes another call in the turn that begins anew', of.CUT_ANEW]

const RUNS: readonly Run[] = [
  WAITING,
  ['goes on behind the answers to these', of.WITH_SUB_AGENT, { known: new Set(['perm_1', 'perm_2']), passed: 99 }],
  ['is asked by the tools of its calls', of.WITH_QUESTIONS, { passed: 99 }],
  ['begins a turn anew', of.RECOVERED],
  ['brings the rest of a turn', of.REST],
  CUT,
  ['makes a call of the void turn again', of.CUT_AGAIN],
  CLIENT_CALLS,
  CALLS_AT_END,
  [
    'goes on behind the calls of the client',
    [
      ...[of.turn(1), own('k1'), own('k2'), of.beginsAnew(1), of.turn(1), own('k1'), own('k2'), own('k3')],
      ...[
        picked('k1', '{"red":1}', 'reply'),
        picked('k2', 'blue', 'reply'),
        picked('k3', 'null', 'timeout'),
        of.call('c'),
        of.result('c', '7'),
        of.turnEnd(1),
        of.done,
      ],
    ],
    { known: new Set(['k1', 'k2', 'k3']), passed: 99 },
  ],
  [
    'is told something, delivers a file and starts sub-agents of which one fails',
    [
      ...[
        of.turn(1),
        of.call('c', { of: 1 }),
        { type: 'artifact', ...FILE, tool_use_id: 'c' } as const,
        of.progress('c'),
      ],
      ...[
        of.result('c', 'no', true),
        { type: 'steered', id: 'steer_1', text: 'Stop', by: 'ann' } as const,
        of.begun('s'),
      ],
      ...of.within(
        's',
        of.warned,
        ...of.thought('h', 'm'),
        of.call('x'),
        of.progress('x'),
        of.result('x'),
        of.turnEnd(1),
      ),
      ...[of.begun('t', 's'), { ...of.warned, detail: { turn_number: 1 } } as AgentEvent],
      ...of.within('t', of.turn(1), of.call('x'), ...of.said('', 'so').slice(0, 2)),
      { type: 'subagent_end', subagent_id: 't', duration_ms: 1, status: 'failed', result: '', error: 'no model' },
      ...[of.ended('s'), ...of.thought('h'), ...of.said('Done', '.')],
      ...[{ ...of.turnEnd(1), cache_read_tokens: 2 } as AgentEvent, of.done],
    ],
  ],
  [
    'is recorded without its pieces',
    [
      of.turn(1),
      of.thought('hm').at(-1) ?? of.warned,
      ...of.said('one').slice(-1),
      ...of.said('two').slice(-1),
      of.done,
    ],
  ],
  TYPED,
  last('fails', of.failed),
  last('is lost with its worker', of.lost),
  last('is of a session that was deleted', errorEvent('session_deleted', 'it is gone')),
  last('is out of money', errorEvent('budget_exhausted', 'no more')),
  last('finds no room', errorEvent('no_room', 'all places are taken')),
  last('is cancelled', of.cancelled),
  last('meets a limit of its provider', errorEvent('provider_rate_limited', 'too many')),
  last('queues a plan', of.queued),
  last('queues no plan', { type: 'plan_queued', note: 'The plan has no steps.' }),
]

const result = {
  type: 'result',
  flow_id: 'total',
  flow_version: 1,
  trace_id: 'trace_1',
  served_instance: 'main',
  at: AT,
} as const
const progress = (turn_number: number): FlowEvent => ({
  ...{
    type: 'progress',
    agent: 'main',
    turn_number,
    model: 'm',
    input_tokens: 3,
    output_tokens: 2,
    cost_usd: 0,
    at: AT,
  },
})
const FLOWS: readonly Run[] = [
  [
    'has an output and a file',
    [
      {
        type: 'started',
        trace_id: 'trace_1',
        flow_id: 'total',
        flow_version: 1,
        provider_instance: 'main',
        model: 'm',
        at: AT,
      },
      ...[progress(1), { ...of.warned, agent: 'main', at: AT } as FlowEvent, progress(2)],
      { ...result, verdict: 'ok', output: { total: 120 }, artifacts: [FILE] },
    ],
  ],
  [
    'has an output that does not fit',
    [
      {
        ...result,
        verdict: 'invalid_output',
        output: null,
        problems: [{ path: '/total', message: 'must be a number' }],
      },
    ],
  ],
  ['fails', [progress(1), { ...errorEvent('provider_rejected', 'no'), status: 502, trace_id: 'trace_1', at: AT }]],
]

const PLAN_ID = `plan_${'0'.repeat(32)}`
const step = (type: 'step_started' | 'step_ended', id: string, fields: object = {}) =>
  ({ type, plan_id: PLAN_ID, step_id: id, at: AT, ...fields }) as PlanEvent
const started = { type: 'plan_started', plan_id: PLAN_ID, at: AT } as const
const USAGE = { input_tokens: 5, output_tokens: 4, cost_usd: 0.1 }
const PLANS: readonly Run[] = [
  [
    'is carried out',
    [
      ...[started, started, step('step_started', 'one'), step('step_started', 'one')],
      ...[step('step_ended', 'one', { status: 'done', output: 'read' }), step('step_ended', 'one', { status: 'done' })],
      ...[step('step_ended', 'two', { status: 'failed', error: 'no model' })],
      { type: 'plan_ended', plan_id: PLAN_ID, status: 'failed', error: 'a step has failed', at: AT },
    ],
  ],
  ['is cancelled', [{ type: 'plan_ended', plan_id: PLAN_ID, status: 'cancelled', at: AT, usage: USAGE }]],
  ['is cut off', [errorEvent('internal', 'it broke')]],
]
const plan = {
  ...{ id: PLAN_ID, status: 'queued', created_at: AT, steps: [{ id: 'one' }, { id: 'two' }] },
  ...{ step_statuses: { one: 'pending', two: 'pending' }, usage: { total_tokens: 0 } },
} as unknown as ConstructorParameters<typeof PlanProjection>[1]

type Show = (events: AgentEvent[], part?: Part) => Promise<string>

/** What a reader gets of a run, and of one that is cut off. `check`: what the package of the format says of a chunk. */
const streamed =
  <Chunk>(make: () => Projection<Chunk>, wire: () => Wire<Chunk>, check: (chunk: Chunk) => unknown = () => {}): Show =>
  async (events, part) => {
    const { render, end } = wire()
    const { chunks, isOver } = of.respond(make(), events, part)
    for (const chunk of chunks) await check(chunk)
    return render(chunks) + (isOver ? end : '') + (events.length > 0 ? '' : render(make().cut('slow_consumer')))
  }

/** Both versions of the package `ai` take the chunk. */
async function isTaken(chunk: UiChunk): Promise<void> {
  for (const { uiMessageChunkSchema } of [seven, six])
    expect((await uiMessageChunkSchema().validate?.(chunk))?.success, chunk.type).to.equal(true)
}

const agUi = (isCurrent: boolean) => () =>
  new AgUiProjection({ threadId: 't', runId: 'r', engineRunId: of.RUN, isCurrent })
const chat = (isTyped: boolean) => () =>
  new ChatProjection({ id: 'c', model: 'm', created: 1, includesUsage: !isTyped, isTyped })
const responses = (isTyped: boolean) => () =>
  new ResponsesProjection({ id: 'resp_1', runId: of.RUN, part: 1, created: 1, isTyped, echo: { model: 'm' } })
const a2a = () =>
  new TaskProjection({ runId: of.RUN, contextId: 'c' }, { isQueued: true }) as Projection<unknown> as never

const FORMATS: readonly (readonly [file: string, show: Show, runs: readonly Run[]])[] = [
  [
    'ui',
    streamed(
      () => new UiProjection(of.RUN, 'chat-1', '/v1'),
      () => UI_WIRE,
      isTaken,
    ),
    RUNS,
  ],
  [
    'ui-message',
    async (events, part) => {
      const projection = new UiMessageProjection(of.RUN, 'chat-1', '/v1')
      of.respond(projection, events, part)
      return [projection.message.metadata, ...projection.message.parts].map((each) => JSON.stringify(each)).join('\n')
    },
    RUNS,
  ],
  ['ag-ui', streamed(agUi(true), () => AG_UI_WIRE, EventSchemas.parse), RUNS],
  ['ag-ui-before-1.0', streamed(agUi(false), () => AG_UI_WIRE, EventSchemas.parse), [WAITING, CUT, ...RUNS.slice(-12)]],
  ['openai-chat', streamed(chat(false), chatWire), RUNS],
  ['openai-chat-typed', streamed(chat(true), chatWire), [TYPED, CLIENT_CALLS, CALLS_AT_END]],
  ['openai-responses', streamed(responses(false), () => responseWire()), RUNS],
  ['openai-responses-typed', streamed(responses(true), () => responseWire()), [TYPED, CLIENT_CALLS, CALLS_AT_END]],
  [
    'openai-flow',
    streamed(
      () => new FlowProjection({ id: 'c', model: 'flow:total', created: 1, includesUsage: true }, 'unfit') as never,
      chatWire,
    ),
    FLOWS,
  ],
  ['a2a', streamed(a2a, () => rpcWire(7)), [...RUNS, ...FLOWS]],
  [
    'a2a-plan',
    streamed(
      () => new PlanProjection({ runId: of.RUN, contextId: 'c' }, plan) as never,
      () => rpcWire('p'),
    ),
    PLANS,
  ],
]

describe('what a client gets of a run', () => {
  for (const [file, show, runs] of FORMATS)
    it(`D31.3, D49.7, D50.4: over ${file} is what its file has, to the letter; WRITE_FRAMES=1 writes the file anew`, async () => {
      const path = new URL(`frames/${file}.txt`, import.meta.url)
      const shown: string[] = []
      for (const [what, events, part] of [...runs, ['is cut off before it begins', []] as Run]) {
        const frames = await show([...events] as AgentEvent[], part)
        const lines = frames
          .replaceAll(/^event: .*\n/gm, '')
          .replaceAll('\n\n', '\n')
          .trim()
        shown.push(`# A run that ${what}\n${lines}\n`)
      }
      const now = shown.join('\n')
      if (process.env['WRITE_FRAMES'] === '1') await writeFile(path, now)
      expect(now).to.equal(await readFile(path, 'utf8'))
    })
})
