import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { OVERTAKEN, untilFirst } from '../../../shared/platform/store/replace.ts'

describe('a write that others may overtake', () => {
  it('is tried again until no other write comes first', async () => {
    let tries = 0
    expect(await untilFirst(async () => (++tries < 3 ? OVERTAKEN : undefined))).to.equal(undefined)
    expect(tries).to.equal(3)
  })

  it('is unavailable when it loses more often than a race explains', async () => {
    let tries = 0
    const losing = async () => {
      tries++
      return OVERTAKEN
    }
    const cause: unknown = await untilFirst(losing, 5).catch((error: unknown) => error)
    expect(cause).to.be.instanceOf(AppError).with.property('kind', 'unavailable')
    expect(tries).to.equal(5)
  })
})
