import { expect } from 'chai'
import { planCompaction } from '../../../shared/engine/context/history.ts'
import { charsOf } from '../../../shared/engine/context/size.ts'
import type { Message } from '../../../shared/providers/port.ts'
import { calls, gives, says, user } from './setup.ts'

/** Builds a history from letters: `u` is a prompt, `a` a text, `c` a call and its long result. */
const written = (short: string): Message[] =>
  Array.from(short).flatMap((kind, index) => {
    if (kind === 'u') return [user(`prompt ${index} `.padEnd(1_000, 'u'))]
    if (kind === 'a') return [says(`text ${index} `.padEnd(1_000, 'a'))]
    return [calls(`call${index}`), gives(`call${index}`, 'o'.repeat(10_000))]
  })

const planOf = (messages: readonly Message[], targetChars: number) =>
  planCompaction(messages, { fixedChars: 0, targetChars })

const outputsOf = (messages: readonly Message[]): number[] =>
  messages.flatMap((message) => (message.role === 'tool' ? message.results.map(({ output }) => output.length) : []))

describe('the compaction of a history', () => {
  it('D5.6: tool outputs of older turns are trimmed first, and when that is enough nothing else is touched', () => {
    const messages = written('ucccc')
    const { older, kept, trimmedOutputs } = planOf(messages, 25_000)
    expect(older).to.be.empty
    expect(trimmedOutputs).to.equal(2)
    const [first = 0, second = 0, ...last] = outputsOf(kept)
    expect(last).to.deep.equal([10_000, 10_000])
    expect([first, second].every((chars) => chars < 300)).to.equal(true)
    expect(kept.map(({ role }) => role)).to.deep.equal(messages.map(({ role }) => role))
  })

  it('a trimmed output says how many of its code points are left', () => {
    const output = `${'x'.repeat(199)}😀${'y'.repeat(5_000)}`
    const { kept } = planOf([user('go'), calls('a'), gives('a', output), ...written('aa')], 3_000)
    const trimmed = kept[2]?.role === 'tool' ? kept[2].results[0]?.output : undefined
    expect(trimmed).to.equal(`${'x'.repeat(199)}😀\n[trimmed to make room: 200 of 5200 characters are left]`)
  })

  it('an output that is short, or already trimmed, is unchanged', () => {
    const once = planOf(written('ucccc'), 25_000).kept
    expect(planOf(once, 1).trimmedOutputs).to.equal(0)
    expect(planOf(once, 1).kept).to.deep.equal(once)
  })

  const cuts: [what: string, history: string, targetChars: number, kept: number][] = [
    ['the last two prompts and what followed them stay', 'uauauauau', 8_000, 3],
    ['of the last two prompts as much stays as fits: not the earlier one', 'uauauau', 3_300, 2],
    ['at least the last prompt stays', 'uauau', 100, 1],
    ['the last prompt stays, and at least the last two turns that followed it', 'uauauccc', 20_000, 5],
    ['of a long run on one prompt as many of the last turns stay as fit', `u${'a'.repeat(20)}`, 8_000, 6],
    ['calls stay with their results', 'uaucccu', 16_000, 3],
  ]
  for (const [what, history, targetChars, kept] of cuts) {
    it(`D5.6: older turns are summarised when trimming is not enough; ${what}`, () => {
      const messages = written(history)
      const plan = planOf(messages, targetChars)
      expect(plan.kept).to.have.length(kept)
      // A prompt that is kept is part of the summary's material as well.
      expect([...new Set([...plan.older, ...plan.kept])].map(({ role }) => role)).to.deep.equal(
        messages.map(({ role }) => role),
      )
      expect(plan.kept[0]?.role).not.to.equal('tool')
    })
  }

  it('a history that fits is unchanged', () => {
    const messages = written('uauau')
    expect(planOf(messages, charsOf(messages))).to.deep.include({ older: [], kept: messages, trimmedOutputs: 0 })
  })

  const hopeless: [what: string, messages: Message[]][] = [
    ['one huge prompt', [user('x'.repeat(100_000))]],
    ['a huge prompt behind a short conversation', [...written('uaua'), user('x'.repeat(100_000))]],
    ['a run whose last two turns are everything', written('ucc')],
  ]
  for (const [what, messages] of hopeless) {
    it(`no summary is planned when it would gain nothing: ${what}`, () => {
      expect(planOf(messages, 10_000)).to.deep.include({ older: [], kept: messages })
    })
  }

  it('the fixed parts of a request count too', () => {
    const messages = written('uauauaua')
    expect(planCompaction(messages, { fixedChars: 5_000, targetChars: 9_000 }).older).not.to.be.empty
    expect(planCompaction(messages, { fixedChars: 1_000, targetChars: 9_000 }).older).to.be.empty
  })
})
