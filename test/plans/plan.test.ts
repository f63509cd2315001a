import { expect } from 'chai'
import fc from 'fast-check'
import { planProblem, wavesOf } from '../../shared/plans/plan.ts'
import type { Plan, PlanStep } from '../../shared/tools/port.ts'

const step = (id: string, ...after: string[]): PlanStep => ({ id, prompt: `do ${id}`, depends_on: after })
const writing = (id: string, path: string, ...after: string[]) => ({ ...step(id, ...after), writes: [path] })

describe('plan', () => {
  const WRONG: [name: string, plan: Plan, problem: RegExp][] = [
    ['over 200 steps', { steps: Array.from({ length: 201 }, (_, i) => step(`s${i}`)) }, /at most 200 steps, not 201/],
    ['two steps of one id', { steps: [step('a'), step('a')] }, /Two steps have the id a/],
    ['an unknown dependency', { steps: [step('a', 'z')] }, /depends on z, which is no step/],
    ['a step that waits for itself', { steps: [step('a', 'a')] }, /in a circle: a\./],
    ['a circle', { steps: [step('x'), step('a', 'b'), step('b', 'c'), step('c', 'a')] }, /in a circle: a, b, c/],
    [
      'two writers of one file at a time',
      { parallel: true, steps: [writing('a', './out/x'), writing('b', 'out//x')] },
      /a and b may run at the same time and both write out\/x/,
    ],
  ]
  for (const [name, plan, problem] of WRONG) {
    it(`D7.2: a plan is refused for ${name}`, () => expect(planProblem(plan)).to.match(problem))
  }

  it('D7.2: a plan may have 200 steps', () => {
    expect(planProblem({ steps: Array.from({ length: 200 }, (_, i) => step(`s${i}`)) })).to.equal(undefined)
  })

  it('D7.2: steps may write the same file when one depends on the other, or when the plan is not parallel', () => {
    const after = [writing('a', 'x'), writing('b', 'x', 'a')]
    expect(planProblem({ parallel: true, steps: after })).to.equal(undefined)
    expect(planProblem({ steps: [writing('a', 'x'), writing('b', 'x')] })).to.equal(undefined)
  })

  it('api.md Plan step: every step is in exactly one wave, after those it depends on', () => {
    const plans = fc
      .integer({ min: 1, max: 20 })
      .chain((size) =>
        fc.tuple(
          ...Array.from({ length: size }, (_, i) => fc.subarray(Array.from({ length: i }, (_step, j) => `s${j}`))),
        ),
      )
    fc.assert(
      fc.property(plans, (dependencies) => {
        const { waves, stuck } = wavesOf(dependencies.map((after, i) => step(`s${i}`, ...after)))
        const waveOf = new Map(waves.flatMap((wave, n) => wave.map(({ id }) => [id, n] as const)))
        expect(stuck).to.deep.equal([])
        expect(waveOf.size).to.equal(dependencies.length)
        for (const { id, depends_on: after = [] } of waves.flat())
          for (const other of after) expect(waveOf.get(other)).to.be.below(waveOf.get(id) ?? -1)
      }),
    )
  })
})
