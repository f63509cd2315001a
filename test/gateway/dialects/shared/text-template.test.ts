// Tests text-template.ts, and the wires that write the pieces of a text with what is around them written once.
import { expect } from 'chai'
import { rpcAnswer } from '../../../../services/gateway/dialects/a2a/rpc.ts'
import { rpcWire } from '../../../../services/gateway/dialects/a2a/rpc-wire.ts'
import { TaskProjection } from '../../../../services/gateway/dialects/a2a/task-projection.ts'
import { AG_UI_WIRE } from '../../../../services/gateway/dialects/ag-ui/events.ts'
import { ChatProjection, chatWire } from '../../../../services/gateway/dialects/openai/chat-projection.ts'
import { responseWire } from '../../../../services/gateway/dialects/openai/response-wire.ts'
import { ResponsesProjection } from '../../../../services/gateway/dialects/openai/responses-projection.ts'
import type { Projection } from '../../../../services/gateway/dialects/shared/projection.ts'
import type { Wire } from '../../../../services/gateway/dialects/shared/response-stream.ts'
import { UI_WIRE } from '../../../../services/gateway/dialects/ui/chunks.ts'
import { renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { LargeFrame } from '../../../../shared/cluster/journal/large-frame.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import { storedText } from '../../../../shared/tenancy/events/event-text.ts'
import * as of from '../recorded.ts'

const HARD = ['', ' "quoted" ', '$& $1', 'a\u0000b', '\n\n', '\u2028', '\u2029\u0085', '\ud83d', '{"delta":"x"}']
const RUN: AgentEvent[] = [
  ...[of.turn(1), ...of.thought(...HARD), ...of.said(...HARD), of.call('t1'), of.result('t1')],
  ...[...of.said(...HARD, 'a second text'), of.turnEnd(1), of.done],
]

const FACTS = { id: 'resp_1', runId: of.RUN, part: 1, created: 1, echo: { model: 'main' } }
const OPTIONS = { id: 'chatcmpl-1', model: 'main', created: 1, includesUsage: true }

function written<Chunk>(projection: Projection<Chunk>, wire: Wire<Chunk>): { chunks: Chunk[]; values: unknown[] } {
  const { chunks } = of.respond(projection, RUN)
  const text = chunks.map((chunk) => wire.render([chunk])).join('')
  expect(wire.render(chunks)).to.equal(text)
  expect(text).to.not.match(/[\u2028\u2029\u0085]/)
  return { chunks, values: [...text.matchAll(/^data: ([^\n]*)$/gm)].map(([, json = '']) => JSON.parse(json)) }
}

describe('pieces of a text', () => {
  it('are written as JSON.stringify would, whatever is in them', () => {
    const chat = written(new ChatProjection(OPTIONS), chatWire())
    expect(chat.values).to.deep.equal(JSON.parse(JSON.stringify(chat.chunks)))
    const responses = written(new ResponsesProjection(FACTS), responseWire())
    expect(responses.values).to.deep.equal(JSON.parse(JSON.stringify(responses.chunks)))
    const task = written(new TaskProjection({ runId: of.RUN, contextId: 'c' }), rpcWire(1))
    const answers = task.chunks.map((answer) => rpcAnswer(1, answer))
    expect(task.values).to.deep.equal(JSON.parse(JSON.stringify(answers)))
  })

  it('of a response are left out up to the number that the client has', () => {
    const { chunks } = of.respond(new ResponsesProjection(FACTS), RUN)
    const after = responseWire(9).render(chunks)
    expect(responseWire().render(chunks).endsWith(after)).to.equal(true)
    expect(/"sequence_number":(\d+)/.exec(after)?.[1]).to.equal('10')
  })

  it('have no line end of Unicode raw in a frame, in whichever dialect', () => {
    const text = 'a\u2028b\u2029c\u0085d'
    const event: AgentEvent = { type: 'text', text }
    const frames = [
      UI_WIRE.render([{ type: 'text-delta', id: 'a', delta: text }]),
      AG_UI_WIRE.render([{ type: 'TEXT_MESSAGE_CONTENT', delta: text }]),
      renderFrame(1, event),
      renderFrame(1, { type: 'tool_use', id: 'a', tool_name: 'T', input: { [text]: [text] } }),
      new LargeFrame(1, { type: 'tool_result', id: text, tool_name: 'T', output: text, is_error: false })
        .piece(0)
        .toString(),
      storedText({ type: 'config.changed', at: 'now', data: { subject: text } }),
    ]
    for (const frame of frames) expect(frame.split(/[\u2028\u2029\u0085]/)).to.have.length(1)
  })
})
