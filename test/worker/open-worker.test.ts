import { expect } from 'chai'
import { openLocalRunRecorder } from '../../services/wiring/run-records.ts'
import { openWorker } from '../../services/worker/open-worker.ts'
import { ALWAYS_HELD } from '../../shared/cluster/members/fence.ts'
import { createMemoryPermissionStore } from '../../shared/cluster/permissions/memory-store.ts'
import { newId } from '../../shared/kernel/ids.ts'
import { NO_METRICS } from '../../shared/kernel/metrics.ts'
import { DEFAULT_TENANT as TENANT } from '../../shared/kernel/tenant.ts'
import type { TenantEvent } from '../../shared/tenancy/events/port.ts'
import { useOpening } from '../wiring/opening.ts'

describe('a worker, as a process opens it', () => {
  const opening = useOpening()

  async function open({ hasStore = true } = {}) {
    const told: TenantEvent[] = []
    const store = hasStore ? await opening.store() : undefined
    const recorded = { tenantConfig: undefined, metrics: NO_METRICS, log: opening.log }
    const stored = store && { store, recorder: await openLocalRunRecorder({ store, ...recorded }) }
    const opened = await openWorker(opening.settings().worker, opening.log, {
      ...{ stored, tenantConfig: undefined, fence: ALWAYS_HELD, metrics: NO_METRICS },
      permissions: createMemoryPermissionStore(),
      events: { append: (_tenant, event) => void told.push(event) },
      isHeapHigh: () => false,
      claims: undefined,
      owner: () => '1',
      planQueue: () => async () => ({ note: 'no queue' }),
    })
    opening.closing(() => opened.close())
    return { ...opened, told, store }
  }

  it("runs with the server's model and tools, tells of the run, and counts what it has used once it has settled", async () => {
    const { worker, toolBox, settled, told, store } = await open()
    const id = newId('run')
    await worker.inbox.startRun(TENANT, id, { prompt: '/say hello' })
    void worker.inbox.acceptRun(TENANT, id)
    await worker.drain(5_000)
    await settled()
    expect(told.map(({ type }) => type)).to.deep.equal(['run.started', 'run.ended'])
    expect(toolBox.find('Write')?.name).to.equal('Write')
    const range = { by: 'kind', bucket: 'day', from: '2026', until: '9999', limit: 2 } as const
    expect(await store?.usage.read(TENANT, range)).to.have.length(1)
  })

  it('without a store its sessions live in memory, and nothing is counted', async () => {
    const { worker, settled } = await open({ hasStore: false })
    await worker.inbox.createSession(TENANT, 's1', 'a1')
    expect(worker.inbox.getSession(TENANT, 's1')).to.include({ session_id: 's1' })
    worker.abortAll()
    await settled()
  })
})
