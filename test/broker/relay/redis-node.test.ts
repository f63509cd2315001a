import { expect } from 'chai'
import { Lease } from '../../../shared/broker/placement/lease.ts'
import type { Member, Members } from '../../../shared/broker/placement/members.ts'
import type { RedisLink } from '../../../shared/broker/redis-link.ts'
import { packMessage, RECORD, record } from '../../../shared/broker/relay/records.ts'
import { type NodeHandlers, RedisNode } from '../../../shared/broker/relay/redis-node.ts'
import { createLog } from '../../../shared/log.ts'
import { type CounterName, NO_METRICS } from '../../../shared/metrics.ts'

const ME = 1

const member = (epoch: number, fields: Partial<Member> = {}): Member => ({
  role: 'gateway',
  state: 'active',
  load: 0,
  pid: epoch,
  epoch,
  expiresInMs: 4_000,
  ...fields,
})

/** A node among members that the test makes up; each list that it asks for is answered by `list`. */
function setUp(list: (times: number) => Member[] | Promise<Member[]>) {
  const heard = { onMessage: (_message: Buffer) => {} }
  const gone: number[] = []
  const known: number[][] = []
  const counted = new Map<CounterName, number>()
  let lists = 0
  const members: Members = {
    join: async () => ME,
    renew: async () => 'renewed',
    leave: async () => {},
    list: async () => list(++lists),
    isRemembered: async () => true,
    expire: async () => true,
  }
  const link: Pick<RedisLink, 'publish' | 'listen' | 'unlisten'> = {
    publish: async () => 1,
    unlisten: async () => {},
    async listen(_channel, onMessage) {
      heard.onMessage = onMessage
    },
  }
  const handlers: NodeHandlers = {
    onRecord: () => {},
    onMembers: (all) => known.push(all.map(({ epoch }) => epoch)),
    onMemberLost: (epoch) => gone.push(epoch),
    onEvicted: () => {},
    onRedisEmptied: () => {},
    onUndelivered: () => {},
  }
  const node = new RedisNode(
    {
      link: link as RedisLink,
      members,
      describe: () => ({ role: 'worker', state: 'active', load: 0, pid: 1 }),
      lease: new Lease(),
      log: createLog({ level: 'error', write: () => {} }),
      metrics: { ...NO_METRICS, count: (name, by = 1) => counted.set(name, (counted.get(name) ?? 0) + by) },
    },
    handlers,
    { tickMs: 50, renewMs: 90, rebuildMs: 150, steadyMs: 400, slipMs: 500 },
  )
  return { node, heard, gone, known, counted }
}

describe('a process among the others', () => {
  const nodes: RedisNode[] = []
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop()
  })

  it('reliability T_dead: who is missing is gone, but nobody before a time of steady answers, and not who was met meanwhile', async () => {
    const over = Promise.withResolvers<void>()
    const startedAt = performance.now()
    let goneAt = 0
    let metAt = 0
    const { node, gone } = setUp((times) => {
      const elapsed = performance.now() - startedAt
      if (gone.includes(2) && metAt === 0) {
        metAt = times
        node.outbox('gateway', 3) // Joins and calls while the list, which it is not on, is on its way.
      }
      if (gone.length > 0 && goneAt === 0) goneAt = elapsed
      if (gone.includes(3)) {
        expect(times).to.be.greaterThan(metAt + 1)
        over.resolve()
      }
      return [member(ME)]
    })
    nodes.push(node)
    await node.start()
    node.outbox('gateway', 2)
    await over.promise
    expect(goneAt).to.be.within(400, 3_000)
    expect(gone).to.deep.equal([2, 3])
  })

  it('N5: frames of a process that was judged dead reach nobody and are counted', async () => {
    const dead = Promise.withResolvers<void>()
    const { node, heard, gone, counted } = setUp(() => {
      if (gone.length > 0) dead.resolve()
      return gone.length > 0 ? [member(ME)] : [member(ME), member(2, { expiresInMs: 0 })]
    })
    nodes.push(node)
    await node.start()
    await dead.promise
    expect(gone).to.deep.equal([2])
    const frames = record(RECORD.frames, { stream: 1, seq: 5, count: 3, body: 'x' })
    heard.onMessage(packMessage(2, 0, [frames, record(RECORD.beat), { ...frames, count: 4 }]))
    heard.onMessage(packMessage(9, 0, [frames]))
    expect(counted.get('stale_frames_dropped')).to.equal(7)
  })

  it('reliability R restart empty: on a list without this process nobody is judged, and everybody is still known', async () => {
    const over = Promise.withResolvers<void>()
    const { node, gone, known } = setUp((times) => {
      if (times === 12) over.resolve()
      return times === 1 || times > 10 ? [member(ME), member(2)] : [member(2, { expiresInMs: 0 })]
    })
    nodes.push(node)
    await node.start()
    node.outbox('gateway', 5)
    await over.promise
    expect(gone).to.deep.equal([])
    expect(known.every((epochs) => epochs.includes(2))).to.equal(true)
  })
})
