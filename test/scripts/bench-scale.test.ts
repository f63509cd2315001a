import { expect } from 'chai'
import { nodesFor, slotOf, spreadOfChannels } from '../../scripts/bench/scale/redis-nodes.ts'
import { placeRuns, placeSessions } from '../../scripts/bench/scale/simulation.ts'
import { type Costs, sizeFor, usersOf } from '../../scripts/bench/scale/sizing.ts'
import { Random } from '../harness/seed.ts'

const COSTS: Costs = {
  events: { gateway: 10, worker: 20, redis: 1 },
  run: { gateway: 1, worker: 1, redis: 0.1 },
  session: { gateway: 0, worker: 10, redis: 1 },
  stream: { gateway: 20, worker: 20, redis: 0 },
  baseMib: { gateway: 80, worker: 100, redis: 10 },
  restCpu: {},
}
const HABITS = { everySecs: 60, events: 100, answerSecs: 10 }

describe('the sizes that bench:scale computes', () => {
  it('grow with the users, and leave one process of each kind to spare', () => {
    const small = sizeFor(60, COSTS, HABITS)
    expect(small).to.include({ gateways: 2, workers: 2, runsPerSec: 1, streams: 10, eventsPerSec: 100 })
    // 1,000 runs a second: 100,000 events of 20 ms for 1,000 and 1,000 runs of 1 ms are three cores of workers, each half busy.
    const large = sizeFor(60_000, COSTS, HABITS)
    expect(large).to.include({ workers: 7, gateways: 5 })
    expect(large.redisCores).to.be.closeTo(0.2, 1e-9)
    expect(large.workerMib).to.be.greaterThan(small.workerMib)
  })

  it('turn processes back into users', () => {
    const users = usersOf(12, COSTS, HABITS)
    const { gateways, workers } = sizeFor(users, COSTS, HABITS)
    expect(gateways + workers).to.equal(12)
    const more = sizeFor(users + 1, COSTS, HABITS)
    expect(more.gateways + more.workers).to.be.greaterThan(12)
  })

  it('a ring moves only the share of the worker that joins or leaves; runs are spread more evenly than sessions hash', () => {
    const placed = placeSessions(50, 20_000)
    expect(placed.joinMoves).to.be.within(0.005, 0.04)
    expect(placed.leaveMoves).to.be.within(0.005, 0.04)
    expect(placed.max).to.be.within(1, 1.6)
    const random = new Random(1)
    const runs = placeRuns({ gateways: 4, workers: 50, runs: 1_000, random: () => random.next() })
    expect(runs.max).to.be.within(1, 1.8)
  })

  it('a node of a Redis Cluster carries the channels that hash to it, and the fullest decides how many nodes are needed', () => {
    expect([slotOf('123456789'), slotOf('foo')]).to.deep.equal([12_739, 12_182]) // As CLUSTER KEYSLOT answers.
    const random = new Random(1)
    const draw = { random: () => random.next() }
    expect(spreadOfChannels({ gateways: 100, nodes: 1, ...draw })).to.equal(1)
    expect(spreadOfChannels({ gateways: 100, nodes: 10, ...draw })).to.be.within(1.2, 2.2)
    expect(nodesFor({ cores: 0.5, gateways: 4, ...draw })).to.deep.equal({ nodes: 1, fullest: 0.5 })
    const many = nodesFor({ cores: 7, gateways: 80, ...draw })
    expect(many?.nodes).to.be.within(13, 25)
    expect(nodesFor({ cores: 7, gateways: 2, ...draw })).to.equal(undefined)
  })
})
