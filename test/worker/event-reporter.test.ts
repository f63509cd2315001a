import { expect } from 'chai'
import { createEventReporter } from '../../services/worker/event-reporter.ts'
import type { PendingPermission } from '../../shared/cluster/permissions/store.ts'
import { errorEvent, type RunEvent } from '../../shared/kernel/events.ts'
import { DEFAULT_TENANT } from '../../shared/kernel/tenant.ts'
import type { TenantEvent } from '../../shared/tenancy/events/port.ts'
import type { WebhookEvent } from '../../shared/tenancy/webhooks/port.ts'
import type { Run } from '../../shared/work/runs/run.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { DONE } from './events.ts'

const [STARTED, ENDED] = ['2026-11-22T09:30:00.000Z', '2026-11-22T09:30:01.000Z']
const FACTS = {
  ...{ id: 'run_1', tenant: DEFAULT_TENANT, sessionId: undefined, kind: 'run', status: 'failed' },
  ...{ startedAt: new Date(STARTED), endedAt: new Date(ENDED) },
}
const RUN = FACTS as Run
const REQUEST: PendingPermission = {
  ...{ id: 'perm_1', tenant: DEFAULT_TENANT, scopeId: 's-1', runId: 'run_1' },
  details: {
    ...{ tool_name: 'Write', tool_use_id: 'call_1', input: { path: 'secret' }, message: 'Write wants a' },
    ...{ created_at: STARTED, expires_at: ENDED },
  },
}

describe('what a worker reports of its runs', () => {
  function setUp({ wanted = ['run.ended', 'permission.requested'], hasWebhooks = true } = {}) {
    const told: TenantEvent[] = []
    const published: WebhookEvent[] = []
    const recorded: string[] = []
    const reporter = createEventReporter({
      events: { append: (_tenant, event) => void told.push(event) },
      outbox: hasWebhooks
        ? {
            mayWant: (_tenant, type) => wanted.includes(type),
            publish: async (_tenant, event) => void published.push(event),
          }
        : undefined,
      audit: { record: ({ id }, { how }) => void recorded.push(`${id} ${how}`), settled: async () => {} },
      log: SILENT_LOG,
    })
    return { reporter, told, published, recorded }
  }
  const endWith = async (last: RunEvent, options = {}, run = RUN) => {
    const { reporter, ...seen } = setUp(options)
    reporter.runEnded(run, last)
    await reporter.settled()
    return seen
  }

  it('D10, D16a: the end of a run reaches readers and webhooks, with the code of a failure', async () => {
    const { told, published } = await endWith(errorEvent('provider_auth', 'no'))
    const data = { run_id: 'run_1', session_id: null, status: 'failed', code: 'provider_auth' }
    expect(published).to.deep.equal([
      ...[{ type: 'run.ended', subject: 'run_1', at: ENDED }].map((event) => ({
        ...event,
        data: { ...data, started_at: STARTED, ended_at: ENDED },
      })),
    ])
    expect(told.map(({ type, at }) => [type, at])).to.deep.equal([['run.ended', ENDED]])
    expect(told[0]?.data).to.include({ code: 'provider_auth' })
    expect((await endWith(DONE)).published[0]?.data).not.to.have.property('code')
  })

  it('D42.5: readers and webhooks get the metadata of a run that has some', async () => {
    const metadata = { team: 'red' }
    const { told, published } = await endWith(DONE, {}, { ...FACTS, metadata } as unknown as Run)
    for (const data of [told[0]?.data, published[0]?.data]) expect(data).to.deep.include({ metadata })
    expect((await endWith(DONE)).told[0]?.data).not.to.have.property('metadata')
  })

  it('D10: nothing is stored for a tenant whose webhooks do not want it, and readers are told all the same', async () => {
    for (const options of [{ wanted: [] }, { hasWebhooks: false }]) {
      const { told, published } = await endWith(DONE, options)
      expect([told.length, published]).to.deep.equal([1, []])
    }
  })

  it('D10, D16a: a request for permission is told by its ids, without the input of the tool', async () => {
    const { reporter, told, published } = setUp()
    reporter.permissionRequested(REQUEST)
    await reporter.settled()
    expect(published).to.deep.include({
      ...{ type: 'permission.requested', subject: 'perm_1', at: STARTED, data: published[0]?.data },
    })
    expect(published[0]?.data).to.deep.equal({
      ...{ request_id: 'perm_1', session_id: 's-1', run_id: 'run_1', tool_name: 'Write', tool_use_id: 'call_1' },
      expires_at: ENDED,
    })
    expect(told.map(({ data }) => data)).to.deep.equal([published[0]?.data])
  })

  it('D16a, D24.3: a decision is told with whoever made it and whether the input was changed, and is recorded', () => {
    const { reporter, told, published, recorded } = setUp()
    const decision = { allow: true, how: 'reply', reason: '', by: 'ada' } as const
    reporter.permissionResolved(REQUEST, { ...decision, input: { path: 'b' } })
    reporter.permissionResolved(REQUEST, { allow: false, how: 'timeout', reason: '' })
    expect(told.map(({ data }) => data)).to.deep.equal([
      ...[
        { allow: true, how: 'reply', by: 'ada', edited: true },
        { allow: false, how: 'timeout', edited: false },
      ].map((rest) => ({ request_id: 'perm_1', session_id: 's-1', run_id: 'run_1', tool_name: 'Write', ...rest })),
    ])
    expect(recorded).to.deep.equal(['perm_1 reply', 'perm_1 timeout'])
    expect(published).to.deep.equal([])
  })
})
