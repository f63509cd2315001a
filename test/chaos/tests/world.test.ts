import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { ofKind } from '../history.ts'
import { endsOf, openRuns, readAgain, tally } from '../load.ts'
import { paced } from '../prompts.ts'
import { countSessions, createSessions, gatewayFor } from '../sessions.ts'
import { World } from '../world.ts'

const exists = (pid: number): boolean => existsSync(`/proc/${pid}`)

describe('the cluster of a scenario', () => {
  it('consists of real processes, records what happens to them, and leaves nothing behind', async () => {
    const world = await World.open({ random: new Random(1), gateways: 2, workers: 2, hasProxies: true })
    const pids = [...world.gateways, ...world.workers].map(({ proc }) => proc.pid)
    try {
      const streams = await openRuns(world, 4, () => paced({ count: 2, everyMs: 20 }))
      expect(tally(await endsOf(streams, 5_000))).to.equal('4 done')
      await readAgain(world, streams)
      expect(await countSessions(world, await createSessions(world, 2))).to.equal(2)
      for (const { run } of streams) expect(world.workers).to.include(world.ownerOf(run))
      for (const { proxy } of world.workers) expect(proxy?.stats.open).to.be.above(1)
      expect((await world.ask(gatewayFor(world, 0), { path: '/nowhere' })).status).to.equal(404)
      expect(world.check()).to.deep.equal([])

      const frames = ofKind(world.history, 'frame')
      const doubled = frames.at(-1)
      if (doubled) world.record(doubled)
      expect(world.check().map(({ rule }) => rule)).to.include('stream-altered')
      const [standing] = await openRuns(world, 1, () => paced({ count: 1, everyMs: 60_000 }))
      if (!standing) throw new Error('there is a run')
      world.endRound()
      const found = world.check()
      expect(found.map(({ rule }) => rule)).to.include.members(['stream-altered', 'stream-without-end'])
      standing.leave()
      expect(world.check(), 'violations of an ended round are kept, and none is added').to.deep.equal(found)

      const [worker] = world.workers
      if (!worker) throw new Error('there is a worker')
      await world.kill(worker)
      expect(world.workers).to.not.include(worker)
      expect(ofKind(world.history, 'exited')).to.have.length(1)
      const { code } = await world.stop(gatewayFor(world, 0), { withinMs: 10_000, noticedAfterMs: 50 })
      expect([code, world.gateways.length]).to.deep.equal([0, 1])
    } finally {
      await world[Symbol.asyncDispose]()
    }
    expect(pids.filter(exists)).to.deep.equal([])
    expect([existsSync(world.dataDir), world.redis.isRunning]).to.deep.equal([false, false])
  })
})
