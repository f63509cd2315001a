import { expect } from 'chai'
import { reply } from '../../shared/broker/permissions/reply.ts'
import type { PageRequest, PermissionStore } from '../../shared/broker/port.ts'
import { AppError } from '../../shared/errors.ts'
import type { JsonObject } from '../../shared/events.ts'
import { DEFAULT_TENANT, type TenantId } from '../../shared/tenant.ts'
import { newRequest } from './pending-permission.ts'

const ALL: PageRequest = { limit: 200 }

/** What every permission book promises of its list (D4.12); `open` gives a fresh one. */
export function permissionListContract(open: () => Promise<PermissionStore>): void {
  let book: PermissionStore
  beforeEach(async () => {
    book = await open()
  })

  async function opened(...args: Parameters<typeof newRequest>) {
    const request = newRequest(...args)
    await book.open(request)
    return request
  }
  const idsOf = async (page = ALL, tenant = DEFAULT_TENANT) =>
    (await book.list(tenant, page)).permissions.map(({ id }) => id)

  it('D4.12: lists what is pending, oldest first, each with all that was asked, as it was asked', async () => {
    expect(await book.list(DEFAULT_TENANT, ALL)).to.deep.equal({ permissions: [], next_cursor: null })
    const input: JsonObject = {
      none: [],
      empty: {},
      big: 9007199254740991,
      small: 1e-7,
      text: 'é 😀 \n\u0000"',
      deep: [[{}]],
    }
    const requests = [await opened({}, { input }), await opened(), await opened()]
    expect(await book.list(DEFAULT_TENANT, ALL)).to.deep.equal({
      permissions: requests.map(({ id, scopeId, runId, details }) => ({
        id,
        session_id: scopeId,
        run_id: runId,
        ...details,
      })),
      next_cursor: null,
    })
  })

  it('D4.12: what is decided, or forgotten, is pending no more', async () => {
    const kept = await opened()
    await reply(book, await opened(), { allow: true })
    await reply(book, await opened(), { allow: false })
    await book.decide(await opened(), { state: 'expired' })
    await book.decide(await opened(), { state: 'withdrawn' })
    const [one, other] = [await opened({ scopeId: 's1' }), await opened({ scopeId: 's1' })]
    await book.forget(DEFAULT_TENANT, 's1', one.runId)
    expect(await idsOf()).to.deep.equal([kept.id, other.id])
    await book.forget(DEFAULT_TENANT, 's1')
    expect(await idsOf()).to.deep.equal([kept.id])
  })

  it('api.md Authentication 8: a tenant sees its own and no others', async () => {
    const other = 'other' as TenantId
    const [mine, theirs] = [await opened(), await opened({ tenant: other })]
    expect(await idsOf()).to.deep.equal([mine.id])
    expect(await idsOf(ALL, other)).to.deep.equal([theirs.id])
  })

  it('D2.7: page by page each is listed once and in order, also when some are decided meanwhile', async () => {
    const requests = []
    for (let i = 0; i < 8; i++) requests.push(await opened())
    const [, , third, fourth] = requests
    const first = await book.list(DEFAULT_TENANT, { limit: 3 })
    for (const request of [third, fourth]) if (request) await reply(book, request, { allow: true })
    const second = await book.list(DEFAULT_TENANT, { limit: 2, cursor: first.next_cursor ?? '' })
    const late = await opened()
    const rest = await book.list(DEFAULT_TENANT, { limit: 3, cursor: second.next_cursor ?? '' })
    expect(rest.next_cursor).to.equal(null)
    const seen = [first, second, rest].flatMap(({ permissions }) => permissions.map(({ id }) => id))
    expect(seen).to.deep.equal([...requests, late].filter((request) => request !== fourth).map(({ id }) => id))
  })

  it('D2.7: a last page that is full has no next one', async () => {
    for (let i = 0; i < 3; i++) await opened()
    const { permissions, next_cursor } = await book.list(DEFAULT_TENANT, { limit: 3 })
    expect(permissions).to.have.length(3)
    expect(next_cursor).to.equal(null)
  })

  it('a cursor that no list has given is 400', async () => {
    for (const cursor of [
      'x',
      '-inf',
      Buffer.from('p-1').toString('base64url'),
      Buffer.from('p1 2').toString('base64url'),
    ]) {
      const refusal = await book.list(DEFAULT_TENANT, { limit: 1, cursor }).then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(refusal).to.be.instanceOf(AppError).that.includes({ status: 400, param: '/cursor' })
    }
  })

  it('what the runs of dead workers asked for is left out, and does not make pages shorter', async () => {
    const requests = []
    for (let i = 0; i < 130; i++) requests.push(await opened({ runId: i % 65 === 64 ? 'run_live' : 'run_dead' }))
    const live = requests.filter(({ runId }) => runId === 'run_live').map(({ id }) => id)
    const isLive = (runId: string) => runId === 'run_live'
    const { permissions, next_cursor } = await book.list(DEFAULT_TENANT, { limit: 2 }, isLive)
    expect(permissions.map(({ id }) => id)).to.deep.equal(live)
    expect(next_cursor).to.equal(null)
  })

  it('design §7.8: a page of large inputs ends early, and the next one goes on', async () => {
    const input = { content: 'x'.repeat(2_500_000) }
    const requests = [await opened({}, { input }), await opened({}, { input }), await opened()]
    const first = await book.list(DEFAULT_TENANT, ALL)
    expect(first.permissions).to.have.length(1)
    const second = await book.list(DEFAULT_TENANT, { ...ALL, cursor: first.next_cursor ?? '' })
    expect(second.next_cursor).to.equal(null)
    expect([first, second].flatMap(({ permissions }) => permissions.map(({ id }) => id))).to.deep.equal(
      requests.map(({ id }) => id),
    )
  })
}
