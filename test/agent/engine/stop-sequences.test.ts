import { expect } from 'chai'
import fc from 'fast-check'
import { StopMatcher } from '../../../shared/agent/engine/stop-sequences.ts'

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
  it('D4.11: the text ends before the stop sequence, which is not shown', () => {
    expect(feed(['END'], ['one END two'])).to.deep.equal({ text: 'one ', isStopped: true })
  })

  it('D4.11: a stop sequence that is split over pieces is found, and no part of it is shown', () => {
    expect(feed(['END'], ['one E', 'N', 'D two'])).to.deep.equal({ text: 'one ', isStopped: true })
  })

  it('text that only begins like a stop sequence is shown later', () => {
    expect(feed(['END'], ['one E', 'N', 'TER'])).to.deep.equal({ text: 'one ENTER', isStopped: false })
  })

  it('of several stop sequences the first one in the text ends it', () => {
    expect(feed(['two', 'one'], ['zero one two'])).to.deep.equal({ text: 'zero ', isStopped: true })
  })

  it('text that cannot become a stop sequence is shown at once', () => {
    expect(new StopMatcher(['##']).push('hello').text).to.equal('hello')
    expect(new StopMatcher([]).push('hello').text).to.equal('hello')
  })

  it('text is held back when it begins any of several stop sequences', () => {
    const matcher = new StopMatcher(['END', '##'])
    expect(matcher.push('one EN').text).to.equal('one ')
    expect(matcher.push('d #').text).to.equal('ENd ')
    expect(matcher.flush()).to.equal('#')
  })

  it('held text is shown once', () => {
    const matcher = new StopMatcher(['END'])
    matcher.push('one EN')
    expect([matcher.flush(), matcher.flush()]).to.deep.equal(['EN', ''])
    expect(matcher.push('two').text).to.equal('two')
    matcher.push('E')
    expect(matcher.push('ND').isStopped).to.equal(true)
    expect(matcher.flush()).to.equal('')
  })

  it('the result does not depend on how the text is split into pieces', () => {
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
