import { expect } from 'chai'
import { type ReaderFailure, renderFrame } from '../../../../shared/cluster/journal/frames.ts'
import { RelayedStream } from '../../../../shared/cluster/relay/streams/relayed-stream.ts'
import { errorEvent, isTerminal, type RunEvent } from '../../../../shared/kernel/events.ts'
import { NO_METRICS } from '../../../../shared/kernel/metrics.ts'
import { EndQueue } from '../../../../shared/work/runs/records/end-queue.ts'
import { RunWitness } from '../../../../shared/work/runs/records/run-witness.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { DONE, FakeStore, TENANT, textOf } from './setup.ts'

const EPOCH = 0x12
const OTHER_EPOCH = 0x13
const idOf = (epoch: number, n = 1) => `run_${epoch.toString(16).padStart(8, '0')}${String(n).padStart(24, '0')}`

function setUp({ storePayloads = true, now = Date.now } = {}) {
  const store = new FakeStore()
  const ends = new EndQueue({
    store,
    auditOf: async () => ({ store_payloads: storePayloads, retention_days: 7 }),
    batchMs: 1,
    stepWaitMs: 1,
    metrics: NO_METRICS,
    log: SILENT_LOG,
  })
  const witness = new RunWitness({ ends, now })
  /** Starts a run and reads the frames of these events, and then the failure that its stream ends with. */
  const read = async (runId: string, events: readonly RunEvent[], failure?: ReaderFailure) => {
    const frames = new RelayedStream(0, NO_HOOKS)
    witness.watch({ runId, frames }, { tenant: TENANT, kind: 'run', title: 'a prompt' })
    for (const [seq, event] of events.entries()) {
      const span = { from: { seq, pieces: 0 }, to: { seq: seq + 1, pieces: 0 } }
      frames.accept({ ...span, body: Buffer.from(renderFrame(seq + 1, event)), isLast: isTerminal(event) })
    }
    if (failure) frames.fail(failure)
    while (!(await frames.next()).done);
  }
  /** The same of a client that leaves before the last event. */
  const leave = async (runId: string) => {
    const frames = new RelayedStream(0, NO_HOOKS)
    witness.watch({ runId, frames }, { tenant: TENANT, kind: 'run' })
    await frames.return()
    frames.fail('worker_lost')
  }
  const recorded = async () => {
    await witness.settled()
    return [...store.records.values()].map(({ record, keptDays }) => ({ ...record, keptDays }))
  }
  return { witness, read, leave, recorded }
}

const NO_HOOKS = {
  requestResend: () => true,
  onRead: () => {},
  onGap: () => {},
  onFailed: () => {},
  onClosed: () => {},
}

describe('the witness of ends', () => {
  it('D20.4: records an end that was delivered when its worker dies, as it was, and nothing before', async () => {
    const { witness, read, recorded } = setUp()
    await read(idOf(EPOCH), [textOf('hello'), DONE])
    await read(idOf(OTHER_EPOCH), [textOf('hello'), DONE])
    expect(await recorded()).to.deep.equal([])
    witness.onWorkerLost(EPOCH)
    const [record, ...more] = await recorded()
    expect(more).to.deep.equal([])
    expect(record).to.include({ run_id: idOf(EPOCH), status: 'done', code: 'ok', event_count: 2, kind: 'run' })
    expect(record).to.include({ input_tokens: 20, cost_usd: 0.5, title: 'a prompt', keptDays: 7 })
  })

  it('D41.1: records the end of a run with a typed answer, however long that is', async () => {
    const { witness, read, recorded } = setUp()
    await read(idOf(EPOCH), [textOf('hello'), { ...DONE, output: { text: 'é'.repeat(10_000) } } as RunEvent])
    witness.onWorkerLost(EPOCH)
    expect((await recorded())[0]).to.include({ status: 'done', code: 'ok', event_count: 2, input_tokens: 20 })
  })

  it('records a failure with its code, and a cancelled run as cancelled', async () => {
    const { witness, read, recorded } = setUp()
    await read(idOf(EPOCH, 1), [errorEvent('provider_rejected', 'no')])
    await read(idOf(EPOCH, 2), [errorEvent('cancelled', 'no')])
    witness.onWorkerLost(EPOCH)
    const ends = (await recorded()).map(({ status, code }) => `${status} ${code}`)
    expect(ends).to.deep.equal(['failed provider_rejected', 'cancelled cancelled'])
  })

  it('records a run that its client was told is lost at once, and none of which the client has left', async () => {
    const { witness, read, leave, recorded } = setUp({ storePayloads: false })
    await read(idOf(EPOCH, 1), [textOf('a')], 'worker_lost')
    await leave(idOf(EPOCH, 2))
    await read(idOf(EPOCH, 3), [textOf('a')], 'relay_unavailable')
    witness.onWorkerLost(EPOCH)
    const [record, ...more] = await recorded()
    expect(more).to.deep.equal([])
    expect(record).to.include({ run_id: idOf(EPOCH, 1), status: 'failed', code: 'worker_lost' })
    expect(record).not.to.have.property('title')
  })

  it('forgets an end after 20 s, by when the death of its worker is noticed', async () => {
    let nowMs = 0
    const { witness, read, recorded } = setUp({ now: () => nowMs })
    for (const [n, endedMs] of [1_000, 1_501, 20_500, 21_500].entries()) {
      nowMs = endedMs
      await read(idOf(EPOCH, n), [DONE])
    }
    witness.onWorkerLost(EPOCH)
    expect((await recorded()).map(({ run_id }) => run_id)).to.deep.equal([1, 2, 3].map((n) => idOf(EPOCH, n)))
  })

  it('remembers the last 20,000 ends at least, and 21,000 at most', async () => {
    const { witness, read, recorded } = setUp({ now: () => 5_000 })
    for (let n = 0; n <= 21_000; n++) await read(idOf(n < 5_000 ? EPOCH : OTHER_EPOCH, n), [DONE])
    witness.onWorkerLost(EPOCH)
    const ids = (await recorded()).map(({ run_id }) => run_id)
    expect(ids).to.have.length(4_000)
    expect(ids[0]).to.equal(idOf(EPOCH, 1_000))
  })
})
