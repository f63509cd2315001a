import { expect } from 'chai'
import { type PublishDeps, publishingEnds } from '../../services/executor/job-ends.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { TenantEvent } from '../../shared/tenancy/events/port.ts'
import type { WebhookEvent } from '../../shared/tenancy/webhooks/port.ts'
import { SILENT_LOG } from '../support/silent-log.ts'

const JOB = { kind: 'plan', tenant: DEFAULT_TENANT, id: 'plan_1' } as const
const FLOW_JOB = { kind: 'flow', tenant: DEFAULT_TENANT, id: 'trace_1' } as const
const RUN = {
  trace_id: 'trace_1',
  kind: 'run',
  flow: { name: 'judge', version: 2 },
  status: 'ok',
  ended_at: '2026-11-22T10:00:00.000Z',
}
const ENDED = { plan_id: 'plan_1', status: 'failed', ended_at: '2026-11-22T10:00:00.000Z' }

describe('the end of a job', () => {
  function setUp({ plan = ENDED, dispatch = RUN, failures = 0, hasWebhooks = true } = {}) {
    const published: WebhookEvent[] = []
    const told: string[] = []
    const draining = new AbortController()
    let left = failures
    const deps = {
      events: { append: (_tenant: string, { type }: TenantEvent) => void told.push(type) },
      outbox: hasWebhooks
        ? {
            publish: async (_tenant: string, event: WebhookEvent) => {
              if (left-- > 0) throw new AppError('unavailable', 'the store does not answer')
              published.push(event)
            },
          }
        : undefined,
      plans: { get: async () => plan },
      dispatches: { get: async () => dispatch },
      draining: draining.signal,
      log: SILENT_LOG,
    } as unknown as PublishDeps
    return { published, told, draining, handle: publishingEnds(async () => ({ failed: 'step 1' }), deps) }
  }

  it('comes when the event of its plan is stored for the webhooks', async () => {
    const { handle, published } = setUp()
    expect(await handle(JOB)).to.deep.equal({ failed: 'step 1' })
    expect(published).to.deep.equal([
      { type: 'plan.ended', subject: 'plan_1', at: ENDED.ended_at, data: { plan_id: 'plan_1', status: 'failed' } },
    ])
  })

  it('D36.1: of the run of a flow that was refused is not told, though its job had come to the queue', async () => {
    const { handle, published, told } = setUp({ dispatch: { ...RUN, status: 'rejected' } })
    await handle(FLOW_JOB)
    expect([published, told]).to.deep.equal([[], []])
  })

  it('waits for a store that is away', async () => {
    const { handle, published } = setUp({ failures: 1 })
    expect(await handle(JOB)).to.deep.equal({ failed: 'step 1' })
    expect(published).to.have.length(1)
  })

  it('is left to another executor when this one shuts down before the event is stored', async () => {
    const { handle, draining } = setUp({ failures: 1_000 })
    draining.abort()
    expect(await handle(JOB)).to.deep.equal({ again: true })
  })

  it('comes with the event of a flow that was run, and without one for an evaluation or a run that goes on', async () => {
    const ended = setUp()
    await ended.handle(FLOW_JOB)
    const data = { trace_id: 'trace_1', flow: 'judge', flow_version: 2, status: 'ok' }
    expect(ended.published).to.deep.equal([{ type: 'flow.ended', subject: 'trace_1', at: RUN.ended_at, data }])
    for (const dispatch of [
      { ...RUN, kind: 'evaluation' },
      { ...RUN, status: 'running' },
    ]) {
      const { handle, published } = setUp({ dispatch })
      await handle(FLOW_JOB)
      expect(published).to.deep.equal([])
    }
  })

  it('stores nothing, and tells nobody, for a plan that goes on', async () => {
    const { handle, published, told } = setUp({ plan: { ...ENDED, status: 'queued' } })
    await handle(JOB)
    expect([...published, ...told]).to.deep.equal([])
  })

  it('D16a: is told to the readers of events, once, also where there are no webhooks', async () => {
    for (const options of [{ failures: 1 }, { hasWebhooks: false }]) {
      const { handle, told } = setUp(options)
      expect(await handle(JOB)).to.deep.equal({ failed: 'step 1' })
      expect(told).to.deep.equal(['plan.ended'])
    }
  })
})
