import { expect } from 'chai'
import { failuresOf, troublesOf } from '../../../../services/console/pages/home/failures.ts'
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
  it('begins with the first failure behind the newest run of the model that ended well, and counts from there', () => {
    const failed = [run('a', 30), run('b', 9), run('c', 4), run('other', 4, { model: 'n' })]
    const [trouble, ...others] = troublesOf(failed, [well('x', 20), well('y', 1, { model: 'n' })], NOW)
    expect(others).to.deep.equal([])
    expect(trouble).to.include({ model: 'm', code: 'provider_unavailable', since: run('b', 9).ended_at })
    expect(ids(trouble?.runs ?? [])).to.deep.equal(['c', 'b'])
  })

  it('is over when a run has ended well, or nothing has failed for an hour, and is no matter of what else fails', () => {
    expect(troublesOf([run('a', 9)], [well('x', 8)], NOW)).to.deep.equal([])
    expect(troublesOf([run('a', 61)], [], NOW)).to.deep.equal([])
    expect(troublesOf([run('a', 9, { code: 'budget_exhausted' })], [], NOW)).to.deep.equal([])
  })
})
