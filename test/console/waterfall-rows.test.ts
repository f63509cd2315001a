import { expect } from 'chai'
import { rowsOf, ticksOf } from '../../services/console/pages/activity/waterfall-rows.ts'

describe('the waterfall of a run', () => {
  const phase = (
    kind: 'model' | 'tool' | 'permission' | 'subagent' | 'retry',
    turn: number,
    from: number,
    to: number | null,
  ) => ({
    ...{ kind, name: kind, turn, started_ms: from, ended_ms: to },
  })

  it('has a line for each turn, for what was done in it, and for what a sub-agent did below that sub-agent', () => {
    const own = { subagent_id: 'sub_1' }
    const phases = [
      phase('model', 1, 100, 200),
      { ...phase('tool', 1, 200, 500), failed: true as const },
      { ...phase('subagent', 0, 210, 490), ...own },
      { ...phase('model', 1, 220, 300), ...own },
      phase('permission', 1, 250, 260),
      phase('retry', 1, 260, 280),
      phase('model', 2, 500, null),
    ]
    const lines = rowsOf({ phases, queued_ms: 100 }).map(
      ({ name, depth, from, to, hasFailed }) =>
        `${'> '.repeat(depth)}${name} ${from}–${to}${hasFailed ? ' failed' : ''}`,
    )
    expect(lines).to.deep.equal([
      'Queued 0–100',
      'Turn 1 100–500',
      '> model 100–200',
      '> tool 200–500 failed',
      '> subagent 210–490',
      '> > model 220–300',
      '> Permission for permission 250–260',
      '> Retry after retry 260–280',
      'Turn 2 500–undefined',
      '> model 500–undefined',
    ])
    expect(rowsOf({ queued_ms: 49 })).to.deep.equal([])
  })

  it('has at most five round times along its axis', () => {
    const axes = {
      3: [1, 2, 3],
      7: [2, 4, 6],
      3_700: [1_000, 2_000, 3_000],
      5_000: [1_000, 2_000, 3_000, 4_000, 5_000],
    }
    for (const [total, ticks] of Object.entries(axes)) expect(ticksOf(Number(total)), total).to.deep.equal(ticks)
  })
})
