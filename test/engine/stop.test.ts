import { expect } from 'chai'
import fc from 'fast-check'
import { StopMatcher } from '../../shared/engine/stop.ts'

function feed(sequences: string[], pieces: string[]): { text: string; isStopped: boolean } {
  const matcher = new StopMatcher(sequences)
  let text = ''
  for (const piece of pieces) {
    const step = matcher.push(piece)
    text += step.text
    if (step.isStopped) return { text, isStopped: true }
  }
  return { text: text + matcher.flush(), isStopped: false }
}

describe('stop sequences', () => {
  it('D4.11: text ends before the stop text, which is not shown', () => {
    expect(feed(['END'], ['one END two'])).to.deep.equal({ text: 'one ', isStopped: true })
  })

  it('D4.11: a stop text split over pieces is found, and no part of it is shown', () => {
    expect(feed(['END'], ['one E', 'N', 'D two'])).to.deep.equal({ text: 'one ', isStopped: true })
  })

  it('what only began like a stop text is shown after all', () => {
    expect(feed(['END'], ['one E', 'N', 'TER'])).to.deep.equal({ text: 'one ENTER', isStopped: false })
  })

  it('of several stop texts the one that comes first ends the text', () => {
    expect(feed(['two', 'one'], ['zero one two'])).to.deep.equal({ text: 'zero ', isStopped: true })
  })

  it('shows at once whatever cannot become a stop text', () => {
    expect(new StopMatcher(['##']).push('hello').text).to.equal('hello')
    expect(new StopMatcher([]).push('hello').text).to.equal('hello')
  })

  it('for any text, cut anywhere, the outcome is that of the whole text', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 40 })
    const stops = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 }), {
      maxLength: 3,
    })
    fc.assert(
      fc.property(letters, stops, fc.array(fc.nat(40)), (text, sequences, cuts) => {
        const edges = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length]
        const pieces = edges.slice(1).map((edge, i) => text.slice(edges[i], edge))
        const got = feed(sequences, pieces)
        if (!got.isStopped) {
          expect(got.text).to.equal(text)
          expect(sequences.some((sequence) => text.includes(sequence))).to.equal(false)
          return
        }
        const ends = sequences.filter((sequence) => text.startsWith(got.text + sequence))
        expect(ends).to.have.length.greaterThan(0)
        expect(sequences.some((sequence) => got.text.includes(sequence))).to.equal(false)
      }),
    )
  })
})
