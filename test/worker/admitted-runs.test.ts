import { expect } from 'chai'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { AppError, tooMany } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { type Admission, NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { createDemoWorker } from '../support/demo-worker.ts'

describe("a worker under its tenant's limits", () => {
  let calls: string[]
  let refusal: AppError | undefined
  const admission: Admission = {
    ...NO_ADMISSION,
    async admit(_tenant, runId) {
      calls.push(`admit ${runId}`)
      if (refusal) throw refusal
    },
    hold(_tenant, runId, ended) {
      calls.push(`hold ${runId}`)
      void ended.then(() => calls.push(`ended ${runId}`))
    },
    release: (_tenant, runId) => void calls.push(`release ${runId}`),
  }
  const open = (runsPerWorker: number) =>
    createDemoWorker(createMemoryPermissionStore(), { runsPerWorker }, { admission })
  const errorOf = async (work: () => Promise<void> | void) => {
    try {
      await work()
    } catch (cause) {
      if (cause instanceof AppError) return cause
      throw cause
    }
    return undefined
  }

  beforeEach(() => {
    calls = []
    refusal = undefined
  })

  it('holds the place of a run from its start to its end', async () => {
    const worker = open(1)
    await worker.inbox.startRun(TENANT, 'run_1', { prompt: '/say hello' })
    void worker.inbox.acceptRun(TENANT, 'run_1')
    await worker.drain(5_000)
    expect(calls.slice(0, 3)).to.deep.equal(['admit run_1', 'hold run_1', 'ended run_1'])
  })

  it('starts no run that is refused', async () => {
    const worker = open(1)
    refusal = tooMany('too many runs', 5)
    expect(await errorOf(() => worker.inbox.startRun(TENANT, 'run_1', { prompt: '/say hello' }))).to.equal(refusal)
    expect(calls).not.to.include('hold run_1')
    expect(() => worker.inbox.getRun(TENANT, 'run_1')).to.throw(AppError)
    await worker.drain(5_000)
  })

  it('gives the place of an admitted run back that it cannot start', async () => {
    const worker = open(0)
    const failure = await errorOf(() => worker.inbox.startRun(TENANT, 'run_1', { prompt: '/say hello' }))
    expect(failure).to.be.instanceOf(AppError)
    expect(calls).to.deep.equal(['admit run_1', 'release run_1'])
    await worker.drain(5_000)
  })
})
