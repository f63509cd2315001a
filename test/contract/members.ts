import { expect } from 'chai'
import type { Bus } from '../../shared/cluster/bus/bus.ts'
import type { ChannelProbe, MemberFields, Members } from '../../shared/cluster/members/members.ts'
import { until } from '../support/until.ts'

export const WORKER: MemberFields = { role: 'worker', state: 'active', load: 3, pid: 1 }
export const PROBE: ChannelProbe = { channel: 'wk:1', message: Buffer.from('probe') }

export type MembersSetup = {
  /** The members as one more process reaches them, and its bus. */
  connect(): Promise<{ members: Members; bus: Bus }>
  /** Lets the leases of all members run out. */
  lapse(): Promise<void>
  /** As a restart without the keys. */
  loseKeys(): Promise<void>
}

/** The tests that every `Members` passes. */
export function membersContract({ connect, lapse, loseKeys }: MembersSetup): void {
  let members: Members
  let bus: Bus
  beforeEach(async () => {
    ;({ members, bus } = await connect())
    await bus.subscribe(PROBE.channel, () => {})
  })
  const another = async () => (await connect()).members

  it('each process that joins gets a higher epoch and is listed with its fields', async () => {
    const about = { version: '0.1.0', since: '2026-11-22T10:00:00.000Z', capacity: 256 }
    const first = await members.join({ ...WORKER, ...about })
    const second = await (await another()).join({ ...WORKER, role: 'gateway' })
    expect(second).to.be.greaterThan(first)
    const { members: list } = await members.list()
    expect(list.map(({ epoch }) => epoch).sort()).to.deep.equal([first, second])
    expect(list.find(({ epoch }) => epoch === first)).to.include({ ...WORKER, ...about })
    expect(list[0]?.expiresInMs).to.be.within(3_000, 4_000)
    expect(await members.isMember(second)).to.equal(true)
    expect(await members.isMember(second + 1)).to.equal(false)
  })

  it('a member is expired only when its lease has run out, and cannot renew afterwards', async () => {
    const epoch = await members.join(WORKER)
    expect(await members.expire(epoch)).to.equal(false)
    expect((await members.renew(epoch, { ...WORKER, load: 9 }, PROBE)).outcome).to.equal('renewed')
    expect((await members.look([])).lapsed).to.deep.equal([])
    await lapse()
    expect((await members.look([])).lapsed).to.deep.equal([epoch])
    expect(await members.expire(epoch)).to.equal(true)
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('evicted')
    expect((await members.list()).members).to.deep.equal([])
  })

  it('a member whose lease has run out is one until it is expired, and can renew', async () => {
    const epoch = await members.join(WORKER)
    await lapse()
    expect(await members.isMember(epoch)).to.equal(true)
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
    expect((await members.look([])).lapsed).to.deep.equal([])
  })

  it('another process cannot renew the lease of a member', async () => {
    const epoch = await members.join(WORKER)
    const other = await another()
    await other.join(WORKER)
    expect((await other.renew(epoch, WORKER, PROBE)).outcome).to.equal('evicted')
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
  })

  it('a lease is not renewed while nobody subscribes to the channel of the probe, and is renewed again afterwards', async () => {
    const epoch = await members.join(WORKER)
    await lapse()
    await bus.unsubscribe(PROBE.channel)
    for (const probe of [PROBE, { channel: PROBE.channel }])
      expect((await members.renew(epoch, WORKER, probe)).outcome).to.equal('unheard')
    expect((await members.look([])).lapsed).to.deep.equal([epoch])
    await bus.subscribe(PROBE.channel, () => {})
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
    expect((await members.look([])).lapsed).to.deep.equal([])
  })

  it('the message of a probe comes over its channel', async () => {
    const heard: string[] = []
    await bus.subscribe('wk:2', (message) => heard.push(message.toString()))
    const epoch = await members.join(WORKER)
    await members.renew(epoch, WORKER, { channel: 'wk:2' })
    await members.renew(epoch, WORKER, { ...PROBE, channel: 'wk:2' })
    await until(() => heard.length > 0, { what: 'the probe' })
    expect(heard).to.deep.equal(['probe'])
  })

  it('after the keys were lost a member is registered again under its old epoch, and new epochs are still higher', async () => {
    const epoch = await members.join(WORKER)
    await loseKeys()
    expect((await members.list()).members).to.deep.equal([])
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('keys_lost')
    expect((await members.renew(epoch, WORKER, PROBE)).outcome).to.equal('renewed')
    const other = await another()
    expect(await other.join(WORKER)).to.be.greaterThan(epoch)
    expect(await other.isBootMarkerCurrent()).to.equal(true)
    expect((await members.list()).members).to.have.length(2)
  })

  it('the boot marker is current until the keys are lost, and again once this process has renewed', async () => {
    const second = await another()
    const epoch = await members.join(WORKER)
    await second.join(WORKER)
    expect(await second.isBootMarkerCurrent()).to.equal(true)
    await loseKeys()
    expect(await members.isBootMarkerCurrent()).to.equal(false)
    await members.renew(epoch, WORKER, PROBE)
    expect(await members.isBootMarkerCurrent()).to.equal(true)
    expect(await second.isBootMarkerCurrent()).to.equal(false)
  })

  it('a member that leaves is not listed any more, and to expire it succeeds', async () => {
    const epoch = await members.join(WORKER)
    await members.leave(epoch)
    expect((await members.list()).members).to.deep.equal([])
    expect(await members.expire(epoch)).to.equal(true)
  })

  it('each renewal gives the member another four seconds and publishes its new fields', async () => {
    const epoch = await members.join(WORKER)
    await lapse()
    await members.renew(epoch, { ...WORKER, state: 'draining', load: 9 }, PROBE)
    const [member] = (await members.list()).members
    expect(member).to.include({ epoch, state: 'draining', load: 9 })
    expect(member?.expiresInMs).to.be.within(3_000, 4_000)
  })

  it('each change of the members is announced once, in order; a renewal with another load is none', async () => {
    const watching = await another()
    const changes: [version: number, epoch: number, state: string | undefined, isGone: boolean][] = []
    await watching.watch(({ version, epoch, member, isGone }) => changes.push([version, epoch, member?.state, isGone]))
    const { version } = await watching.look([])
    const epoch = await members.join(WORKER)
    const renewed = await members.renew(epoch, { ...WORKER, load: 9 }, PROBE)
    await members.renew(epoch, { ...WORKER, state: 'draining' }, PROBE)
    await members.leave(epoch)
    await members.leave(epoch)
    const look = await watching.look([epoch])
    await until(() => changes.length >= 3, { what: 'the changes' })
    const first = changes[0]?.[0] ?? 0
    expect(first).to.be.above(version)
    expect(renewed.version).to.equal(first)
    expect(changes).to.deep.equal([
      [first, epoch, 'active', false],
      [first + 1, epoch, 'draining', false],
      [first + 2, epoch, undefined, true],
    ])
    expect(look).to.deep.equal({ version: first + 2, lapsed: [], loads: [0] })
  })

  it('a look reads the loads of the members that it asks for', async () => {
    const [one, two] = [await members.join(WORKER), await (await another()).join({ ...WORKER, load: 7 })]
    expect((await members.look([two, 5, one])).loads).to.deep.equal([7, 0, 3])
    await members.renew(one, { ...WORKER, load: 4 }, PROBE)
    expect((await members.look([one])).loads).to.deep.equal([4])
  })
}
