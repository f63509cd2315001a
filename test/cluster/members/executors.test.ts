import { expect } from 'chai'
import { Executors, knownExecutors } from '../../../shared/cluster/members/executors.ts'
import type { Member } from '../../../shared/cluster/members/members.ts'
import { member as memberOf } from './member.ts'

const member = (epoch: number, fields?: Partial<Member>) => memberOf('executor', epoch, fields)

describe('executors among the members', () => {
  it('other roles are none, and those that drain are alive', () => {
    const executors = new Executors()
    executors.update([member(2, { role: 'worker' }), member(3, { state: 'draining' }), member(4, { role: 'gateway' })])
    expect(executors.alive).to.deep.equal([3])
    expect([2, 3, 4].map((epoch) => executors.isAlive(epoch))).to.deep.equal([false, true, false])
  })

  it('an executor takes new work while it is active and its lease runs', () => {
    const executors = new Executors()
    expect(executors.hasAny()).to.equal(false)
    for (const [fields, takes] of [
      [{}, true],
      [{ state: 'draining' }, false],
      [{ expiresInMs: 0 }, false],
    ] as const) {
      executors.update([member(3, fields)])
      expect(executors.hasAny(), JSON.stringify(fields)).to.equal(takes)
    }
  })

  it('an unknown one is looked for once in the list of members', async () => {
    const executors = new Executors()
    const discovered: number[] = []
    const known = knownExecutors(executors, async (epoch) => {
      discovered.push(epoch)
      executors.update([member(5)])
    })
    expect([await known.isAlive(5), await known.isAlive(5), await known.isAlive(6)]).to.deep.equal([true, true, false])
    expect(discovered).to.deep.equal([5, 6])
    expect(known.hasAny()).to.equal(true)
  })
})
