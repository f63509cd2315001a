import { expect } from 'chai'
import { eachOf } from '../../../shared/kernel/async/batch.ts'
import { Observed } from '../../../shared/kernel/async/observed.ts'

describe('an observed iteration', () => {
  it('shows each value once before its reader gets it, and ends, fails and is left as the observed one', async () => {
    const seen: number[] = []
    let isLeft = false
    async function* count() {
      try {
        yield 1
        yield [2, 3]
        throw new Error('broken')
      } finally {
        isLeft = true
      }
    }
    const read: number[] = []
    const failure = await (async () => {
      for await (const value of new Observed<number>(count(), (each) => seen.push(each))) {
        read.push(...eachOf(value))
        expect(seen).to.deep.equal(read)
      }
    })().catch((cause: Error) => cause.message)
    expect([read, seen, failure]).to.deep.equal([[1, 2, 3], [1, 2, 3], 'broken'])
    isLeft = false
    for await (const _ of new Observed(count(), () => {})) break
    expect(isLeft).to.equal(true)
  })
})
