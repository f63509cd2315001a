import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { withDeadline } from '../../../shared/kernel/async/deadline.ts'

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
const late = () => new Error('too late')
const messageOf = (promise: Promise<unknown>) => promise.then(String, (cause: Error) => cause.message)

describe('withDeadline', () => {
  it('settles like the work when that is in time, and leaves no timer', async () => {
    await nextTurn() // The timeout of the test itself is a timer that starts after its first line.
    const before = timers()
    expect(await withDeadline(Promise.resolve(7), 60_000, late)).to.equal(7)
    expect(await messageOf(withDeadline(Promise.reject(new Error('broken')), 60_000, late))).to.equal('broken')
    expect(timers()).to.equal(before)
  })

  it('rejects with the given error at the deadline, and ignores a later failure of the work', async () => {
    const work = Promise.withResolvers<void>()
    expect(await messageOf(withDeadline(work.promise, 1, late))).to.equal('too late')
    work.reject(new Error('broken later')) // An unhandled rejection would fail the test run.
    await nextTurn()
  })
})
