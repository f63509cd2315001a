import { expect } from 'chai'
import { Observed } from '../../../shared/kernel/async/observed.ts'

describe('an observed iteration', () => {
  it('shows each value once before its reader gets it, and ends, fails and is left as the observed one', async () => {
    const seen: number[] = []
    let isLeft = false
    async function* count() {
      try {
        yield 1
        yield 2
        throw new Error('broken')
      } finally {
        isLeft = true
      }
    }
    const read: number[] = []
    const failure = await (async () => {
      for await (const value of new Observed(count(), (each) => seen.push(each))) {
        expect(seen.at(-1)).to.equal(value)
        read.push(value)
      }
    })().catch((cause: Error) => cause.message)
    expect([read, seen, failure]).to.deep.equal([[1, 2], [1, 2], 'broken'])
    isLeft = false
    for await (const _ of new Observed(count(), () => {})) break
    expect(isLeft).to.equal(true)
  })
})
