import { expect } from 'chai'
import { type Retries, retryUntil } from '../../../shared/kernel/async/retry.ts'

/** Fails so often, then works; counts its attempts. */
function failing(failures: number) {
  const attempt = async () => {
    if (++each.attempts <= failures) throw new Error(`failure ${each.attempts}`)
    return 'done'
  }
  const each = { attempts: 0, attempt }
  return each
}

const messageOf = (attempt: () => Promise<unknown>, retries: Retries): Promise<unknown> =>
  retryUntil(attempt, retries).catch(({ message }: Error) => message)

describe('an attempt that is repeated until it works', () => {
  it('returns what the first one that works returns', async () => {
    const third = failing(2)
    expect(await retryUntil(third.attempt, { pauses: [0, 1] })).to.equal('done')
    expect(third.attempts).to.equal(3)
  })

  it('throws a failure that cannot pass at once', async () => {
    const never = failing(Infinity)
    const mayPass = (cause: unknown) => cause instanceof Error && cause.message !== 'failure 2'
    expect(await messageOf(never.attempt, { pauses: 0, mayPass })).to.equal('failure 2')
  })

  it('throws the first failure after the deadline', async () => {
    const never = failing(Infinity)
    expect(await messageOf(never.attempt, { pauses: 0, until: performance.now() })).to.equal('failure 1')
  })

  it('ends with the signal, in the middle of a pause, and makes no attempt after it', async () => {
    const stopping = new AbortController()
    const never = failing(Infinity)
    const mayPass = () => {
      setImmediate(() => stopping.abort())
      return true
    }
    const { signal } = stopping
    expect(await messageOf(never.attempt, { pauses: 60_000, mayPass, signal })).to.match(/abort/)
    expect(await messageOf(never.attempt, { pauses: 0, signal })).to.match(/abort/)
    expect(never.attempts).to.equal(1)
  })

  it('waits twice as long after each failure, up to the longest pause', async () => {
    const seventh = failing(6)
    const from = performance.now()
    await retryUntil(seventh.attempt, { pauses: [1, 8] })
    expect(performance.now() - from).to.be.at.least(1 + 2 + 4 + 8 + 8 + 8 - 6)
  })
})
