import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { MemoryEventLog } from '../../../shared/tenancy/events/memory.ts'
import { EventReader, eventOf, itIsAnEventLog } from '../../contract/event-log.ts'

describe("the tenants' events in memory", () => {
  itIsAnEventLog(async () => new MemoryEventLog())

  it('D16d: after a restart a reader that comes back gets a reset', async () => {
    const before = new MemoryEventLog(1_000)
    const reader = await EventReader.open(before)
    before.append(DEFAULT_TENANT, eventOf(1))
    await reader.next(1)
    const after = new MemoryEventLog(2_000)
    const again = await EventReader.open(after, { after: reader.lastId ?? '' })
    expect(await again.next(1)).to.deep.equal(['reset'])
  })
})
