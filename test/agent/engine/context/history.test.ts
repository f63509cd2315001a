import { expect } from 'chai'
import { planCompaction } from '../../../../shared/agent/engine/context/history.ts'
import { charsOf } from '../../../../shared/agent/engine/context/size.ts'
import type { Message } from '../../../../shared/agent/providers/port.ts'
import { calls, gives, givesFiles, says, user } from './setup.ts'

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
    expect(planOf(once, 25_000)).to.deep.include({ kept: once, trimmedOutputs: 0 })
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

  it('the files of older turns are left out, which counts once for each output; those of the last turns stay', () => {
    for (const output of ['short', 'o'.repeat(400), 'o'.repeat(500)]) {
      const messages = [
        ...[user('go'), calls('1'), givesFiles('1', output, 2), calls('2'), givesFiles('2', 'new', 1)],
        ...[calls('3'), gives('3', 'newest')],
      ]
      const { kept, trimmedOutputs } = planOf(messages, 7_000)
      const files = kept.flatMap((message) =>
        message.role === 'tool' ? message.results.map(({ attachments = [] }) => attachments.length) : [],
      )
      expect([files, trimmedOutputs]).to.deep.equal([[0, 1, 0], 1])
    }
  })

  it('the last prompt keeps all its turns where they fit, though nothing before it does', () => {
    const messages = written('uauaaa')
    expect(planOf(messages, 5_600)).to.deep.include({ older: messages.slice(0, 2), kept: messages.slice(2) })
  })

  it('the last two turns of a prompt stay with it, however long, and it is no part of the older ones', () => {
    const messages = written('uauaucc')
    expect(planOf(messages, 20_000).older).to.deep.equal(messages.slice(0, 4))
  })

  it('no result is kept without its call, though it would fit alone', () => {
    const use = { type: 'tool_use', id: '1', toolName: 'Dig', input: { text: 'a'.repeat(3_000) } } as const
    const call: Message = { role: 'assistant', blocks: [use] }
    const messages = [user('u'.repeat(1_000)), call, gives('1', 'short'), user('l'.repeat(1_000))]
    expect(planOf(messages, 2_667).kept).to.deep.equal(messages.slice(-1))
  })

  it('the newest outputs leave room for the summary of the older turns', () => {
    const { kept, older, summaryChars } = planOf(written('uauaucc'), 12_000)
    expect([older.length, summaryChars]).to.deep.equal([4, 3_000])
    expect(charsOf(kept)).to.be.within(8_000, 12_000 - summaryChars)
  })

  it('a history that fits is unchanged', () => {
    const messages = written('uauau')
    expect(planOf(messages, charsOf(messages))).to.deep.include({ older: [], kept: messages, trimmedOutputs: 0 })
  })

  const hopeless: [what: string, messages: Message[]][] = [
    ['one huge prompt', [user('x'.repeat(100_000))]],
    ['a huge prompt behind a short conversation', [...written('uaua'), user('x'.repeat(100_000))]],
    ['a run whose last two turns are everything', [user('x'.repeat(100_000)), calls('1'), gives('1', 'short')]],
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

  const trims: [chars: number, left: number][] = [
    [400, 400],
    [401, 200],
  ]
  for (const [chars, left] of trims) {
    it(`D5.6: of an output of ${chars} characters in an older turn ${left} are left`, () => {
      const older = [user('go'), calls('1'), gives('1', 'o'.repeat(chars))]
      const { kept } = planOf([...older, ...written('cc')], 30_000)
      const [output = ''] = kept.flatMap((message) => (message.role === 'tool' ? [message.results[0]?.output] : []))
      expect(/^o+/.exec(output)?.[0].length).to.equal(left)
    })
  }

  it('D5.6: outputs of the last two turns are shortened only when everything else is not enough', () => {
    expect(planOf(written('ucc'), 21_100).trimmedOutputs).to.equal(0)
    expect(planOf(written('uccc'), 22_000).trimmedOutputs).to.equal(1)
    expect(planOf(written('uccc'), 15_000).trimmedOutputs).to.equal(3)
    expect(planOf(written('ucc'), 1).kept.at(-1))
      .to.have.nested.property('results[0].output.length')
      .within(900, 1_000)
  })

  const summaries: [targetChars: number, summaryChars: number][] = [
    [20_000, 5_000],
    [20_003, 5_000],
    [32_000, 8_000],
    [100_000, 8_000],
  ]
  for (const [targetChars, summaryChars] of summaries) {
    it(`a summary in a request of ${targetChars} characters has at most ${summaryChars}`, () => {
      expect(planOf(written('uaua'), targetChars).summaryChars).to.equal(summaryChars)
    })
  }

  it('the older part is exactly the messages that are not kept', () => {
    for (const [short, targetChars] of [
      ['uauauauau', 8_000],
      ['uauauau', 3_300],
      ['uauau', 100],
    ] as const) {
      const messages = written(short)
      const { older, kept } = planOf(messages, targetChars)
      expect([...older, ...kept]).to.deep.equal(messages)
    }
  })

  it('of a long run on one prompt the older part ends before the kept turns, and both hold the prompt', () => {
    const messages = written(`u${'a'.repeat(20)}`)
    const { older, kept } = planOf(messages, 8_000)
    expect(kept[0]).to.equal(messages[0])
    expect([...older, ...kept.slice(1)]).to.deep.equal(messages)
  })

  it('a part that fits to the character is kept', () => {
    const messages = written('uauaua')
    const room = charsOf(messages.slice(-4))
    const target = (room * 4) / 3 // A quarter of it is for the summary.
    expect(planOf(messages, target).kept).to.have.length(4)
    expect(planOf(messages, Math.floor(target)).kept).to.have.length(4)
    expect(planOf(messages, target - 2).kept).to.have.length(3)
  })

  it('the fixed parts of a request leave less room for the kept part', () => {
    const messages = written('uauauaua')
    const keptWith = (fixedChars: number) => planCompaction(messages, { fixedChars, targetChars: 7_900 }).kept.length
    expect([keptWith(100), keptWith(2_000), keptWith(3_000)]).to.deep.equal([4, 3, 2])
  })

  it('a summary that saves a tenth of the request is worth it, one that saves less is not', () => {
    const [older, last] = [user('o'.repeat(1_000)), user('l'.repeat(9_000))]
    expect(planOf([older, last], 9_999).older).to.deep.equal([older])
    expect(planOf([user('o'.repeat(999)), last], 9_000).older).to.deep.equal([])
  })
})
