import { expect } from 'chai'
import type { SessionPage } from '../../../../shared/cluster/commands/sessions.ts'
import { listSessions } from '../../../../shared/cluster/relay/gateway/lists.ts'
import { AppError } from '../../../../shared/kernel/errors.ts'
import { DEFAULT_TENANT } from '../../../../shared/kernel/tenant.ts'
import { sessionOf } from '../../../gateway/session-of.ts'

const silent = () => new AppError('unavailable', 'the worker does not answer', { code: 'worker_silent' })

/** Lists the sessions of workers by epoch: an answer each, or why none came. Workers of `lost` are no members any more. */
function list(workers: Record<number, SessionPage | AppError>, lost: readonly number[] = []): Promise<SessionPage> {
  const calls = {
    call: async ({ epoch }: { epoch: number }) => {
      const answer = workers[epoch]
      if (answer instanceof AppError) throw answer
      return answer as never
    },
    isWorkerLost: (epoch: number) => lost.includes(epoch),
  }
  return listSessions(calls, { tenant: DEFAULT_TENANT, page: { limit: 5 }, epochs: Object.keys(workers).map(Number) })
}

const pageOf = (...ids: string[]): SessionPage => ({ sessions: ids.map((id) => sessionOf(id)), next_cursor: null })

describe('the sessions of all workers', () => {
  it('D23.1: are incomplete while one does not answer, and complete when that one is lost', async () => {
    const workers = { 1: pageOf('a'), 2: silent(), 3: pageOf('b') }
    expect(await list(workers)).to.deep.equal({ ...pageOf('b', 'a'), incomplete: true })
    expect(await list(workers, [2])).to.deep.equal(pageOf('b', 'a'))
    expect(await list({})).to.deep.equal(pageOf())
  })

  it('cannot be listed when no worker answers, or one refuses', async () => {
    for (const [workers, status] of [
      [{ 1: silent(), 2: silent() }, 503],
      [{ 1: pageOf('a'), 2: new AppError('invalid_request', 'cursor must be one that this list returned') }, 400],
    ] as const) {
      const failure = await list(workers).catch((cause: unknown) => cause)
      expect(failure).to.have.property('status', status)
    }
  })
})
