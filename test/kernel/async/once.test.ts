import { expect } from 'chai'
import { once } from '../../../shared/kernel/async/once.ts'

describe('what is done once', () => {
  it('calls at the same time and later ones get the first result', async () => {
    let calls = 0
    const get = once(async () => ++calls)
    expect(await Promise.all([get(), get()])).to.deep.equal([1, 1])
    expect(await get()).to.equal(1)
  })

  it('after a failure the next call tries again', async () => {
    let calls = 0
    const get = once(async () => {
      if (++calls === 1) throw new Error('away')
      return calls
    })
    const [first, second] = await Promise.allSettled([get(), get()])
    expect([first.status, second.status, calls]).to.deep.equal(['rejected', 'rejected', 1])
    expect([await get(), await get()]).to.deep.equal([2, 2])
  })
})
