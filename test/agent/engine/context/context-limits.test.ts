import { expect } from 'chai'
import { createContext } from '../../../../shared/agent/engine/context/context.ts'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import type { Answer } from '../../../../shared/agent/engine/turn.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { Message, ModelProvider, Usage } from '../../../../shared/agent/providers/port.ts'
import type { AgentEvent } from '../../../../shared/kernel/events.ts'
import {
  accountOf,
  asksForSummary,
  calls,
  gives,
  play,
  says200,
  scripted,
  TOO_LONG,
  talk,
  USAGE,
  user,
} from './setup.ts'

/** The fixed part of the requests is 2 characters long: `[]`. */
function contextOf(messages: readonly Message[], window?: number, own: Partial<ModelProvider> = {}) {
  const conversation = new Conversation({ messages })
  const provider = { ...scripted(says200('short')), ...own }
  const spent: Usage[] = []
  const windows: string[] = []
  const route = () => ({ primary: { provider, model: 'm' }, fallback: undefined })
  const context = createContext({
    conversation,
    fixed: { systemPrompt: undefined, background: undefined, tools: [] },
    models: {
      main: route,
      subAgents: route,
      summaries: route,
      priceOf: () => 0,
      windowOf(type, model) {
        windows.push(`${type} ${model}`)
        return window
      },
    },
    signal: new AbortController().signal,
    account: accountOf(({ usage }) => spent.push(usage)),
  })
  return { context, conversation, spent, windows }
}

async function eventsOf(steps: AsyncGenerator<AgentEvent, unknown, undefined> | undefined): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of steps ?? []) events.push(event)
  return events
}

const chars = (count: number) => [...talk(10), user('x'.repeat(count - 20_000))]

describe('the limits of a context', () => {
  it('the window is looked up for a history of 16,000 characters, and not for a shorter one', async () => {
    const looked = async (length: number) => {
      const { context, windows } = contextOf([user('x'.repeat(length))])
      await eventsOf(context.compactIfNeeded())
      return windows
    }
    expect(await looked(15_999)).to.deep.equal([])
    expect(await looked(16_000)).to.deep.equal(['scripted m'])
  })

  it('D5.6: a request of exactly 80 % of the window is not compacted, a longer one is', async () => {
    const warningsAt = async (length: number) => {
      const { context } = contextOf(chars(length), 20_000)
      expect(context.tokens).to.equal(Math.ceil((length + 2) / 4))
      return (await eventsOf(context.compactIfNeeded())).map(({ type }) => type)
    }
    expect(await warningsAt(63_998)).to.deep.equal([])
    expect(await warningsAt(63_999)).to.deep.equal(['warning'])
  })

  it('a provider that knows its window is not asked for it, and the answer of one that is asked counts before the catalogue', async () => {
    for (const own of [
      { contextWindow: 20_000, askWindow: () => expect.fail('it was asked') },
      { askWindow: async () => 20_000 },
    ]) {
      const { context, windows } = contextOf(chars(63_999), 1_000_000, own)
      expect((await eventsOf(context.compactIfNeeded())).map(({ type }) => type)).to.deep.equal(['warning'])
      expect(windows).to.deep.equal([])
    }
  })

  it('a history of any length is not compacted when the window is unknown', async () => {
    const { context } = contextOf(chars(500_000))
    expect(await eventsOf(context.compactIfNeeded())).to.deep.equal([])
  })

  it('D4.10: the usage of a summary is reported', async () => {
    const { context, spent } = contextOf(chars(70_000), 20_000)
    await eventsOf(context.compactIfNeeded())
    expect(spent).to.deep.equal([USAGE])
  })

  it('the token count of a provider that counts nothing is not used', () => {
    const { context, conversation } = contextOf(talk(1))
    const route = { provider: scripted(), model: 'm' }
    expect([...context.measure(undefined, route), ...context.measure({ ...USAGE, input: 0 }, route)]).to.deep.equal([])
    expect(conversation.measured).to.equal(undefined)
    expect([...context.measure({ ...USAGE, input: 1 }, route)]).to.deep.equal([])
    expect(conversation.measured).to.deep.include({ tokens: 1, chars: 2_000, model: 'm' })
  })

  it('D5.5: a rejected request is compacted only when nothing of the answer was sent', async () => {
    const answerOf = (code: 'context_too_long' | 'timeout', outputChars: number): Answer => ({
      blocks: [],
      toolCalls: [],
      outputChars,
      outcome: 'failed',
      failure: failure(code, 'r', 'm'),
    })
    const isCompacted = async (answer: Answer) => {
      const { context, conversation } = contextOf(talk(20))
      await eventsOf(context.compactAfterRejection(answer))
      return conversation.chars < 40_000
    }
    expect(await isCompacted(answerOf('context_too_long', 0))).to.equal(true)
    expect(await isCompacted(answerOf('context_too_long', 1))).to.equal(false)
    expect(await isCompacted(answerOf('timeout', 0))).to.equal(false)
  })

  /** A conversation of `pairs` × 2,000 characters whose one old tool output has `output` characters. */
  const digging = (pairs: number, output: number): Message[] => [
    ...talk(pairs),
    ...[calls('1'), gives('1', 'o'.repeat(output))],
    ...[calls('2'), gives('2', 'two'), calls('3'), gives('3', 'three')],
  ]

  it('D5.6: near the window 60 % of it is the goal: no summary is made when trimming reaches that', async () => {
    const provider = scripted()
    const { warnings } = await play(provider, { messages: digging(22, 25_000), windowOf: () => 20_000 })
    expect(warnings.map(({ detail }) => detail['trimmed_outputs'])).to.deep.equal([1])
    expect(provider.requests.map(asksForSummary)).to.deep.equal([false])
  })

  it('D5.6: after a rejection half of the request is the goal: no summary is made when trimming reaches that', async () => {
    const provider = scripted(TOO_LONG)
    const { warnings } = await play(provider, { messages: digging(17, 36_000) })
    expect(warnings.map(({ detail }) => detail['trimmed_outputs'])).to.deep.equal([1])
    expect(provider.requests.map(asksForSummary)).to.deep.equal([false, false])
  })
})
