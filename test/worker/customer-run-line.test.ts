import { expect } from 'chai'
import { CustomerLine } from '../../shared/agent/customers/line.ts'
import { Lease } from '../../shared/cluster/members/lease.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { errorEvent } from '../../shared/kernel/events.ts'
import { fakeLedger, setUp } from './customer-run-setup.ts'

describe('the line of a customer’s run', () => {
  it('is held while the run goes on, and released at a good end', async () => {
    const { next, all, lines } = setUp({ maxLines: 0 })
    await next()
    expect(lines.size).to.equal(1)
    await all()
    expect(lines.size).to.equal(0)
  })

  it('is released after a failed run', async () => {
    const { all, lines } = setUp({ maxLines: 0, events: [errorEvent('timeout', 'too slow')] })
    expect(await all()).to.deep.equal(['error'])
    expect(lines.size).to.equal(0)
  })

  it('is released after a cancelled run', async () => {
    const { next, all, lines, ending } = setUp({ maxLines: 0, lease: new Lease() })
    await next()
    ending.abort('cancelled')
    expect(await all()).to.deep.equal(['error'])
    expect(lines.size).to.equal(0)
  })

  it('is released when the run is left before its end', async () => {
    const { next, leave, lines } = setUp({ maxLines: 0 })
    await next()
    await leave()
    expect(lines.size).to.equal(0)
  })

  it('is released after a run that could not read it', async () => {
    const { ledger } = fakeLedger()
    const last = () => Promise.reject(new AppError('unavailable', 'the store is unreachable'))
    const { all, lines, starts } = setUp({ maxLines: 0, ledger: { ...ledger, last } })
    expect(await all()).to.deep.equal(['text', 'done'])
    expect(starts.map(({ warnings }) => warnings.map(({ code }) => code))).to.deep.equal([['customer_scope_fallback']])
    expect(lines.size).to.equal(0)
  })
})

describe('the start of a customer’s run', () => {
  it('api.md Per-customer line: has the background, and Dream reads the line', async () => {
    const { all, starts } = setUp()
    await all()
    const [start] = starts
    expect(start?.background).to.match(/first contact/)
    expect(start?.services.memory).to.be.instanceOf(CustomerLine)
    expect(start?.warnings).to.deep.equal([])
  })

  it('api.md Per-customer line: without a store the run is stateless, says so, and is not recorded', async () => {
    const { ledger, written } = fakeLedger()
    const { all, starts } = setUp({ ledger, hasLines: false })
    expect(await all()).to.deep.equal(['text', 'done'])
    const [start] = starts
    expect(start?.background).to.equal(undefined)
    expect(start?.services.memory).to.equal(undefined)
    expect(start?.warnings[0]?.detail).to.deep.equal({ customer_id: 'c' })
    expect(written).to.deep.equal([])
  })
})
