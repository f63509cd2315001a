import { expect } from 'chai'
import { type Answer, AnswerEvents } from '../../../shared/agent/engine/turn.ts'
import { failure } from '../../../shared/agent/providers/failures/failures.ts'
import type { CallPart } from '../../../shared/agent/providers/failures/retry.ts'
import type { Usage } from '../../../shared/agent/providers/port.ts'
import type { Tool } from '../../../shared/agent/tools/port.ts'
import { eventLoop } from '../../../shared/kernel/async/loop-budget.ts'
import type { AgentEvent } from '../../../shared/kernel/events.ts'
import { scripted } from './context/setup.ts'
import { tool } from './tool-step-setup.ts'

const USAGE: Usage = { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 }
const FINISH = { type: 'finish', reason: 'end_turn', usage: USAGE } satisfies CallPart
const text = (piece: string): CallPart => ({ type: 'text_delta', text: piece })
const thinking = (piece: string): CallPart => ({ type: 'thinking_delta', text: piece })

const UNCOUNTED = { note() {}, end() {} }

/** `read` lists the parts that were taken from the model. */
async function play(parts: CallPart[], stopSequences: string[] = [], tools: readonly Tool[] = []) {
  const read: CallPart[] = []
  async function* stream() {
    for (const part of parts) {
      read.push(part)
      yield part
    }
  }
  const events: AgentEvent[] = []
  const toolBox = { tools, find: (name: string) => tools.find((each) => each.name === name) }
  const steps = new AnswerEvents(stream(), { stopSequences, tools: toolBox }, UNCOUNTED)
  let next = await steps.next()
  for (; !next.done; next = await steps.next()) events.push(...next.value)
  return { events, read, answer: next.value satisfies Answer }
}

describe('the answer of a model', () => {
  it('D4.3: text comes as deltas and then as a whole block', async () => {
    const { events, answer } = await play([text('Hel'), text('lo'), { type: 'text_end' }, FINISH])
    expect(events).to.deep.equal([
      { type: 'text_delta', text: 'Hel' },
      { type: 'text_delta', text: 'lo' },
      { type: 'text', text: 'Hello' },
    ])
    expect(answer).to.deep.include({ blocks: [{ type: 'text', text: 'Hello' }], outcome: 'complete', usage: USAGE })
    expect(answer.outputChars).to.equal(5)
  })

  it('the events of parts that came together come together, and parts behind a stop sequence are not read', async () => {
    async function* stream() {
      yield [text('Hel'), text('lo')]
      yield [text(' END'), text('never'), FINISH]
    }
    const steps = new AnswerEvents(
      stream(),
      { stopSequences: ['END'], tools: { tools: [], find: () => undefined } },
      UNCOUNTED,
    )
    const batches = []
    let next = await steps.next()
    for (; !next.done; next = await steps.next()) batches.push(next.value.map(({ type }) => type))
    expect(batches).to.deep.equal([
      ['text_delta', 'text_delta'],
      ['text_delta', 'text'],
    ])
    expect(next.value).to.include({ outcome: 'stopped' })
  })

  it('the call ends once and its answer is closed, however the reading ends: whole, left, failed, or by a bug', async () => {
    const done: string[] = []
    const events = (last: CallPart | Error, note: () => void = () => {}) => {
      async function* stream() {
        try {
          yield text('one')
          if (last instanceof Error) throw last
          yield last
          yield text('behind')
        } finally {
          done.push('closed')
        }
      }
      const call = { note, end: () => done.push('ended') }
      return new AnswerEvents(stream(), { stopSequences: [], tools: { tools: [], find: () => undefined } }, call)
    }
    const read = async (steps: AnswerEvents) => {
      for await (const [event] of steps) expect(event).to.not.deep.include({ text: 'behind' })
      await steps.return() // Once more.
    }
    const outcomes = [
      await read(events(FINISH)),
      await (async () => {
        for await (const _ of events(text('two'))) return 'left'
      })(),
      await read(events(new Error('broken'))).catch(String),
      await read(
        events(FINISH, () => {
          throw new Error('bug')
        }),
      ).catch(String),
    ]
    expect(outcomes).to.deep.equal([undefined, 'left', 'Error: broken', 'Error: bug'])
    expect(done).to.deep.equal(outcomes.flatMap(() => ['closed', 'ended']))
  })

  it('a text block without an end is ended by the finish', async () => {
    const { events, answer } = await play([text('Hello'), FINISH])
    expect(events.at(-1)).to.deep.equal({ type: 'text', text: 'Hello' })
    expect(answer.blocks).to.have.length(1)
  })

  it('an empty block of text or thinking has no event', async () => {
    const { events, answer } = await play([
      text(''),
      { type: 'text_end' },
      thinking(''),
      { type: 'thinking_end' },
      FINISH,
    ])
    expect(events).to.deep.equal([])
    expect(answer.blocks).to.deep.equal([])
  })

  it('D4.3: thinking is a block of its own, and keeps the data of the provider', async () => {
    const meta = { anthropic: { signature: 'x' } }
    const { events, answer } = await play([thinking('let '), thinking('me'), { type: 'thinking_end', meta }, FINISH])
    expect(events.map(({ type }) => type)).to.deep.equal(['thinking_delta', 'thinking_delta', 'thinking'])
    expect(events.at(-1)).to.deep.equal({ type: 'thinking', text: 'let me' })
    expect(answer.blocks).to.deep.equal([{ type: 'thinking', text: 'let me', meta }])
    expect(answer.outputChars).to.equal(6)
  })

  it('D4.3: thinking without data of the provider is a block, too', async () => {
    const { events, answer } = await play([
      thinking('hm'),
      { type: 'thinking_end' },
      { type: 'finish', reason: 'end_turn', usage: undefined },
    ])
    expect(events.at(-1)).to.deep.equal({ type: 'thinking', text: 'hm' })
    expect(answer.blocks).to.deep.equal([{ type: 'thinking', text: 'hm' }])
    expect(answer).to.not.have.property('usage')
  })

  it('thinking without text is kept for its data, without an event', async () => {
    const meta = { anthropic: { redacted: 'x' } }
    const { events, answer } = await play([{ type: 'thinking_end', meta }, FINISH])
    expect(events).to.deep.equal([])
    expect(answer.blocks).to.deep.equal([{ type: 'thinking', text: '', meta }])
  })

  it('D4.11: ends at a stop sequence: the text before it is the block, tool calls are dropped, nothing more is read', async () => {
    const call: CallPart = { type: 'tool_call', id: 'c1', toolName: 'Read', input: '{}' }
    const { events, answer, read } = await play([call, text('one E'), text('ND two'), text('three'), FINISH], ['END'])
    expect(events).to.deep.equal([
      { type: 'text_delta', text: 'one ' },
      { type: 'text', text: 'one ' },
    ])
    expect(answer).to.deep.include({ outcome: 'stopped', toolCalls: [], outputChars: 6 })
    expect(answer).not.to.have.property('usage')
    expect(read).to.have.length(3)
  })

  it('D4.11: a stop sequence that the provider has found ends it too', async () => {
    const { answer } = await play([text('one '), { ...FINISH, reason: 'stop_sequence' }])
    expect(answer).to.deep.include({ outcome: 'stopped', usage: USAGE })
  })

  it('text that was held back for a stop sequence is shown at the end of its block', async () => {
    const { events } = await play([text('one EN'), { type: 'text_end' }, text('D'), FINISH], ['END'])
    expect(events.map((event) => 'text' in event && `${event.type} ${event.text}`)).to.deep.equal([
      'text_delta one ',
      'text_delta EN',
      'text one EN',
      'text_delta D',
      'text D',
    ])
  })

  it('has the tool calls of the model, in their order', async () => {
    const calls = ['a', 'b'].map((id) => ({ type: 'tool_call' as const, id, toolName: 'Read', input: '{}' }))
    const { answer } = await play([...calls, { ...FINISH, reason: 'tool_use' }])
    expect(answer).to.deep.include({ toolCalls: calls, outcome: 'complete' })
  })

  it('D4.8: has the failure, and reads nothing behind it', async () => {
    const failed: CallPart = { type: 'failure', failure: failure('timeout', 'no_answer', 'too slow') }
    const { answer, read } = await play([text('half'), failed, FINISH])
    expect(answer).to.include({ outcome: 'failed' })
    expect(answer.failure).to.include({ code: 'timeout' })
    expect(answer.blocks).to.deep.equal([])
    expect(read).to.have.length(2)
  })

  it('is aborted when the parts end without a last one', async () => {
    expect((await play([text('half')])).answer).to.include({ outcome: 'aborted' })
  })

  it('D5.5: passes warnings on, and names the route of the fallback', async () => {
    const warning: CallPart = { type: 'warning', code: 'provider_failover', message: 'm', detail: {} }
    const route = { provider: scripted(), model: 'spare' }
    const { events, answer } = await play([warning, { type: 'served_by', route }, FINISH])
    expect(events).to.deep.equal([warning])
    expect(answer.servedBy).to.equal(route)
  })

  it('the last of its tool calls is marked when the output limit may have cut it, and no other', async () => {
    const calls = ['{}', '{}', '{'].map((input, i) => ({
      type: 'tool_call' as const,
      id: `c${i}`,
      toolName: 'Read',
      input,
    }))
    const cut = { ...FINISH, reason: 'max_tokens' } as const
    expect((await play([...calls, cut])).answer.toolCalls.map(({ isCut }) => isCut)).to.deep.equal([
      ...[undefined, undefined, true],
    ])
    const whole = { ...calls[2], input: '{"path":"a"}' } as (typeof calls)[0]
    expect((await play([...calls.slice(0, 2), whole, cut])).answer.toolCalls.at(-1)).to.deep.equal(whole)
  })

  it('a large text or thinking is taken when the event loop has time for it, and all else is read at once', async () => {
    /** Whether the parts are not read in a turn of the event loop that has no time left: they wait behind this test. */
    const waits = async (...parts: CallPart[]) => {
      let nextTurn: Promise<void> | undefined
      do nextTurn = eventLoop.enter()
      while (nextTurn === undefined)
      let isRead = false
      const reading = play(parts).then(() => (isRead = true))
      await nextTurn
      const isWaiting = !isRead
      await reading
      return isWaiting
    }
    const large = 'x'.repeat(70_000)
    expect(await waits(text(large), { type: 'text_end' })).to.equal(true)
    expect(await waits(thinking(large), { type: 'thinking_end' })).to.equal(true)
    expect(await waits(text(large), text('y'))).to.equal(false)
    expect(await waits(thinking(large), thinking('y'))).to.equal(false)
    expect(await waits(text('x'), { type: 'text_end' }, thinking('x'), { type: 'thinking_end' })).to.equal(false)
  })

  it('a text of many pieces is complete and in order', async () => {
    const pieces = Array.from({ length: 600 }, (_, i) => `${i} `)
    const { answer } = await play([...pieces.map(text), FINISH])
    expect(answer.blocks).to.deep.equal([{ type: 'text', text: pieces.join('') }])
    const two = await play([...pieces.map(text), { type: 'text_end' }, text('second'), FINISH])
    expect(two.answer.blocks[1]).to.deep.equal({ type: 'text', text: 'second' })
  })

  it('has its tool calls with the name of the tool that is meant, and with their values', async () => {
    const given: CallPart = { type: 'tool_call', id: 'a', toolName: 'functions.dig', input: '"{}"' }
    const { answer } = await play([given, { ...FINISH, reason: 'tool_use' }], [], [tool('Dig')])
    expect(answer.toolCalls).to.deep.equal([{ ...given, toolName: 'Dig', input: '{}', isReread: true }])
  })
})
