import { expect } from 'chai'
import type { Frames } from '../../../../shared/cluster/journal/frame-stream.ts'
import { failureFrame, renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { errorEvent, type RunEvent } from '../../../../shared/kernel/events.ts'
import { createLog } from '../../../../shared/kernel/log.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { RunWitness } from '../../../../shared/work/runs/records/run-witness.ts'
import { DONE, FakeStore, TENANT, textOf } from './setup.ts'

const EPOCH = 0x12
const OTHER_EPOCH = 0x13
const idOf = (epoch: number, n = 1) => `run_${epoch.toString(16).padStart(8, '0')}${String(n).padStart(24, '0')}`
const framesOf = (...events: RunEvent[]): Frames[] =>
  events.map((event, i) => ({ text: Buffer.from(renderFrame(i + 1, event)), lastSeq: i + 1 }))

function setUp({ storePayloads = true } = {}) {
  const store = new FakeStore()
  const witness = new RunWitness({
    store,
    auditOf: async () => ({ store_payloads: storePayloads, retention_days: 7 }),
    metrics: NO_METRICS,
    log: createLog({ level: 'info', write: () => {} }),
  })
  /** Starts a run and reads its frames, all or the first few. */
  const read = async (runId: string, frames: readonly Frames[], count = Infinity) => {
    const source = (async function* () {
      yield* frames
    })()
    const run = witness.watch({ runId, frames: source }, { tenant: TENANT, kind: 'run', title: 'a prompt' })
    const seen: Frames[] = []
    for await (const each of run.frames) if (seen.push(each) === count) break
    return seen
  }
  const recorded = async () => {
    await new Promise(setImmediate)
    return [...store.records.values()].map(({ record, keptDays }) => ({ ...record, keptDays }))
  }
  return { store, witness, read, recorded }
}

describe('the witness of ends', () => {
  it('D20.4: records an end that was delivered when its worker dies, as it was, and nothing before', async () => {
    const { witness, read, recorded } = setUp()
    const frames = framesOf(textOf('hello'), DONE)
    expect(await read(idOf(EPOCH), frames)).to.deep.equal(frames)
    await read(idOf(OTHER_EPOCH), frames)
    expect(await recorded()).to.deep.equal([])
    witness.onWorkerLost(EPOCH)
    const [record, ...more] = await recorded()
    expect(more).to.deep.equal([])
    expect(record).to.include({ run_id: idOf(EPOCH), status: 'done', code: 'ok', event_count: 2, kind: 'run' })
    expect(record).to.include({ input_tokens: 20, cost_usd: 0.5, title: 'a prompt', keptDays: 7 })
  })

  it('records a failure with its code, and a cancelled run as cancelled', async () => {
    const { witness, read, recorded } = setUp()
    await read(idOf(EPOCH, 1), framesOf(errorEvent('provider_rejected', 'no')))
    await read(idOf(EPOCH, 2), framesOf(errorEvent('cancelled', 'no')))
    witness.onWorkerLost(EPOCH)
    const ends = (await recorded()).map(({ status, code }) => `${status} ${code}`)
    expect(ends).to.deep.equal(['failed provider_rejected', 'cancelled cancelled'])
  })

  it('records a run that its client was told is lost at once, and none of which the client has left', async () => {
    const { witness, read, recorded } = setUp({ storePayloads: false })
    await read(idOf(EPOCH, 1), [...framesOf(textOf('a')), failureFrame(1, 'worker_lost')])
    await read(idOf(EPOCH, 2), framesOf(textOf('a'), DONE), 1)
    await read(idOf(EPOCH, 3), [...framesOf(textOf('a')), failureFrame(1, 'relay_unavailable')])
    witness.onWorkerLost(EPOCH)
    const [record, ...more] = await recorded()
    expect(more).to.deep.equal([])
    expect(record).to.include({ run_id: idOf(EPOCH, 1), status: 'failed', code: 'worker_lost' })
    expect(record).not.to.have.property('title')
  })

  it('tries again while the store is away, and gives up what it does not take', async () => {
    const { store, read, recorded } = setUp()
    store.failure = () => new Error('a bug')
    await read(idOf(EPOCH, 1), [failureFrame(0, 'worker_lost')])
    expect(await recorded()).to.deep.equal([])
    store.failure = () => (store.tries < 3 ? new AppError('unavailable', 'away') : undefined)
    await read(idOf(EPOCH, 2), [failureFrame(0, 'worker_lost')])
    while (store.records.size === 0) await new Promise(setImmediate)
    expect((await recorded()).map(({ run_id }) => run_id)).to.deep.equal([idOf(EPOCH, 2)])
  })
})
