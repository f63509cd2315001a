import { expect } from 'chai'
import { Conversation } from '../../../../shared/agent/engine/conversation.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { ModelPart } from '../../../../shared/agent/providers/port.ts'
import { asksForSummary, digs, gives, play, says200, scripted, TOO_LONG, talk, textOf, USAGE, user } from './setup.ts'

const DETAIL = ['reason', 'tokens_before', 'tokens_after', 'messages_before', 'messages_after', 'trimmed_outputs']

describe('a context that the provider finds too long', () => {
  it('D5.6: is compacted once, with the warning context_compacted, and the request is repeated within the turn', async () => {
    const provider = scripted(TOO_LONG, says200('they spoke of p'), says200('ok'))
    const { types, warnings, done } = await play(provider, { messages: talk(20) })
    expect(types).to.deep.equal(['turn_start', 'warning', 'text_delta', 'text', 'turn_end', 'done'])
    expect(warnings[0]).to.include({ code: 'context_compacted' })
    expect(warnings[0]?.detail).to.have.all.keys(DETAIL)
    expect(warnings[0]?.detail).to.include({ reason: 'provider', messages_before: 41, trimmed_outputs: 0 })
    expect(done).to.include({ turn_count: 1 })
    expect(provider.requests.map(asksForSummary)).to.deep.equal([false, true, false])
  })

  it('D5.6: the repeated request is at most half as long: a marked summary, then the last prompts unchanged', async () => {
    const provider = scripted(TOO_LONG, says200('they spoke of p'))
    const messages = talk(20)
    const { warnings } = await play(provider, { messages, systemPrompt: 'be brief' })
    const [before, , after] = provider.requests
    expect(textOf(after?.messages[0])).to.match(/^\[Summary of the earlier conversation.*\]\nthey spoke of p$/)
    expect(after?.messages.slice(1)).to.deep.equal([...messages.slice(-2), user('and now?')])
    expect(after).to.include({ system: 'be brief', tools: before?.tools })
    const { tokens_before, tokens_after } = warnings[0]?.detail ?? {}
    expect(Number(tokens_after)).to.be.within(1, Number(tokens_before) / 2)
  })

  it('the request for a summary quotes the older turns, and has no tools', async () => {
    const provider = scripted(TOO_LONG)
    await play(provider, { messages: talk(20) })
    const [, asked] = provider.requests
    expect([asked?.tools, asked?.stopSequences]).to.deep.equal([[], []])
    expect(asked?.messages).to.have.length(1)
    expect(textOf(asked?.messages[0])).to.include('{"user":"prompt 0').and.include('{"assistant":"answer 18')
    expect(textOf(asked?.messages[0])).not.to.include('and now?')
  })

  it('D5.6: no summary is made when trimming tool outputs is enough', async () => {
    const provider = scripted(digs('1'), digs('2'), digs('3'), digs('4'), digs('5'), TOO_LONG, says200('ok'))
    const { warnings, last, conversation } = await play(provider, { output: 'o'.repeat(20_000) })
    expect(provider.requests.some(asksForSummary)).to.equal(false)
    expect(warnings[0]?.detail).to.include({ trimmed_outputs: 3, messages_before: 11, messages_after: 11 })
    expect(last).to.include({ type: 'done', turn_count: 6 })
    const lengths = conversation.messages.flatMap((message) =>
      message.role === 'tool' ? message.results.map(({ output }) => output.length) : [],
    )
    expect(lengths.map((chars) => chars > 1_000)).to.deep.equal([false, false, false, true, true])
  })

  it('D5.6: a second context_too_long ends the run, without a third request', async () => {
    const provider = scripted(TOO_LONG, says200('short'), TOO_LONG)
    const { last } = await play(provider, { messages: talk(20) })
    expect(last).to.include({ type: 'error', code: 'context_too_long', retryable: false })
    expect(provider.requests).to.have.length(3)
  })

  it('D5.6: a later turn that is too long is compacted again', async () => {
    const digging = [digs('1'), digs('2'), digs('3')]
    const provider = scripted(TOO_LONG, says200('short'), ...digging, TOO_LONG, says200('ok'))
    const { warnings, last } = await play(provider, { messages: talk(20), output: 'o'.repeat(20_000) })
    expect(warnings.map(({ detail }) => detail['trimmed_outputs'])).to.deep.equal([0, 3])
    expect(last).to.include({ type: 'done', turn_count: 4 })
  })

  it('a single prompt that is too long is an error, without a second call', async () => {
    const provider = scripted(TOO_LONG)
    const { types, conversation } = await play(provider, { prompt: 'x'.repeat(90_000) })
    expect(types).to.deep.equal(['turn_start', 'error'])
    expect(provider.requests).to.have.length(1)
    expect(conversation.messages).to.have.length(1)
  })

  it('D5.5: a turn of which text or thinking has been sent is not repeated', async () => {
    for (const seen of ['text_delta', 'thinking_delta'] as const) {
      const provider = scripted([{ type: seen, text: 'so far' }, ...TOO_LONG])
      const { last } = await play(provider, { messages: talk(20) })
      expect(last).to.include({ type: 'error', code: 'context_too_long' })
      expect(provider.requests).to.have.length(1)
    }
  })

  const failed: [what: string, answer: ModelPart[]][] = [
    ['fails', [{ type: 'failure', failure: failure('provider_rejected', 'http_400', 'no') }]],
    ['is too long itself', TOO_LONG],
    ['says nothing', says200(' ')],
  ]
  for (const [what, answer] of failed) {
    it(`D5.6: a summary that ${what} is replaced by a digest of the older prompts`, async () => {
      const provider = scripted(TOO_LONG, answer, says200('ok'))
      const { last } = await play(provider, { messages: talk(20) })
      const digest = textOf(provider.requests[2]?.messages[0])
      expect(digest).to.include('{"user":"prompt 18 ').and.include('p…').and.not.include('answer')
      expect(digest.split('\n').every((line) => line.length < 220)).to.equal(true)
      expect(last).to.include({ type: 'done' })
    })
  }

  it('a summary that does not end is cut, and its connection is closed', async () => {
    let isClosed = false
    const rambling = { type: 'scripted', stream: ramble }
    async function* ramble() {
      try {
        for (;;) yield { type: 'text_delta', text: 'and so on '.repeat(100) } as const
      } finally {
        isClosed = true
      }
    }
    const provider = scripted(TOO_LONG)
    const { stream } = provider
    provider.stream = (request, signal) => (asksForSummary(request) ? rambling.stream() : stream(request, signal))
    const { last, conversation } = await play(provider, { messages: talk(20) })
    expect(isClosed).to.equal(true)
    expect(textOf(conversation.messages[0]).length).to.be.below(9_000)
    expect(last).to.include({ type: 'done' })
  })

  it('D4.10: the summary is no turn, but counts into the totals of done', async () => {
    const provider = scripted(TOO_LONG, says200('short', { ...USAGE, input: 5_000, output: 300 }))
    const { events, done } = await play(provider, { messages: talk(20) })
    expect(events.filter(({ type }) => type === 'turn_end')).to.have.length(1)
    expect(done).to.include({ total_input_tokens: 5_100, total_output_tokens: 310, cost_usd: 5_410, turn_count: 1 })
  })

  it('D4.9: a summary’s warnings are sent like those of a turn, and the fallback can serve it', async () => {
    const down = [
      { type: 'failure' as const, failure: failure('provider_rejected', 'out_of_credit', 'no', { isFailover: true }) },
    ]
    const fallback = { provider: scripted(says200('short')), model: 'spare' }
    const { warnings } = await play(scripted(TOO_LONG, down), { messages: talk(20), fallback })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['provider_failover', 'context_compacted'])
  })

  it('D4.6: a run that is aborted during the compaction leaves its whole history', async () => {
    const abort = new AbortController()
    const messages = talk(20)
    const cut = () => {
      abort.abort('cancelled')
      return []
    }
    const { last, conversation } = await play(scripted(TOO_LONG, cut), { messages, signal: abort.signal })
    expect(last).to.include({ type: 'error', code: 'cancelled' })
    expect(conversation.messages).to.deep.equal([...messages, user('and now?')])
  })
})

describe('a context that comes near the window', () => {
  const windowOf = () => 20_000

  it('D5.6: is compacted before the model is asked, to at most 60 % of the window', async () => {
    const provider = scripted(says200('short'), says200('ok'))
    const { warnings, types } = await play(provider, { messages: talk(34), windowOf })
    expect(provider.requests.map(asksForSummary)).to.deep.equal([true, false])
    expect(types.slice(0, 3)).to.deep.equal(['turn_start', 'warning', 'text_delta'])
    expect(warnings[0]?.detail).to.include({ reason: 'estimate' })
    expect(warnings[0]?.detail['tokens_after']).to.be.below(12_001)
  })

  it('is unchanged below 80 % of the window, and when the window is unknown', async () => {
    for (const window of [40_000, undefined]) {
      const provider = scripted()
      const { warnings } = await play(provider, { messages: talk(34), windowOf: () => window })
      expect(warnings).to.be.empty
      expect(provider.requests).to.have.length(1)
    }
  })

  it('the window is not looked up for a short conversation', async () => {
    const unasked = () => {
      throw new Error('it was looked for')
    }
    expect((await play(scripted(), { messages: talk(5), windowOf: unasked })).last).to.include({ type: 'done' })
  })

  it("the provider's last count corrects the estimate", async () => {
    const messages = talk(10)
    const chars = 20_000
    const dense = scripted(says200('ok', { ...USAGE, input: chars }))
    const { conversation } = await play(dense, { messages, windowOf })
    const { warnings } = await play(scripted(), { conversation, windowOf })
    expect(warnings[0]?.detail).to.include({ reason: 'estimate' })
    expect(warnings[0]?.detail['tokens_before']).to.be.within(chars, chars + 100)
  })

  it('a prompt that cannot be shortened is sent unchanged', async () => {
    const provider = scripted(says200('ok'))
    const { types } = await play(provider, { prompt: 'x'.repeat(90_000), windowOf })
    expect(types).to.deep.equal(['turn_start', 'text_delta', 'text', 'turn_end', 'done'])
    expect(provider.requests).to.have.length(1)
  })

  it('the usage of an answer that a stop sequence cut off is estimated from the whole request', async () => {
    const parts: ModelPart[] = [{ type: 'text_delta', text: `${'a'.repeat(400)}END` }]
    const { done } = await play(scripted(parts), {
      systemPrompt: 's'.repeat(4_000),
      prompt: 'p'.repeat(2_000),
      stopSequences: ['END'],
    })
    expect(done).to.include({ stop_reason: 'stop_sequence', total_output_tokens: 101 })
    expect(done?.total_input_tokens).to.be.within(1_500, 1_550)
  })
})

describe('a compacted conversation', () => {
  it('D5.7: stays compacted, and message_count does not fall', async () => {
    const conversation = new Conversation({ messages: talk(20) })
    await play(scripted(TOO_LONG, says200('short'), says200('ok')), { conversation })
    expect(conversation.messages).to.have.length(5)
    expect(conversation.messageCount).to.equal(42)
    const provider = scripted()
    await play(provider, { conversation })
    expect(provider.requests[0]?.messages).to.have.length(6)
    expect(conversation.messageCount).to.equal(44)
  })

  it('D5.7: keeps its message_count when it is handed over', async () => {
    const { messages, messageCount } = new Conversation({ messages: [user('so far')], messageCount: 42 })
    const other = new Conversation({ messages, messageCount })
    other.append(user('and?'), gives('1', 'a tool is not counted'))
    expect(other.messageCount).to.equal(43)
  })

  it('an earlier summary is summarised with the rest, and is part of a digest', async () => {
    const conversation = new Conversation({ messages: talk(20) })
    await play(scripted(TOO_LONG, says200('the first summary'), says200('ok')), { conversation })
    conversation.append(...talk(20))
    const provider = scripted(TOO_LONG, TOO_LONG, says200('ok'))
    await play(provider, { conversation })
    expect(textOf(provider.requests[1]?.messages[0])).to.include('the first summary')
    expect(textOf(provider.requests[2]?.messages[0])).to.match(/^\[Summary[^[]*\]\nthe first summary\nThe user asked/)
  })
})
