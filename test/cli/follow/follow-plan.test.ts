import { expect } from 'chai'
import { EXIT } from '../../../services/cli/exit-codes.ts'
import { followPlan } from '../../../services/cli/follow/follow-plan.ts'
import type { Io } from '../../../services/cli/io.ts'
import type { PlanHandle, PlanProgress } from '../../../shared/client/client.ts'
import { TerminalScreen } from '../../support/terminal-screen.ts'
import { collect } from '../outputs.ts'

type Step = PlanProgress['steps'][number]

const PLAN = {
  ...{ id: 'plan_1', title: 'Notes', step_runs: {}, step_outputs: {}, started_at: '2026-11-22T09:30:00.000Z' },
  ...{ ended_at: '2026-11-22T09:30:02.000Z', usage: { input_tokens: 8, output_tokens: 2, cost_usd: 0.1 } },
  steps: [
    { id: 'collect', title: 'All of the changes', prompt: 'a' },
    { id: 'write', prompt: 'b', depends_on: ['collect'] },
  ],
}

const at = (status: string, steps: [Step['status'], Step['status']], more: object = {}): PlanProgress =>
  ({
    ...{ status, total: 2, done: steps.filter((each) => each !== 'pending' && each !== 'running').length },
    steps: PLAN.steps.map(({ id, title }, i) => ({ id, title, status: steps[i], error: 'broken' })),
    plan: { ...PLAN, ...more },
  }) as unknown as PlanProgress

async function follow(all: PlanProgress[], { isJson = false, leaves = false, ...changes } = {}) {
  const { output, written } = collect(changes)
  let interrupt = () => {}
  const io = {
    onInterrupt(listener: () => void) {
      interrupt = listener
      return () => {}
    },
  } as unknown as Io
  const plan = {
    id: 'plan_1',
    async *progress({ signal }: { signal: AbortSignal }) {
      yield* all
      if (leaves) interrupt()
      signal.throwIfAborted()
    },
  } as unknown as PlanHandle
  return { code: await followPlan(plan, { io, output, isJson }), written }
}

const OUTPUTS = { step_outputs: { collect: 'changes', write: 'notes' } }

describe('services/cli/follow/follow-plan', () => {
  it('in a pipe each step is one line when it needs nothing more, and stdout has the outputs that no step needs', async () => {
    const { code, written } = await follow([
      at('running', ['running', 'pending']),
      at('running', ['done', 'running']),
      at('done', ['done', 'done'], OUTPUTS),
    ])
    expect(code).to.equal(EXIT.ok)
    expect(written.err).to.match(
      /^\[1\/2\] ✓ collect.*\n\[2\/2\] ✓ write.*\n✓ done · 8 in · 2 out · \$0\.100 · 2\.0 s\n$/,
    )
    const columns = written.err.split('\n').map((line) => line.search(/\d\.\d s$/))
    expect(columns.slice(0, 2), 'the times stand below each other').to.deep.equal([36, 36])
    expect(written.out).to.equal('notes\n')
  })

  it('a plan that fails says which step and why, and what explains it: 1', async () => {
    const { code, written } = await follow([at('failed', ['failed', 'skipped'], { error: 'collect failed' })])
    expect(code).to.equal(EXIT.failed)
    expect(written.err)
      .to.match(/✗ collect .*broken\n/)
      .and.match(/✗ failed .*\n {2}collect failed\n {2}ae why plan_1\n$/)
  })

  it('a plan that is cancelled is 130', async () => {
    expect((await follow([at('cancelled', ['skipped', 'skipped'])])).code).to.equal(EXIT.cancelled)
  })

  it('who leaves is told how to come back, and the plan goes on: 130', async () => {
    const { code, written } = await follow([at('running', ['running', 'pending'])], { leaves: true })
    expect([code, written.err]).to.deep.equal([EXIT.cancelled, 'the plan goes on: ae attach plan_1\n'])
  })

  it('--json prints one change a line, and the plan as the last', async () => {
    const { written } = await follow([at('running', ['done', 'running']), at('done', ['done', 'done'])], {
      isJson: true,
    })
    const lines = written.out.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line))).to.deep.include.members([{ event: 'result', plan: PLAN }])
    expect(JSON.parse(lines[0] ?? '')).to.include({ event: 'progress', done: 1, total: 2, status: 'running' })
  })

  it('on a terminal the steps are drawn in place, each once', async () => {
    const screen = new TerminalScreen(80)
    const err = (text: string) => screen.write(text.replaceAll('\n', '\r\n'))
    const steps: PlanProgress[] = [at('running', ['running', 'pending']), at('done', ['done', 'done'])]
    await follow(steps, { isLive: true, err } as object)
    expect(screen.lines.map((line) => line.trim().split(/\s+/).slice(0, 2).join(' ')).filter(Boolean)).to.deep.equal([
      ...['● Notes', '✓ collect', '✓ write', '✓ done'],
    ])
  })
})
