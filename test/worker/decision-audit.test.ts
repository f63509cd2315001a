import { expect } from 'chai'
import { createDecisionAudit } from '../../services/worker/decision-audit.ts'
import type { DecidedPermission } from '../../shared/cluster/permissions/decided.ts'
import type { PendingPermission } from '../../shared/cluster/permissions/store.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import { SILENT_LOG } from '../support/silent-log.ts'
import { tenantId } from '../support/tenant.ts'

const AT = '2026-11-22T09:30:00.000Z'
const REQUEST: PendingPermission = {
  ...{ id: 'perm_1', tenant: tenantId('t_1'), scopeId: 's-1', runId: 'run_1' },
  details: {
    ...{ tool_name: 'Write', tool_use_id: 'call_1', input: { path: 'a' }, message: 'Write wants a' },
    ...{ created_at: AT, expires_at: AT },
  },
}
const ALLOWED = { allow: true, how: 'reply', reason: 'fine', by: 'ada' } as const

describe('the audit of permission decisions (D24.3)', () => {
  /** `refusals`: how often the store does not answer before it does. */
  async function record(storePayloads: boolean, decision: object = {}, refusals = 0) {
    const added: [DecidedPermission, number][] = []
    let left = refusals
    const audit = createDecisionAudit({
      decided: {
        async add(_tenant, decided, days) {
          if (left-- > 0) throw new AppError('unavailable', 'the store is away')
          added.push([decided, days])
        },
      },
      auditOf: async () => ({ store_payloads: storePayloads, retention_days: 7 }),
      log: SILENT_LOG,
    })
    audit.record(REQUEST, { ...ALLOWED, ...decision })
    await audit.settled()
    return added
  }

  it('keeps the input that ran, the message and the reason for as long as the tenant wants', async () => {
    const [[decided, days] = expect.fail()] = await record(true, { input: { path: 'b' } })
    expect(days).to.equal(7)
    expect(decided).to.deep.include({
      by: 'ada',
      edited: true,
      input: { path: 'b' },
      message: 'Write wants a',
      reason: 'fine',
    })
  })

  it('keeps none of them while store_payloads is off, and no input that is very long', async () => {
    const [[decided] = expect.fail()] = await record(false)
    expect(decided).to.include({ by: 'ada', allow: true }).and.not.have.any.keys('input', 'message', 'reason')
    const [[long] = expect.fail()] = await record(true, { input: { content: 'x'.repeat(70_000) } })
    expect(long).to.include({ edited: true, reason: 'fine' }).and.not.have.any.keys('input')
  })

  it('waits for a store that does not answer', async () => {
    expect(await record(true, {}, 1)).to.have.length(1)
  })
})
