import { expect } from 'chai'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { LoopBudget } from '../../shared/kernel/async/loop-budget.ts'
import { AppError, tooMany } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import { type Admission, NO_ADMISSION } from '../../shared/tenancy/limits/admission.ts'
import { createDemoWorker } from '../support/demo-worker.ts'

describe("a worker under its tenant's limits", () => {
  let calls: string[]
  let refusal: AppError | undefined
  const admission: Admission = {
    ...NO_ADMISSION,
    async admit({ runId }) {
      calls.push(`admit ${runId}`)
      if (refusal) throw refusal
      return undefined
    },
    hold({ runId }, run) {
      calls.push(`hold ${runId}`)
      run.whenEnded(() => calls.push(`ended ${runId}`))
    },
    release: ({ runId }) => void calls.push(`release ${runId}`),
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

  it('starts the runs that come together in their order, over several turns of its event loop, and none that is cancelled meanwhile', async () => {
    let turn = 0
    const turns: number[] = []
    const count = () => {
      turn++
      counting = setImmediate(count)
    }
    let counting = setImmediate(count)
    const busy: Admission = {
      ...admission,
      async admit({ runId }) {
        for (const until = performance.now() + 3; performance.now() < until; );
        turns.push(turn)
        calls.push(`admit ${runId}`)
        return undefined
      },
    }
    const worker = createDemoWorker(
      createMemoryPermissionStore(),
      { runsPerWorker: 20 },
      { admission: busy, turns: new LoopBudget(4) },
    )
    const ids = Array.from({ length: 10 }, (_, i) => `run_${i}`)
    const starts = ids.map((id) => Promise.resolve(worker.inbox.startRun(TENANT, id, { prompt: '/say hello' })))
    expect(calls.length, 'in the first turn').to.be.within(1, 2)
    void worker.inbox.cancelRun(TENANT, 'run_9')
    const failures = await Promise.all(starts.map((start) => start.then(() => '', String)))
    clearImmediate(counting)
    expect(failures.slice(0, 9).join('')).to.equal('')
    expect(failures[9]).to.include('cancelled before it began')
    expect(calls.filter((call) => call.startsWith('hold'))).to.deep.equal(ids.slice(0, 9).map((id) => `hold ${id}`))
    expect(new Set(turns).size, 'turns').to.be.at.least(5)
    for (const id of ids.slice(0, 9)) void worker.inbox.acceptRun(TENANT, id)
    await worker.drain(5_000)
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
