import { expect } from 'chai'
import { failuresOf, lasting, troublesOf } from '../../../../services/console/pages/home/failures.ts'
import type { Schema } from '../../../../shared/client/api.ts'

type Run = Schema<'Run'>

const NOW = Date.parse('2026-11-30T12:00:00.000Z')

/** A run that has ended so many minutes ago. */
function run(id: string, minutes: number, more: Partial<Run> = {}): Run {
  const at = new Date(NOW - minutes * 60_000).toISOString()
  const failed = { status: 'failed', code: 'provider_unavailable' } as const
  return { run_id: id, started_at: at, ended_at: at, event_count: 1, kind: 'run', model: 'm', ...failed, ...more }
}
const well = (id: string, minutes: number, more: Partial<Run> = {}) =>
  run(id, minutes, { status: 'done', code: 'ok', ...more })

const ids = (runs: readonly Run[]) => runs.map(({ run_id }) => run_id)

describe('what has failed today', () => {
  it('is told once for each cause, that of the newest failure first', () => {
    const failed = [run('a', 9), run('b', 2, { code: 'timeout' }), run('c', 1), run('d', 5)]
    const told = failuresOf(failed, []).map(({ code, runs }) => [code, ...ids(runs)])
    expect(told).to.deep.equal([
      ['provider_unavailable', 'c', 'd', 'a'],
      ['timeout', 'b'],
    ])
  })

  it('is not told of plans and their steps, which have an entry of their own, and of messages whose conversation went on', () => {
    const failed = [
      run('plan', 1, { kind: 'plan' }),
      run('step', 1, { kind: 'step' }),
      run('mended', 5, { kind: 'message', session_id: 's' }),
      run('open', 5, { kind: 'message', session_id: 't' }),
    ]
    const done = [well('later', 2, { session_id: 's' }), well('earlier', 8, { session_id: 't' })]
    expect(failuresOf(failed, done).flatMap(({ runs }) => ids(runs))).to.deep.equal(['open'])
  })
})

describe('trouble with a provider', () => {
  it('begins with the first failure of its model behind the newest run that ended well, and counts from there', () => {
    const failed = [run('a', 30), run('b', 9), run('c', 4), run('other', 70, { model: 'n' })]
    const [trouble, ...others] = troublesOf(failed, NOW)
    expect(others).to.deep.equal([])
    const lasts = trouble && lasting(trouble, well('x', 20))
    expect(lasts).to.deep.equal({ code: 'provider_unavailable', since: run('b', 9).ended_at, count: 2 })
    expect(trouble && lasting(trouble, undefined)).to.include({ count: 3 })
    expect(trouble && lasting(trouble, well('x', 3))).to.equal(undefined)
  })

  it('is no news after an hour, and no matter of what else fails', () => {
    expect(troublesOf([run('a', 61), run('b', 9, { code: 'budget_exhausted' })], NOW)).to.deep.equal([])
  })
})
