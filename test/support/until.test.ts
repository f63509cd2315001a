import { expect } from 'chai'
import { until } from './until.ts'

describe('waiting for a condition', () => {
  it('resolves with the first truthy value of the condition', async () => {
    let count = 0
    const value = await until(() => (++count === 3 ? { count } : undefined), { what: 'three checks', everyMs: 1 })
    expect(value).to.deep.equal({ count: 3 })
  })

  it('checks the condition once more when the deadline has passed, so that a busy machine causes no false failure', async () => {
    const value = await until(() => 'there', { what: 'something that is there', withinMs: 0 })
    expect(value).to.equal('there')
  })

  it('rejects after the deadline and says what it waited for and what it saw last', async () => {
    const waiting = { what: 'the queue to drain', withinMs: 20, everyMs: 1 }
    const error = await until(() => 0, waiting).catch(String)
    expect(error).to.equal('Error: waited 0.02 s for the queue to drain; last seen: 0')
    const described = await until(() => false, { ...waiting, lastSeen: () => ['job 7'] }).catch(String)
    expect(described).to.include("last seen: [ 'job 7' ]")
  })

  it('passes on an error of the condition at once', async () => {
    const failing = () => {
      throw new Error('no connection')
    }
    expect(await until(failing, { what: 'anything' }).catch(String)).to.equal('Error: no connection')
  })
})
