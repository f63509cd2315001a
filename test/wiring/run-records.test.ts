import { expect } from 'chai'
import {
  openLocalRunRecorder,
  openRecordedBroker,
  openRunRecorder,
  recordLost,
} from '../../services/wiring/run-records.ts'
import type { Broker } from '../../shared/cluster/commands/broker.ts'
import { notFound } from '../../shared/kernel/errors.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { RunFigures } from '../../shared/work/runs/run-figures.ts'
import { until } from '../support/until.ts'
import { useOpening } from './opening.ts'

/** A process that has no run any more. */
const EMPTY = {
  getRun: async (_tenant: string, runId: string) => Promise.reject(notFound(`no run ${runId}`)),
} as unknown as Broker

describe('the records of runs of a process', () => {
  const opening = useOpening()
  const factsOf = (id: string) =>
    ({ tenant: TENANT, run_id: id, kind: 'run', session_id: undefined, started_at: new Date().toISOString() }) as const
  const parts = async () => ({ store: await opening.store(), tenantConfig: undefined })
  const recording = { metrics: NO_METRICS, log: opening.log }

  it('D20: a gateway without a store has the runs of its broker, and no others', async () => {
    const broker = openRecordedBroker(undefined, { broker: EMPTY, tenantConfig: undefined })
    const id = newId('run')
    expect(await broker.getRun(TENANT, id).catch((cause: unknown) => cause)).to.include({ status: 404 })
  })

  it('D20: a run that the process before has left behind is recorded as lost by the next one, when it opens', async () => {
    const known = await parts()
    const id = newId('run')
    const before = openRunRecorder({ ...known, ...recording }, () => 7)
    before.begin(factsOf(id), new RunFigures())
    await until(async () => (await known.store.runRecords.nextOwner(undefined)) === '7', {
      what: 'the run to be noted',
    })
    await openLocalRunRecorder({ ...known, ...recording })
    const broker = openRecordedBroker(known.store, { broker: EMPTY, tenantConfig: undefined })
    expect(await broker.getRun(TENANT, id)).to.include({ run_id: id, status: 'failed', code: 'worker_lost' })
  })

  it('D20: only the runs of processes that are gone are lost', async () => {
    const known = await parts()
    const recorder = openRunRecorder({ ...known, ...recording }, () => 8)
    recorder.begin(factsOf(newId('run')), new RunFigures())
    await until(async () => (await known.store.runRecords.nextOwner(undefined)) === '8', {
      what: 'the run to be noted',
    })
    expect(await recordLost(known, async (owner) => owner !== '8')).to.equal(0)
    expect(await recordLost(known, async (owner) => owner === '8')).to.equal(1)
    expect(await known.store.runRecords.nextOwner(undefined)).to.equal(undefined)
  })
})
