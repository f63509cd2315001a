import { expect } from 'chai'
import * as fc from 'fast-check'
import { AppError } from '../../shared/kernel/errors.ts'
import type { TenantId } from '../../shared/kernel/tenant.ts'
import type { Dispatch, DispatchQuery, DispatchStore } from '../../shared/work/flows/port.ts'
import { tenantId } from '../support/tenant.ts'
import { FAILED, INPUT, newDispatch, OK, OUTPUT } from './dispatch-setup.ts'

const OTHER = tenantId('t_2')
const FLOWS = ['summarize', 'classify'] as const
const STATUSES = ['queued', 'running', 'ok', 'error', 'rejected'] as const

/** The tests of the lists of executions, which every store passes. */
export function dispatchListContract(parts: () => { dispatches: DispatchStore; now: () => number }): void {
  let tenants = 0
  const newTenant = () => tenantId(`t_list_${++tenants}`)

  /** Executions of all flows and statuses, several of them started in the same millisecond. */
  const fill = async (tenant: TenantId, count: number) => {
    const { dispatches, now } = parts()
    const stored: Dispatch[] = []
    for (let i = 0; i < count; i++) {
      const name = FLOWS[i % 2 ? 0 : 1]
      const status = STATUSES[i % STATUSES.length]
      const flow = { name, uid: 'flow_1', version: 1 }
      const kind = i % 7 === 6 ? ('evaluation' as const) : ('run' as const)
      const dispatch = newDispatch(now() + 10 * Math.floor(i / 3), {
        flow,
        kind,
        ...(status === 'rejected' && { status }),
      })
      await dispatches.create(tenant, dispatch, INPUT)
      if (status !== 'rejected' && status !== 'queued') await dispatches.begin(tenant, dispatch.trace_id, 7)
      const result = status === 'error' ? FAILED : OK
      if (status === 'ok' || status === 'error')
        await dispatches.end(tenant, dispatch.trace_id, { executor: 7, result, output: OUTPUT })
      const found = await dispatches.get(tenant, dispatch.trace_id)
      if (found) stored.push(found)
    }
    return stored.sort((a, b) => compare(b, a))
  }

  const readAll = async (tenant: TenantId, query: DispatchQuery) => {
    const { dispatches } = parts()
    const read: Dispatch[] = []
    for (let cursor: string | undefined; ; ) {
      const page = await dispatches.list(tenant, { ...query, cursor })
      read.push(...page.dispatches)
      expect(page.dispatches.length).to.be.at.most(query.limit)
      if (page.next_cursor === null) return read
      expect(page.dispatches).to.have.length(query.limit)
      cursor = page.next_cursor
    }
  }

  it('D6.8: pages of any size, filter and time return every matching record once, newest first', async () => {
    const tenant = newTenant()
    const stored = await fill(tenant, 35)
    const first = parts().now()
    const time = fc.option(fc.integer({ min: first - 5, max: first + 125 }), { nil: undefined })
    const query = fc.record({
      kind: fc.constantFrom('run' as const, 'evaluation' as const),
      flow: fc.option(fc.constantFrom(...FLOWS, 'unknown'), { nil: undefined }),
      status: fc.option(fc.constantFrom(...STATUSES, 'invalid_output' as const), { nil: undefined }),
      sinceMs: time,
      untilMs: time,
      limit: fc.integer({ min: 1, max: 40 }),
    })
    const rule = fc.asyncProperty(query, async (each) => {
      expect(await readAll(tenant, each)).to.deep.equal(stored.filter((dispatch) => isWanted(dispatch, each)))
    })
    await fc.assert(rule, { numRuns: 60 })
    expect(
      (await parts().dispatches.list(OTHER, { kind: 'run', limit: 50, untilMs: first + 125 })).dispatches,
    ).to.not.deep.include(stored[0])
  })

  it('D2.7: a cursor that no list returned is refused with 400', async () => {
    const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const cursor of ['', 'x', encode(['a', 'b']), encode([1]), encode([1, { $gt: '' }]), encode([1, 'nul\0'])]) {
      const list = parts().dispatches.list(newTenant(), { kind: 'run', limit: 5, cursor })
      expect(await list.catch((cause: unknown) => cause))
        .to.be.instanceOf(AppError)
        .and.include({ kind: 'invalid_request' })
    }
  })

  it('a cursor of a list without an end is no way around `untilMs`', async () => {
    const { dispatches, now } = parts()
    const tenant = newTenant()
    await fill(tenant, 12)
    const { next_cursor } = await dispatches.list(tenant, { kind: 'run', limit: 1 })
    const query = { kind: 'run' as const, limit: 50, untilMs: now() + 10 }
    const page = await dispatches.list(tenant, { ...query, cursor: next_cursor ?? '' })
    expect(page).to.deep.equal(await dispatches.list(tenant, query))
    expect(page.dispatches).to.have.length(3)
  })

  it('records that started before a time are deleted with their payloads, in steps of a given size', async () => {
    const { dispatches, now } = parts()
    const tenant = newTenant()
    const stored = await fill(tenant, 30)
    const before = now() + 50
    const deadline = newDispatch(now(), { deadline_at: new Date(now() + 100).toISOString() })
    await dispatches.create(tenant, deadline, INPUT)
    const old = stored.filter(({ started_at }) => Date.parse(started_at) < before)
    expect(old).to.have.length(15)
    const removed: number[] = []
    while (removed.at(-1) !== 0) removed.push(await dispatches.removeStartedBefore(tenant, before, 4))
    expect(removed).to.deep.equal([4, 4, 4, 3, 0])
    for (const dispatch of stored) {
      const isKept = !old.includes(dispatch)
      expect(await dispatches.get(tenant, dispatch.trace_id)).to.deep.equal(isKept ? dispatch : undefined)
      expect(await dispatches.input(tenant, dispatch.trace_id)).to.deep.equal(isKept ? INPUT : undefined)
      const hasOutput = isKept && dispatch.output_id !== undefined
      expect(await dispatches.output(tenant, dispatch)).to.deep.equal(hasOutput ? OUTPUT : undefined)
    }
    expect(await dispatches.input(tenant, deadline.trace_id), 'D54.8').to.deep.equal(INPUT)
  })
}

const compare = (a: Dispatch, b: Dispatch): number =>
  Date.parse(a.started_at) - Date.parse(b.started_at) || (a.trace_id < b.trace_id ? -1 : 1)

function isWanted(dispatch: Dispatch, { kind, flow, status, sinceMs = -Infinity, untilMs = Infinity }: DispatchQuery) {
  const startedMs = Date.parse(dispatch.started_at)
  if (dispatch.kind !== kind || startedMs < sinceMs || startedMs >= untilMs) return false
  return (flow ?? dispatch.flow.name) === dispatch.flow.name && (status ?? dispatch.status) === dispatch.status
}
