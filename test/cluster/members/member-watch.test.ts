import { expect } from 'chai'
import { Lease } from '../../../shared/cluster/members/lease.ts'
import type { MemberFields } from '../../../shared/cluster/members/members.ts'
import { createRedisMembers } from '../../../shared/cluster/members/redis-members.ts'
import { Membership } from '../../../shared/cluster/relay/membership.ts'
import { Transport } from '../../../shared/cluster/relay/wire/transport.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { useRedis } from '../../support/redis.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { until } from '../../support/until.ts'

type Process = {
  membership: Membership
  /** The epochs that it knows, in ascending order. */
  known: number[]
  lost: number[]
  /** How often it has listed the members. */
  lists: number
  /** While it is set, announced changes do not reach the process. */
  isMuted: boolean
  /** Ends the process without leaving. */
  die(): Promise<void>
}

describe('changes of the members', () => {
  const redis = useRedis()
  const closers: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0)) await close()
  })

  /** `beforePiece` is called before each piece of a list is read. */
  async function join(role: MemberFields['role'] = 'worker', beforePiece = async () => {}): Promise<Process> {
    const link = await openRedisLink(redis.url)
    const { run, subscribe } = link
    link.run = async (script, ...rest) => {
      if (script.name === 'aeMembers') {
        self.lists++
        await beforePiece()
      }
      return run(script, ...rest)
    }
    link.subscribe = (channel, onMessage) =>
      subscribe(channel, (message) => {
        if (channel !== 'members' || !self.isMuted) onMessage(message)
      })
    const lease = new Lease()
    const log = SILENT_LOG
    const describe = () => ({ role, state: 'active', load: 0, pid: 1 }) as const
    const handlers = { onRecord: () => {}, onUndelivered: () => {} }
    const transport = new Transport({ role, bus: link, lease, metrics: NO_METRICS }, handlers)
    const membership = new Membership(
      { transport, members: createRedisMembers(link), lease, log, describe },
      {
        onMembers: (all) => {
          self.known = all.map(({ epoch }) => epoch).sort()
        },
        onMemberLost: (epoch) => self.lost.push(epoch),
        onEvicted: () => {},
        onKeysLost: () => {},
      },
    )
    const die = async () => {
      closers.splice(closers.indexOf(leave), 1)
      await link.close() // The renewals fail from now on.
      await membership.stop()
    }
    const leave = async () => {
      await membership.stop()
      await link.close()
    }
    const self: Process = { membership, known: [], lost: [], lists: 0, isMuted: false, die }
    closers.push(leave)
    await membership.start()
    return self
  }

  const untilKnown = (process: Process, epochs: number[], withinMs?: number) =>
    until(() => String(process.known) === String(epochs.toSorted()), {
      what: `the members ${epochs} to be known`,
      lastSeen: () => process.known,
      ...(withinMs === undefined ? {} : { withinMs }),
    })
  const epochsOf = (...processes: Process[]) => processes.map(({ membership }) => membership.epoch)

  it('a process lists the members once, and learns of those that join and leave by their messages', async () => {
    const first = await join()
    const second = await join('gateway')
    await untilKnown(first, epochsOf(first, second))
    await second.membership.stop()
    await until(() => first.lost.length > 0, { what: 'the gateway to be gone' })
    expect([first.known, first.lost, first.lists]).to.deep.equal([epochsOf(first), epochsOf(second), 1])
  })

  it('a process learns also of changes whose messages were lost: it lists the members, and removes one that left after a steady time', async () => {
    const [first, leaving] = [await join(), await join()]
    await untilKnown(first, epochsOf(first, leaving))
    first.isMuted = true
    await leaving.membership.stop()
    const joined = await join()
    await until(() => first.known.includes(joined.membership.epoch), { what: 'the join' })
    await untilKnown(first, epochsOf(first, joined))
    expect(first.lost).to.deep.equal(epochsOf(leaving))
  })

  it('a process lists the members after a gap in the changes, and applies those that came meanwhile', async () => {
    const first = await join()
    first.isMuted = true
    const second = await join()
    first.isMuted = false
    const third = await join()
    await untilKnown(first, epochsOf(first, second, third), 1_500)
  })

  it('a process that lists the members piece by piece also learns of those that join and leave meanwhile', async () => {
    const [staying, leaving] = [await join(), await join()]
    const epochs = Array.from({ length: 500 }, (_, i) => i + 1)
    const client = redis.connect()
    const record = (await client.hget('ae:{members}', String(staying.membership.epoch))) ?? ''
    await client.hset('ae:{members}', Object.fromEntries(epochs.map((epoch) => [epoch, record])))
    await client.zadd('ae:{members}:leases', ...epochs.flatMap((epoch) => [10_000_000_000_000, epoch]))
    const joined: Process[] = []
    let pieces = 0
    const listing = await join('gateway', async () => {
      if (++pieces !== 2) return
      joined.push(await join())
      await leaving.membership.stop()
    })
    expect(pieces).to.be.above(2)
    const expected = [...epochs, ...epochsOf(staying, listing, ...joined)].sort((a, b) => a - b)
    await until(() => listing.known.toSorted((a, b) => a - b).join() === expected.join(), {
      what: 'the members',
    })
    expect(listing.lists).to.equal(pieces)
  })

  it('a member that dies silently is noticed after its lease of four seconds, and no other is', async () => {
    const [first, other, dying] = [await join(), await join(), await join()]
    await untilKnown(first, epochsOf(first, other, dying))
    const diedAt = performance.now()
    await dying.die()
    await until(() => first.lost.length > 0, { what: 'the member to be lost' })
    expect(performance.now() - diedAt).to.be.at.least(2_500)
    await until(() => other.lost.length > 0, { what: 'the other to notice it' })
    expect([first.lost, other.lost]).to.deep.equal([epochsOf(dying), epochsOf(dying)])
  })

  it('after FLUSHALL all know one another again, and one that died meanwhile is lost after a steady time', async () => {
    const [first, other, dying] = [await join(), await join(), await join()]
    await untilKnown(first, epochsOf(first, other, dying))
    await dying.die()
    await redis.connect().flushall()
    const flushedAt = performance.now()
    for (const each of [first, other]) {
      await until(() => each.lost.length > 0, { what: 'the dead member to be lost' })
      expect([each.lost, each.known]).to.deep.equal([epochsOf(dying), epochsOf(first, other).sort()])
    }
    expect(performance.now() - flushedAt).to.be.at.least(STEADY_MS)
  })

  it('an evicted process is known under its new epoch only', async () => {
    const [first, other] = [await join(), await join()]
    const [before] = epochsOf(other)
    const client = redis.connect()
    await client.zadd('ae:{members}:leases', 0, String(before)) // As if it had not renewed for four seconds.
    await createRedisMembers(await linkFor()).expire(Number(before))
    await until(() => other.membership.epoch !== before, { what: 'the process to enter again' })
    for (const each of [first, other]) await untilKnown(each, epochsOf(first, other))
    expect(first.lost).to.deep.equal([before])
  })

  async function linkFor() {
    const link = await openRedisLink(redis.url)
    closers.push(() => link.close())
    return link
  }
})

/** A process removes no other before its own answers have come for this long. */
const STEADY_MS = 4_000
