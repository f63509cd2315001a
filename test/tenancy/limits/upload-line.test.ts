import { getEventListeners } from 'node:events'
import { expect } from 'chai'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { UploadLine, type UploadLineLimits, type UploadPlace } from '../../../shared/tenancy/limits/upload-line.ts'
import { failureOf } from '../../support/failure-of.ts'
import { settled } from '../../support/settled.ts'
import { tenantIds } from '../../support/tenant.ts'

const [A, B, C, D] = tenantIds('a', 'b', 'c', 'd')
const HERE = new AbortController().signal

/** A line for four uploads and 100 bytes, of which one tenant may hold half. */
function setUp(limits: Partial<UploadLineLimits> = {}) {
  const line = new UploadLine({
    ...{ uploads: { max: 4, maxPerTenant: 2 }, bytes: { max: 100, maxPerTenant: 50 }, waitMs: 60_000, maxWaiting: 10 },
    ...limits,
  })
  const admitted: string[] = []
  /** Enters, and notes the name once the upload is admitted. */
  const enter = async (name: string, tenant: TenantId, bytes = 1, signal = HERE): Promise<UploadPlace> => {
    const place = await line.enter({ tenant, bytes }, signal)
    admitted.push(name)
    return place
  }
  return { enter, admitted }
}

describe('the line of uploads', () => {
  it('D9.3: admits uploads while there is room, and the next one when one has left', async () => {
    const { enter, admitted } = setUp({ uploads: { max: 1, maxPerTenant: 1 } })
    const first = await enter('first', A)
    const second = enter('second', A)
    first.leave()
    first.leave()
    const third = enter('third', A)
    await second
    expect(admitted).to.deep.equal(['first', 'second'])
    ;(await second).leave()
    await third
  })

  it('D9.3: counts the bytes that an upload may put on the disk, until it says that they are fewer', async () => {
    const { enter, admitted } = setUp({ bytes: { max: 100, maxPerTenant: 100 } })
    const large = await enter('large', A, 90)
    const waiting = enter('small', A, 20)
    large.shrinkTo(95)
    await settled()
    expect(admitted).to.deep.equal(['large'])
    large.shrinkTo(80)
    await waiting
    expect(admitted).to.deep.equal(['large', 'small'])
  })

  it('counts no more bytes than were admitted, whatever an upload says', async () => {
    const { enter } = setUp({ bytes: { max: 100, maxPerTenant: 100 }, maxWaiting: 0 })
    const large = await enter('large', A, 90)
    large.shrinkTo(95)
    await enter('small', A, 10)
  })

  it('listens no more to the client of an upload that was admitted or has given up', async () => {
    const { enter } = setUp({ uploads: { max: 1, maxPerTenant: 1 } })
    const [admitted, left] = [new AbortController(), new AbortController()]
    const first = await enter('first', A)
    const [second, third] = [enter('second', A, 1, admitted.signal), failureOf(enter('third', A, 1, left.signal))]
    left.abort()
    await third
    first.leave()
    await second
    for (const { signal } of [admitted, left]) expect(getEventListeners(signal, 'abort')).to.deep.equal([])
  })

  it('lets no small upload pass a large one that waits', async () => {
    const { enter, admitted } = setUp({ bytes: { max: 100, maxPerTenant: 100 } })
    const held = await enter('held', A, 60)
    const large = enter('large', A, 60)
    const small = enter('small', A, 1)
    held.leave()
    await Promise.all([large, small])
    expect(admitted).to.deep.equal(['held', 'large', 'small'])
  })

  it('lets a tenant take all places, and still admits another one below its share at once', async () => {
    const { enter, admitted } = setUp()
    for (const name of ['a1', 'a2', 'a3', 'a4']) await enter(name, A)
    await enter('b1', B)
    await enter('b2', B)
    expect(admitted).to.have.length(6)
  })

  it('lets the uploads of a tenant that has its share wait behind those of the others', async () => {
    const { enter, admitted } = setUp({ uploads: { max: 3, maxPerTenant: 1 } })
    await enter('a1', A)
    const held = [await enter('b1', B), await enter('c1', C)]
    const more = enter('a2', A)
    const other = enter('d1', D)
    for (const place of held) place.leave()
    await Promise.all([more, other])
    expect(admitted.slice(3)).to.deep.equal(['d1', 'a2'])
  })

  it('admits an upload of a tenant below its share at once, while others wait that have theirs', async () => {
    const { enter, admitted } = setUp({ uploads: { max: 2, maxPerTenant: 1 } })
    const held = [await enter('a1', A), await enter('a2', A)]
    const waiting = enter('a3', A)
    await enter('b1', B)
    expect(admitted).to.deep.equal(['a1', 'a2', 'b1'])
    for (const place of held) place.leave()
    await waiting
  })

  it('takes no room from an upload that has left already, which has given all of it back', async () => {
    const { enter, admitted } = setUp({ bytes: { max: 100, maxPerTenant: 100 } })
    const large = await enter('large', A, 90)
    large.leave()
    large.shrinkTo(10)
    const held = await enter('held', A, 60)
    const waiting = enter('small', A, 50)
    await settled()
    expect(admitted).to.deep.equal(['large', 'held'])
    held.leave()
    await waiting
  })

  it('refuses with 503 when too many wait, and with 429 a tenant that has its share', async () => {
    const { enter } = setUp({ uploads: { max: 1, maxPerTenant: 1 }, maxWaiting: 0 })
    await enter('a1', A)
    expect(await failureOf(enter('b1', B))).to.include({ kind: 'unavailable', retryAfterSecs: 10 })
    const shared = setUp({ uploads: { max: 2, maxPerTenant: 1 }, maxWaiting: 0 })
    await Promise.all([shared.enter('a1', A), shared.enter('a2', A)])
    expect(await failureOf(shared.enter('a3', A))).to.include({ kind: 'rate_limit', retryAfterSecs: 10 })
  })

  it('refuses an upload whose turn does not come in time, and admits the smaller one behind it', async () => {
    const { enter, admitted } = setUp({ bytes: { max: 100, maxPerTenant: 100 }, waitMs: 5 })
    await enter('held', A, 60)
    const large = enter('large', A, 60)
    const small = enter('small', A, 10)
    expect(await failureOf(large)).to.include({ kind: 'unavailable' })
    await small.catch(() => {})
    expect(admitted).to.deep.equal(['held', 'small'])
  })

  it('forgets an upload whose client leaves, before it waits and while it waits', async () => {
    const { enter, admitted } = setUp({ bytes: { max: 100, maxPerTenant: 100 } })
    const held = await enter('held', A, 60)
    const [gone, leaving] = [AbortSignal.abort(), new AbortController()]
    expect(await failureOf(enter('gone', A, 1, gone))).to.include({ kind: 'invalid_request' })
    const large = enter('large', A, 60, leaving.signal)
    const small = enter('small', A, 10)
    leaving.abort()
    expect(await failureOf(large)).to.include({ kind: 'invalid_request' })
    await small
    held.leave()
    expect(admitted).to.deep.equal(['held', 'small'])
  })
})
