// Tests text-template.ts, and the wires that write the pieces of a text with what is around them written once.
import { expect } from 'chai'
import { TaskProjection } from '../../../../services/gateway/dialects/a2a/projection.ts'
import { rpcAnswer } from '../../../../services/gateway/dialects/a2a/rpc.ts'
import { rpcWire } from '../../../../services/gateway/dialects/a2a/rpc-wire.ts'
import { ChatProjection, chatWire } from '../../../../services/gateway/dialects/openai/chat-projection.ts'
import { responseWire } from '../../../../services/gateway/dialects/openai/response-wire.ts'
import { ResponsesProjection } from '../../../../services/gateway/dialects/openai/responses-projection.ts'
import type { Projection } from '../../../../services/gateway/dialects/shared/projection.ts'
import type { Wire } from '../../../../services/gateway/dialects/shared/response-stream.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

const HARD = ['', ' "quoted" ', '$& $1', 'a\u0000b', '\n\n', '\u2028', '\ud83d', '{"delta":"x"}']
const RUN: AgentEvent[] = [
  ...[of.turn(1), ...of.thought(...HARD), ...of.said(...HARD), of.call('t1'), of.result('t1')],
  ...[...of.said(...HARD, 'a second text'), of.turnEnd(1), of.done],
]

const FACTS = { id: 'resp_1', runId: of.RUN, created: 1, echo: { model: 'main' } }
const OPTIONS = { id: 'chatcmpl-1', model: 'main', created: 1, includesUsage: true }

function written<Chunk>(projection: Projection<Chunk>, wire: Wire<Chunk>): { chunks: Chunk[]; values: unknown[] } {
  const { chunks } = of.respond(projection, RUN)
  const text = chunks.map((chunk) => wire.render([chunk])).join('')
  expect(wire.render(chunks)).to.equal(text)
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
})
