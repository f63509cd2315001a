import { expect } from 'chai'
import { planCompaction } from '../../../../shared/agent/engine/context/history.ts'
import { charsOf } from '../../../../shared/agent/engine/context/size.ts'
import { failure } from '../../../../shared/agent/providers/failures/failures.ts'
import type { Message, ModelPart } from '../../../../shared/agent/providers/port.ts'
import { useModelServer } from '../../../support/model-server/model-server.ts'
import { connect, failureOf } from '../../providers/ai-sdk/setup.ts'
import { calls, digs, gives, play, says200, scripted, TOO_LONG, talk, user } from './setup.ts'

const tooLong = (windowTokens: number): ModelPart[] => [
  { type: 'failure', failure: { ...failure('context_too_long', 'context_too_long', 'too long'), windowTokens } },
]

const resultsOf = (message: Message) => (message.role === 'tool' ? message.results : [])
const outputsOf = (messages: readonly Message[]) => messages.flatMap(resultsOf).map(({ output }) => output)

describe('the newest tool outputs', () => {
  const OUTPUT = `begin ${'x'.repeat(60_000)} end`

  it('D5.6: are shortened when nothing else is left, and keep their beginning and their end', () => {
    const messages = [user('go'), calls('a'), gives('a', OUTPUT)]
    const { kept, trimmedOutputs } = planCompaction(messages, { fixedChars: 500, targetChars: 20_000 })
    const [output = ''] = outputsOf(kept)
    expect(charsOf(kept)).to.be.within(10_000, 19_500)
    expect(output).to.match(/^begin x.*trimmed to make room.*x end$/s)
    expect(trimmedOutputs).to.equal(1)
  })

  it('say how much of them is left, and are shortened only above the least length and the note', () => {
    const planOf = (output: string, targetChars: number) =>
      outputsOf(planCompaction([user('go'), calls('a'), gives('a', output)], { fixedChars: 0, targetChars }).kept)[0]
    expect(planOf('x'.repeat(60_000), 20_004)).to.equal(
      `${'x'.repeat(9_950)}\n[trimmed to make room: 19900 of 60000 characters are left]\n${'x'.repeat(9_950)}`,
    )
    expect([1_100, 1_101].map((chars) => planOf('x'.repeat(chars), 1)?.startsWith('x'.repeat(451)))).to.deep.equal([
      true,
      false,
    ])
  })

  it('D5.6: of several of different lengths those are shortened that are longer than an equal part of what is left', () => {
    const lengths = [60_000, 2_000, 20_000]
    const messages = lengths.flatMap((length, i) => [calls(`${i}`), gives(`${i}`, 'x'.repeat(length))])
    // All of them belong to the last two turns.
    const together: Message[] = [user('go'), calls('a'), { role: 'tool', results: messages.flatMap(resultsOf) }]
    const { kept } = planCompaction(together, { fixedChars: 0, targetChars: 20_004 })
    const [long = '', short = '', middle = ''] = outputsOf(kept)
    expect(short).to.have.length(2_000)
    expect(middle.length).to.be.within(8_900, 9_000)
    expect(long.length).to.equal(middle.length)
  })

  it('D5.6: of several the long ones are shortened, each to the same length, and short ones stay', () => {
    const messages = [
      user('go'),
      calls('a'),
      gives('a', 'short'),
      calls('b'),
      gives('b', OUTPUT),
      calls('c'),
      gives('c', OUTPUT),
    ]
    const { kept } = planCompaction(messages, { fixedChars: 0, targetChars: 20_000 })
    const [short, first = '', second = ''] = outputsOf(kept)
    expect(short).to.equal('short')
    expect(first.length).to.equal(second.length).and.be.within(5_000, 10_000)
  })

  it('D5.6: a run with one result of 60,000 characters goes on after the provider has rejected it', async () => {
    const { warnings, done } = await play(scripted(digs('a'), TOO_LONG, says200('done')), { output: OUTPUT })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['context_compacted'])
    expect(warnings[0]?.detail).to.include({ trimmed_outputs: 1 })
    expect(done).to.include({ turn_count: 2 })
  })

  it('D5.6: are shortened to the window that the provider names, however small', async () => {
    const provider = scripted(digs('a'), tooLong(4_000), says200('done'))
    const { done } = await play(provider, { output: OUTPUT })
    expect(charsOf(provider.requests[2]?.messages ?? [])).to.be.at.most(4_000 * 4 * 0.6)
    expect(done).to.include({ turn_count: 2 })
  })
})

describe('a window that no catalogue knows', () => {
  it("D5.6: is the provider's word from its first rejection on", async () => {
    const counted = { input: 4_000, cacheRead: 0, cacheWrite: 0, output: 10 }
    const provider = scripted(tooLong(8_000), says200('sum'), digs('a', counted), says200('sum'), says200('done'))
    const { warnings } = await play(provider, { messages: talk(20), output: 'x'.repeat(30_000) })
    expect(warnings.map(({ detail }) => detail['reason'])).to.deep.equal(['provider', 'estimate'])
  })

  it('is 2,000,000 tokens at most, so that no history grows without end', async () => {
    const messages = [user('x'.repeat(6_600_000)), ...talk(2)]
    const { warnings } = await play(scripted(says200('sum'), says200('ok')), { messages })
    expect(warnings.map(({ code }) => code)).to.deep.equal(['context_compacted'])
  })
})

describe('the window that a rejection names', () => {
  const server = useModelServer({ perTest: true })

  const NAMED: [text: string, tokens: number][] = [
    ["This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", 8_192],
    ['prompt is too long: 200251 tokens > 200000 maximum', 200_000],
    ['The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).', 1_048_576],
    ['the request exceeds the available context size (4,096 tokens), try increasing it', 4_096],
  ]
  for (const [message, tokens] of NAMED) {
    it(`D5.6: is ${tokens} in "${message.slice(0, 50)}…"`, async () => {
      server.answer({ status: 400, message })
      expect((await failureOf(await connect('openai-compatible', server))).windowTokens).to.equal(tokens)
    })
  }
})
