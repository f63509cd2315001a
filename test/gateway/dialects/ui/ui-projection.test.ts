import type { UIMessage, UIMessageChunk } from 'ai'
import * as seven from 'ai'
import * as six from 'ai-6'
import { expect } from 'chai'
import type { UiChunk } from '../../../../services/gateway/dialects/ui/chunks.ts'
import { UiProjection } from '../../../../services/gateway/dialects/ui/ui-projection.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import * as of from '../recorded.ts'

const respond = (events: AgentEvent[], ...part: [Parameters<typeof of.respond>[2]?]) =>
  of.respond(new UiProjection(of.RUN, 'chat-1'), events, ...part).chunks

type Package = Pick<typeof seven, 'readUIMessageStream' | 'uiMessageChunkSchema'>

/** The message that a package's own reader makes of one response, or of several. */
async function readBy(reader: Package, responses: readonly UiChunk[][]): Promise<UIMessage | undefined> {
  const schema = reader.uiMessageChunkSchema()
  let message: UIMessage | undefined
  for (const chunks of responses) {
    for (const chunk of chunks) expect(await schema.validate?.(chunk), chunk.type).to.include({ success: true })
    const stream = ReadableStream.from<UIMessageChunk>(chunks)
    const options = { stream, ...(message && { message }), terminateOnError: true }
    for await (const each of reader.readUIMessageStream(options)) message = each
  }
  return message
}

/** The message that version 7 makes; version 6 makes one with the same parts. */
async function messageOf(...responses: UiChunk[][]): Promise<UIMessage | undefined> {
  const [message, older] = await Promise.all([readBy(seven, responses), readBy(six as unknown as Package, responses)])
  expect(partsOf(older)).to.deep.equal(partsOf(message))
  return message
}

const partsOf = (message: UIMessage | undefined) =>
  message?.parts.map((part) => ('state' in part ? `${part.type} ${part.state}` : part.type))

describe("the UI message stream of a run, read by the package's own reader", () => {
  const known = new Set(['perm_1', 'perm_2'])

  it('has a message with the id of the run, its thoughts, texts, calls and sub-agents, and stops at the approvals', async () => {
    const message = await messageOf(respond(of.WITH_SUB_AGENT))
    expect(message).to.include({ id: of.RUN, role: 'assistant' })
    expect(partsOf(message)).to.deep.equal([
      'step-start',
      'reasoning done',
      'text done',
      'dynamic-tool approval-requested',
      'dynamic-tool output-available', // For the time being: its sub-agent waits.
      'data-subagent',
      'dynamic-tool approval-requested',
    ])
  })

  it('goes on in the same message, and two agents whose calls have the same id do not get into each other', async () => {
    const all = respond(of.WITH_SUB_AGENT, { known, passed: 99 })
    const message = await messageOf(respond(of.WITH_SUB_AGENT), all)
    expect(partsOf(message)?.slice(3)).to.deep.equal([
      'dynamic-tool output-available',
      'dynamic-tool output-available',
      'data-subagent',
      'dynamic-tool output-denied',
      'data-approval',
      'data-approval',
      'step-start',
      'text done',
    ])
    const calls = message?.parts.filter((part) => part.type === 'dynamic-tool')
    expect(calls?.map((part) => 'output' in part && part.output)).to.deep.equal(['written', 'helped', undefined])
    expect(message?.metadata).to.deep.include({ runId: of.RUN, sessionId: 'chat-1', stopReason: 'end_turn' })
  })

  it('D32.7a: a turn that begins anew is a step of its own, behind a part by which a page knows what is void', async () => {
    const message = await messageOf(respond(of.RECOVERED))
    expect(partsOf(message)).to.deep.equal(['step-start', 'text done', 'data-warning', 'step-start', 'text done'])
    const texts = message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    expect(texts).to.deep.equal(['I beg', 'I write.'])
    expect(message?.parts[2]).to.have.nested.property('data.turnNumber', 1)
    expect(respond(of.RECOVERED).filter(({ type }) => type === 'finish-step')).to.have.length(2)
  })

  it('D32.7a: the rest of a complete turn that comes without its deltas goes on in the same part, and its calls are not void', async () => {
    const message = await messageOf(respond(of.REST))
    expect(partsOf(message)).to.deep.equal([
      ...['step-start', 'text done', 'data-warning', 'dynamic-tool output-available', 'data-warning'],
      ...['step-start', 'text done'],
    ])
    const texts = message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    expect(texts).to.deep.equal(['I read.', 'I write.'])
    expect(partsOf(await messageOf(respond(of.REST_OF_CALL)))).to.include('dynamic-tool output-available')
  })

  it('D32.7a: calls and sub-agents of a void turn are closed, those that are made again stay, and the run pauses for the request', async () => {
    const statesOf = async (events: AgentEvent[]) => {
      const message = await messageOf(respond(events))
      const states = message?.parts.flatMap((part) =>
        part.type === 'dynamic-tool' ? [`${part.toolCallId} ${part.state}`] : [],
      )
      const agents = message?.parts.flatMap((part) => (part.type === 'data-subagent' ? [part.data] : []))
      expect(agents).to.have.nested.property('[0].status', 'cancelled')
      expect(respond(events).at(-1)).to.include({ finishReason: 'tool-calls' })
      return states
    }
    expect(await statesOf(of.CUT_ANEW)).to.deep.equal([
      ...['c1 output-error', 'c2 output-error', 'sub_1/c1 output-error', 'd1 approval-requested'],
    ])
    expect(await statesOf(of.CUT_AGAIN)).to.deep.equal([
      ...[
        'c1 output-error',
        'c2 output-error',
        'sub_1/c1 output-error',
        'c1 approval-requested',
        'c2 output-available',
      ],
    ])
  })

  it('a run that is recorded without its pieces has the same texts', async () => {
    const events = of.WITH_SUB_AGENT.filter(({ type }) => !type.endsWith('_delta'))
    const [live, recorded] = [await messageOf(respond(of.WITH_SUB_AGENT)), await messageOf(respond(events))]
    expect(recorded?.parts).to.deep.equal(live?.parts)
  })

  it('an input that the answer has changed is the one that is shown', async () => {
    const events = [of.turn(1), of.call('a'), of.asked('p', 'a'), of.resolved('p', 'a', { input: { path: 'b' } })]
    const message = await messageOf(respond([...events, of.result('a')], { passed: 99 }))
    expect(message?.parts.at(1)).to.deep.include({ input: { path: 'b' }, state: 'output-available' })
  })

  it('D40.4: the answer to a question of a tool is not the input of its call, and a declined one does not deny the call', async () => {
    const pauses = [0, 1, 2].map((count) => respond(of.WITH_QUESTIONS, { pauses: count }))
    for (const message of [await messageOf(...pauses), await messageOf(respond(of.WITH_QUESTIONS, { passed: 99 }))]) {
      const calls = message?.parts.filter((part) => part.type === 'dynamic-tool')
      expect(calls?.map(({ state, input }) => ({ state, input }))).to.deep.equal([
        { state: 'output-available', input: { path: 'b' } },
        { state: 'output-available', input: { path: 'a' } },
      ])
    }
  })

  it('a call that was allowed elsewhere asks no longer while it works, and the answer is a part of the message', async () => {
    const asked = [of.turn(1), of.call('a'), of.asked('p', 'a')]
    const message = await messageOf(respond([...asked, of.resolved('p', 'a', { reason: 'by phone' })], { passed: 99 }))
    expect(message?.parts.at(1)).to.deep.include({ input: { path: 'a' }, state: 'input-available' })
    expect(message?.parts.at(2)).to.deep.include({
      ...{ type: 'data-approval', id: 'p' },
      data: { toolCallId: 'a', approved: true, reason: 'by phone' },
    })
  })

  it('what is only of the moment is sent and not kept', async () => {
    const chunks = respond([of.turn(1), of.warned, of.call('a'), of.progress('a'), of.result('a', 'no', true)])
    expect(chunks.filter((chunk) => 'transient' in chunk).map(({ type }) => type)).to.deep.equal([
      'data-warning',
      'data-progress',
    ])
    expect(partsOf(await messageOf(chunks))).to.deep.equal(['step-start', 'dynamic-tool output-error'])
  })

  it('a message that is lost with its worker says whether the session is kept', async () => {
    const chunks = respond([of.turn(1), of.lost])
    const message = await messageOf(chunks.filter(({ type }) => type !== 'error'))
    expect(message?.metadata).to.include({ errorCode: 'worker_lost', sessionKept: true })
    expect(chunks.at(-1)).to.include({ type: 'error' })
  })
})
