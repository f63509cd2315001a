import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { EFFECTS_ENV, startEffects } from '../effects.ts'
import { ofKind } from '../history.ts'
import { describeEnd, endsOf } from '../load.ts'
import { acting } from '../prompts.ts'
import { gatewayFor } from '../sessions.ts'
import { World } from '../world.ts'

const RUNS = 20
/** How long a gateway waits for the answer of a worker before it tries another. */
const TRY_MS = 500
/** Where a message has its sender's epoch. */
const EPOCH_AT = 1

describe('a worker whose answers do not arrive', () => {
  it('begins no tool for a run that its gateway starts on another worker', async () => {
    const size = { gateways: 1, workers: 2, hasProxies: true }
    await using world = await World.open({ random: new Random(1), ...size, env: EFFECTS_ENV })
    await using effects = await startEffects((entry) => world.record(entry))
    const [mute] = world.workers
    const gateway = gatewayFor(world, 0)
    const { id } = JSON.parse(mute?.proc.ready[0] ?? '') as { id: string }
    const epoch = Number(id.slice(id.indexOf('_') + 1))
    await gateway.proxy?.mode({
      drop: ({ payload }) => payload.length > EPOCH_AT + 4 && payload.readUInt32LE(EPOCH_AT) === epoch,
    })
    const streams = Array.from({ length: RUNS }, (_, n) => {
      const prompt = acting({ tool: 'WebFetch', inputs: effects.inputs(`mark ${n}`, 1), everyMs: 1 })
      return world.run(gateway, { prompt })
    })
    const ends = (await endsOf(streams, 10_000)).map(describeEnd)
    // On a busy machine the other worker may be too slow as well: then the run is refused, and must not have acted either.
    expect(ends.filter((end) => end !== 'status 503')).to.deep.equal(ends.filter((end) => end === 'done'))
    const tries = await Promise.all(streams.map(async ({ ended }) => (await ended).openedInMs > TRY_MS))
    expect(tries, 'runs that were tried on the other worker first').to.include(true)
    const called = ofKind(world.history, 'tool').map(({ run }) => run)
    expect(called.toSorted(), 'each run calls its tool once').to.deep.equal([...new Set(called)].toSorted())
    expect(called).to.have.length(ends.filter((end) => end === 'done').length)
  })
})
