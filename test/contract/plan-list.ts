import { expect } from 'chai'
import * as fc from 'fast-check'
import { AppError } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import {
  PLAN_STATUSES,
  type PlanHead,
  type PlanQuery,
  type PlanRecord,
  type Plans,
} from '../../shared/work/plans/port.ts'
import { requestCancel } from '../../shared/work/plans/transitions.ts'
import { tenantId } from '../support/tenant.ts'
import { at, by, claim, record, step } from '../work/plans/plan-setup.ts'

const TENANT = tenantId('t_1')

/** The tests of the lists of plans, which every store passes. */
export function planListContract(opened: () => Plans): void {
  it('D2.7: pages of any size and status return every plan once, newest first, without its steps', async () => {
    const tenant = tenantId('t_list')
    const stored: PlanHead[] = []
    for (let i = 0; i < 23; i++) {
      const plan = record([step('a')], { at: at(Math.floor(i / 3)) })
      await opened().create(tenant, plan)
      if (i % 3 > 0) await opened().change(tenant, plan.plan_id, i % 3 === 1 ? requestCancel(at(50)) : claim(by(7)))
      const { steps: _steps, ...head } = (await opened().get(tenant, plan.plan_id)) as PlanRecord
      stored.unshift(head)
    }
    const query = fc.record({
      status: fc.option(fc.constantFrom(...PLAN_STATUSES), { nil: undefined }),
      limit: fc.integer({ min: 1, max: 30 }),
    })
    await fc.assert(
      fc.asyncProperty(query, async (each) => {
        const wanted = stored.filter(({ status }) => (each.status ?? status) === status)
        expect(await readAll(tenant, each)).to.deep.equal(wanted)
      }),
      { numRuns: 30 },
    )
  })
  const readAll = async (tenant: TenantId, query: PlanQuery) => {
    const read: PlanHead[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await opened().list(tenant, { ...query, cursor })
      expect(page.plans.length).to.be.at.most(query.limit)
      read.push(...page.plans)
      if (page.next_cursor === null) return read
      cursor = page.next_cursor
    }
  }

  it('heads of plans are found by id, those of the tenant only, and unknown ones are left out', async () => {
    const tenant = tenantId('t_heads')
    const plans = Array.from({ length: 23 }, (_, i) => record([step('a')], { at: at(i) }))
    for (const plan of plans) await opened().create(tenant, plan)
    const ids = plans.map(({ plan_id }) => plan_id)
    const found = await opened().heads(tenant, [...ids, 'plan_none'])
    expect([...found.keys()]).to.deep.equal(ids)
    const { steps: _steps, ...head } = plans[22] as PlanRecord
    expect(found.get(head.plan_id)).to.deep.equal(head)
    expect(await opened().heads(TENANT, ids)).to.deep.equal(new Map())
  })

  it('D2.7: a cursor that no list returned is refused with 400', async () => {
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const cursor of ['', 'x', encode(['a', 'b']), encode([1]), encode([1, { $gt: '' }]), encode([1, 'nul\0'])]) {
      const failure = await opened()
        .list(TENANT, { limit: 5, cursor })
        .catch((cause: unknown) => cause)
      expect(failure).to.be.instanceOf(AppError).and.include({ kind: 'invalid_request' })
    }
  })
}
