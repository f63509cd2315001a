import { expect } from 'chai'
import { MemberTable } from '../../../shared/cluster/members/member-table.ts'
import type { Member } from '../../../shared/cluster/members/members.ts'

const member = (epoch: number, fields: Partial<Member> = {}): Member => ({
  ...{ role: 'worker', state: 'active', load: 0, pid: epoch, epoch, expiresInMs: 4_000 },
  ...fields,
})

/** A table with these members. `told` collects the epochs of each list of members that the table reports. */
function tableOf(...members: Member[]) {
  const told: number[][] = []
  const table = new MemberTable((all) => told.push(all.map(({ epoch }) => epoch)))
  table.replace({ version: 1, members })
  return { table, told }
}

describe('the members as a process knows them', () => {
  it('are told at once after a list, and once for the changes that follow on each other', () => {
    const { table, told } = tableOf(member(1), member(2))
    table.apply({ version: 2, epoch: 3, isGone: false, member: member(3) })
    table.remove([1])
    expect([told, table.version]).to.deep.equal([[[1, 2]], 2])
    table.flush()
    table.flush()
    expect(told).to.deep.equal([
      [1, 2],
      [2, 3],
    ])
  })

  it('that a list does not have stay known and alive until they are removed, and are not listed', () => {
    const { table } = tableOf(member(1), member(2))
    table.replace({ version: 5, members: [member(2)] })
    expect([...table.unlisted]).to.deep.equal([1])
    expect([table.isListed(1), table.isAlive(1), table.isListed(2), table.isSettled()]).to.deep.equal([
      false,
      true,
      true,
      false,
    ])
    table.remove([1])
    expect([table.isAlive(1), table.size, table.isSettled()]).to.deep.equal([false, 1, true])
  })

  it('are listed again by the next list, or by a change of them', () => {
    const { table } = tableOf(member(1), member(2))
    table.replace({ version: 5, members: [] })
    table.apply({ version: 6, epoch: 1, isGone: false, member: member(1) })
    expect([...table.unlisted]).to.deep.equal([2])
    table.replace({ version: 7, members: [member(1), member(2)] })
    expect(table.isSettled()).to.equal(true)
  })

  it('that are gone by a change stay known, since their users have to be told first', () => {
    const { table, told } = tableOf(member(1))
    table.apply({ version: 2, epoch: 1, isGone: true, member: undefined })
    table.flush()
    expect([table.isAlive(1), table.version, told.length]).to.deep.equal([true, 2, 1])
  })

  it('keep their load when a change has other fields of them', () => {
    const { table } = tableOf(member(1, { load: 7 }))
    table.apply({ version: 2, epoch: 1, isGone: false, member: member(1, { state: 'draining', load: 0 }) })
    expect(table.nextWorkers()[0]).to.include({ state: 'draining', load: 7 })
  })

  it('are not alive while their lease has run out, by the list and by the last look', () => {
    const { table, told } = tableOf(member(1), member(2, { expiresInMs: 0 }))
    expect([table.isAlive(1), table.isAlive(2), table.isSettled()]).to.deep.equal([true, false, false])
    table.setLapsed(new Set([1]))
    expect([table.isAlive(1), table.isAlive(2)]).to.deep.equal([false, true])
    table.setLapsed(new Set())
    expect([table.isAlive(1), table.isSettled()]).to.deep.equal([true, true])
    table.flush()
    table.setLapsed(new Set())
    table.flush()
    expect(told).to.have.length(2)
  })

  it('have their loads read in turn, 64 workers at a time, and gateways never', () => {
    const workers = Array.from({ length: 100 }, (_, i) => member(i + 1))
    const { table } = tableOf(member(500, { role: 'gateway' }), ...workers)
    const looked = [table.nextWorkers(), table.nextWorkers()].map((all) => all.map(({ epoch }) => epoch))
    expect(looked.map(({ length }) => length)).to.deep.equal([64, 64])
    expect(new Set(looked.flat())).to.deep.equal(new Set(workers.map(({ epoch }) => epoch)))
  })
})
