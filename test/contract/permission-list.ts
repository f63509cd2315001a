import { expect } from 'chai'
import { reply } from '../../shared/cluster/permissions/reply.ts'
import type { PendingPermission, PermissionStore } from '../../shared/cluster/permissions/store.ts'
import { encodeCursor, type PageRequest } from '../../shared/kernel/cursor.ts'
import { AppError } from '../../shared/kernel/errors.ts'
import type { JsonObject } from '../../shared/kernel/events.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/kernel/tenant.ts'
import { tenantId } from '../support/tenant.ts'
import { newRequest } from './pending-permission.ts'

const ALL: PageRequest = { limit: 200 }
const OTHER = tenantId('other')

/** The tests of the list (D4.12) that every `PermissionStore` passes; `open` returns one. */
export function permissionListContract(open: () => Promise<PermissionStore>): void {
  let store: PermissionStore
  beforeEach(async () => {
    store = await open()
  })

  async function opened(...args: Parameters<typeof newRequest>) {
    const request = newRequest(...args)
    await store.open(request)
    return request
  }
  const idsOf = async (page = ALL, tenant = DEFAULT_TENANT) =>
    (await store.list(tenant, page)).permissions.map(({ id }) => id)

  it('D4.12: lists the pending requests, oldest first, each with its unchanged input', async () => {
    expect(await store.list(DEFAULT_TENANT, ALL)).to.deep.equal({ permissions: [], next_cursor: null })
    const input: JsonObject = {
      none: [],
      empty: {},
      big: 9007199254740991,
      small: 1e-7,
      text: 'é 😀 \n\u0000"',
      deep: [[{}]],
    }
    const requests = [await opened({}, { input }), await opened(), await opened()]
    expect(await store.list(DEFAULT_TENANT, ALL)).to.deep.equal({
      permissions: requests.map(({ id, scopeId, runId, details }) => ({
        id,
        session_id: scopeId,
        run_id: runId,
        ...details,
      })),
      next_cursor: null,
    })
  })

  it('D4.12: decided and forgotten requests are not listed', async () => {
    const kept = await opened()
    await reply(store, await opened(), { allow: true })
    await reply(store, await opened(), { allow: false })
    await store.decide(await opened(), { state: 'expired' })
    await store.decide(await opened(), { state: 'withdrawn' })
    const [one, other] = [await opened({ scopeId: 's1' }), await opened({ scopeId: 's1' })]
    await store.forget(DEFAULT_TENANT, 's1', one.runId)
    expect(await idsOf()).to.deep.equal([kept.id, other.id])
    await store.forget(DEFAULT_TENANT, 's1')
    expect(await idsOf()).to.deep.equal([kept.id])
  })

  it('D4.12: an expired request is not listed, even if its worker died before it could decide it', async () => {
    await opened({}, { waitsMs: 0 })
    const kept = await opened()
    expect(await idsOf()).to.deep.equal([kept.id])
  })

  it('api.md Authentication 8: a tenant sees only its own requests', async () => {
    const other = tenantId('other')
    const [mine, theirs] = [await opened(), await opened({ tenant: other })]
    expect(await idsOf()).to.deep.equal([mine.id])
    expect(await idsOf(ALL, other)).to.deep.equal([theirs.id])
  })

  it('D2.7: page by page each request is listed once and in order, even when others are decided meanwhile', async () => {
    const requests = []
    for (let i = 0; i < 8; i++) requests.push(await opened())
    const [, , third, fourth] = requests
    const first = await store.list(DEFAULT_TENANT, { limit: 3 })
    for (const request of [third, fourth]) if (request) await reply(store, request, { allow: true })
    const second = await store.list(DEFAULT_TENANT, { limit: 2, cursor: first.next_cursor ?? '' })
    const late = await opened()
    const rest = await store.list(DEFAULT_TENANT, { limit: 3, cursor: second.next_cursor ?? '' })
    expect(rest.next_cursor).to.equal(null)
    const seen = [first, second, rest].flatMap(({ permissions }) => permissions.map(({ id }) => id))
    expect(seen).to.deep.equal([...requests, late].filter((request) => request !== fourth).map(({ id }) => id))
  })

  it('D24.3: a page that has not all says how many are pending, and one is found by its id alone, by its tenant', async () => {
    const requests: PendingPermission[] = []
    for (let i = 0; i < 5; i++) requests.push(await opened())
    await opened({ tenant: OTHER })
    const [first] = requests
    if (!first) throw new Error('none')
    const page = await store.list(DEFAULT_TENANT, { limit: 2 })
    expect(page.total).to.equal(5)
    await reply(store, first, { allow: true })
    const rest = await store.list(DEFAULT_TENANT, { limit: 2, cursor: page.next_cursor ?? '' })
    expect(rest.total).to.equal(4)
    const find = (tenant: TenantId, { id } = requests[1] ?? first) => store.find({ tenant, id, scopeId: undefined })
    expect((await find(DEFAULT_TENANT))?.id).to.equal(requests[1]?.id)
    expect(await find(OTHER)).to.equal(undefined)
    expect(await find(DEFAULT_TENANT, first)).to.equal(undefined)
  })

  it('D2.7: a full last page has no next cursor', async () => {
    for (let i = 0; i < 3; i++) await opened()
    const { permissions, next_cursor } = await store.list(DEFAULT_TENANT, { limit: 3 })
    expect(permissions).to.have.length(3)
    expect(next_cursor).to.equal(null)
  })

  it('D2.7: a cursor that the list has not returned is 400', async () => {
    for (const cursor of [
      'x',
      '-inf',
      Buffer.from('1').toString('base64url'),
      encodeCursor([]),
      encodeCursor(['1']),
      encodeCursor([-1]),
      encodeCursor([0]),
      encodeCursor([1.5]),
      encodeCursor([2 ** 53]),
      encodeCursor([1, 2]),
    ]) {
      const refusal = await store.list(DEFAULT_TENANT, { limit: 1, cursor }).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refusal, cursor).to.be.instanceOf(AppError).that.includes({ status: 400, param: '/cursor' })
    }
  })

  it('requests of dead workers’ runs are left out, and the page is filled with others', async () => {
    const requests = []
    for (let i = 0; i < 130; i++) requests.push(await opened({ runId: i % 65 === 64 ? 'run_live' : 'run_dead' }))
    const live = requests.filter(({ runId }) => runId === 'run_live').map(({ id }) => id)
    const isLive = async (runId: string) => runId === 'run_live'
    const { permissions, next_cursor } = await store.list(DEFAULT_TENANT, { limit: 2 }, isLive)
    expect(permissions.map(({ id }) => id)).to.deep.equal(live)
    expect(next_cursor).to.equal(null)
  })

  it('a page of large inputs ends before its limit, and the next page continues after it', async () => {
    const input = { content: 'x'.repeat(2_500_000) }
    const requests = [await opened({}, { input }), await opened({}, { input }), await opened()]
    const first = await store.list(DEFAULT_TENANT, ALL)
    expect(first.permissions).to.have.length(1)
    const second = await store.list(DEFAULT_TENANT, { ...ALL, cursor: first.next_cursor ?? '' })
    expect(second.next_cursor).to.equal(null)
    expect([first, second].flatMap(({ permissions }) => permissions.map(({ id }) => id))).to.deep.equal(
      requests.map(({ id }) => id),
    )
  })

  it('a request that is larger than a page is a page of its own', async () => {
    const { id } = await opened({}, { input: { content: 'x'.repeat(5_000_000) } })
    const other = await opened()
    const first = await store.list(DEFAULT_TENANT, ALL)
    expect(first.permissions.map((permission) => permission.id)).to.deep.equal([id])
    expect(await idsOf({ ...ALL, cursor: first.next_cursor ?? '' })).to.deep.equal([other.id])
  })
}
