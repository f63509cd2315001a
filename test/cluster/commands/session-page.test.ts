import { expect } from 'chai'
import { Sessions } from '../../../services/worker/sessions/sessions.ts'
import { mergeSessions } from '../../../shared/cluster/commands/pages.ts'
import type { SessionPage } from '../../../shared/cluster/commands/sessions.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { tenantId } from '../../support/tenant.ts'
import { limitsOf } from '../../worker/sessions/session-setup.ts'

const OTHER = tenantId('other')
const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 9, 30, second)).toISOString()

describe('the list of sessions', () => {
  const workers: Sessions[] = []
  afterEach(() => {
    for (const worker of workers.splice(0)) for (const session of [...worker.all()]) worker.release(session)
  })

  /** A worker with sessions that were created in these seconds. */
  function workerWith(seconds: readonly number[], tenant = DEFAULT_TENANT): Sessions {
    const sessions = new Sessions(limitsOf({ maxSessions: 100 }), async () => true)
    workers.push(sessions)
    for (const second of seconds)
      sessions.adopt({ id: `s${second}`, tenant, token: 't', createdAt: at(second), messages: [] })
    return sessions
  }

  function readAll(
    pages: (request: { limit: number; cursor?: string }) => ReturnType<Sessions['page']>,
    limit: number,
  ) {
    const read: string[][] = []
    let cursor: string | null = null
    do {
      const page = pages({ limit, ...(cursor !== null && { cursor }) })
      read.push(page.sessions.map(({ session_id }) => session_id))
      cursor = page.next_cursor
    } while (cursor !== null)
    return read
  }

  it('D23.1: has those created last first, page by page', () => {
    const sessions = workerWith([2, 1, 3, 5, 4])
    const pages = readAll((request) => sessions.page(DEFAULT_TENANT, request), 2)
    expect(pages).to.deep.equal([['s5', 's4'], ['s3', 's2'], ['s1']])
    expect(readAll((request) => sessions.page(DEFAULT_TENANT, request), 5)).to.deep.equal([
      ['s5', 's4', 's3', 's2', 's1'],
    ])
  })

  it('has no session of another tenant', () => {
    expect(workerWith([1, 2], OTHER).page(DEFAULT_TENANT, { limit: 5 })).to.deep.equal({
      sessions: [],
      next_cursor: null,
    })
  })

  it('D23.1: of several workers has each session once, also one that is being handed over', () => {
    const all = [workerWith([1, 4, 5]), workerWith([2, 3, 4]), workerWith([])]
    const merged = (request: { limit: number; cursor?: string }) =>
      mergeSessions(
        all.map((each) => each.page(DEFAULT_TENANT, request)),
        request.limit,
      )
    for (const limit of [1, 2, 3, 5, 10])
      expect(readAll(merged, limit).flat(), String(limit)).to.deep.equal(['s5', 's4', 's3', 's2', 's1'])
    expect(merged({ limit: 5 })).not.to.have.property('incomplete')
  })

  it('D23.1: is incomplete when one of its parts is', () => {
    const missing: SessionPage = { sessions: [], next_cursor: null, incomplete: true }
    const part = workerWith([1]).page(DEFAULT_TENANT, { limit: 5 })
    expect(mergeSessions([part, missing], 5)).to.deep.equal({ ...part, incomplete: true })
  })

  it('a cursor of another list is 400', () => {
    const sessions = workerWith([1])
    for (const cursor of ['x', Buffer.from('["2026-11-22T09:30:00.000Z","a b"]').toString('base64url')])
      expect(() => sessions.page(DEFAULT_TENANT, { limit: 1, cursor })).to.throw('cursor must be one')
  })
})
