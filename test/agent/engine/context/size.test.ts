import { expect } from 'chai'
import { charsOf, fixedChars, tokensOf, tokensPerChar } from '../../../../shared/agent/engine/context/size.ts'
import { calls, gives, givesFiles, says, user } from './setup.ts'

describe('the size of a context', () => {
  it('counts the texts, inputs and outputs of a history', () => {
    const thinks = { role: 'assistant' as const, blocks: [{ type: 'thinking' as const, text: 'hmm' }] }
    expect(charsOf([])).to.equal(0)
    expect(charsOf([user('four'), says('five5'), thinks, calls('id'), gives('id', 'gold')])).to.equal(4 + 5 + 3 + 2 + 4)
    const two = gives('1', 'ab')
    expect(
      charsOf([
        {
          role: 'tool',
          results: [
            ...(two.role === 'tool' ? two.results : []),
            { id: '2', toolName: 'Dig', output: 'cde', isError: false },
          ],
        },
      ]),
    ).to.equal(5)
  })

  it('counts an attached file as 6,000 characters', () => {
    expect(charsOf([givesFiles('id', 'gold', 2)])).to.equal(4 + 2 * 6_000)
  })

  it('counts the parts that every request carries, and of tools only what the model reads', () => {
    const tool = { name: 'Dig', description: 'digs', inputSchema: {} }
    const tools = JSON.stringify([tool]).length
    expect(fixedChars({ systemPrompt: undefined, background: undefined, tools: [] })).to.equal(2)
    expect(
      fixedChars({ systemPrompt: 'brief', background: 'known', tools: [{ ...tool, secret: 'x' } as typeof tool] }),
    ).to.equal(10 + tools)
  })

  it('estimates four characters a token until a provider has counted', () => {
    expect(tokensPerChar(undefined, 1_000)).to.equal(0.25)
    expect(tokensOf(9)).to.equal(3)
    expect(tokensOf(9, 0.5)).to.equal(5)
  })

  const measures: [tokens: number, chars: number, fixed: number, perChar: number][] = [
    [50, 60, 40, 0.5],
    [1_000, 60, 40, 2],
    [200, 60, 40, 2],
    [1, 60, 40, 0.1],
    [10, 60, 40, 0.1],
    [1, 0, 0, 1],
  ]
  for (const [tokens, chars, fixed, perChar] of measures) {
    it(`takes ${perChar} tokens a character from ${tokens} tokens counted in ${chars} and ${fixed} characters`, () => {
      expect(tokensPerChar({ tokens, chars }, fixed)).to.equal(perChar)
    })
  }
})
