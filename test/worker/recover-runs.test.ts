import { expect } from 'chai'
import { recoverRuns } from '../../services/worker/recover-runs.ts'
import { AppError, notFound } from '../../shared/kernel/errors.ts'
import { DEFAULT_TENANT as tenant } from '../../shared/kernel/tenant.ts'
import { SILENT_LOG } from '../support/silent-log.ts'

describe('the runs of an earlier process', () => {
  it('D32.8: a session that could not be opened keeps its mark for the next start, and one that is gone loses it', async () => {
    let left = ['opened', 'gone', 'refused'].map((session_id) => ({
      id: `of ${session_id}`,
      owner: '1',
      tenant,
      session_id,
    }))
    const busy = {
      add: async () => {},
      nextOwner: async (after: string | undefined) => (after === undefined ? '1' : undefined),
      of: async () => left,
      delete: async (ids: readonly string[]) => void (left = left.filter(({ id }) => !ids.includes(id))),
    }
    const getSession = async (_tenant: string, id: string) => {
      if (id === 'gone') throw notFound('gone')
      if (id === 'refused') throw new AppError('unavailable', 'the store is away')
      return {} as never
    }
    await recoverRuns(busy, { inbox: { getSession }, owner: '2', log: SILENT_LOG })
    expect(left.map(({ session_id }) => session_id)).to.deep.equal(['refused'])
  })
})
