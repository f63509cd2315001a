import { expect } from 'chai'
import fc from 'fast-check'
import type { Plan, PlanStep } from '../../../shared/agent/tools/port.ts'
import { wavesOf } from '../../../shared/work/plans/graph.ts'
import { planProblem, planProblems, proposalProblem } from '../../../shared/work/plans/plan.ts'
import { countReads } from '../../support/counted.ts'

const step = (id: string, ...after: string[]): PlanStep => ({ id, prompt: `do ${id}`, depends_on: after })
const writing = (id: string, path: string, ...after: string[]) => ({ ...step(id, ...after), writes: [path] })
const many = (count: number) => Array.from({ length: count }, (_, i) => step(`s${i}`))
const ring = (count: number) => many(count).map((each, i) => step(each.id, `s${(i + 1) % count}`))
const circle = [step('x'), step('y', 'a'), step('a', 'b'), step('b', 'c'), step('c', 'a')]

describe('plan', () => {
  const WRONG: [name: string, plan: Plan, path: string, message: RegExp][] = [
    ['no steps', { steps: [] }, '/steps', /no steps: give it at least one/],
    ['over 200 steps', { steps: many(201) }, '/steps', /at most 200 steps, not 201/],
    ['a step without an id', { steps: [step('a'), step('')] }, '/steps/1/id', /Step 2 has no id/],
    ['an id that is too long', { steps: [step('x'.repeat(129))] }, '/steps/0/id', /longer than 128/],
    ['an id with NUL', { steps: [step('a\0')] }, '/steps/0/id', /invalid character/],
    ['an id that is no Unicode', { steps: [step('\ud800')] }, '/steps/0/id', /invalid character/],
    ['two steps of one id', { steps: [step('a'), step('b'), step('a')] }, '/steps/2/id', /Two steps have the id a:/],
    ['two steps named __proto__', { steps: [step('__proto__'), step('__proto__')] }, '/steps/1/id', /Two steps/],
    ['an unknown dependency', { steps: [step('b'), step('a', 'b', 'z')] }, '/steps/1/depends_on/1', /a depends on z,/],
    ['an inherited name as dependency', { steps: [step('a', 'constructor')] }, '/steps/0/depends_on/0', /no step/],
    ['a step that waits for itself', { steps: [step('a', 'a')] }, '/steps/0/depends_on/0', /a depends on itself/],
    ['a circle', { steps: circle }, '/steps/2/depends_on', /in a circle: a -> b -> c -> a\. Remove/],
    [
      'a circle of 5, which is named whole',
      { steps: ring(5) },
      '/steps/0/depends_on',
      /circle: s0 -> s1 -> s2 -> s3 -> s4 -> s0\. Remove/,
    ],
    [
      'a circle of 200, of which the beginning and the end are named',
      { steps: ring(200) },
      '/steps/0/depends_on',
      /in a circle: (\S+)( -> \S+){4} -> 195 more -> \1\. Remove/,
    ],
    [
      'an unknown dependency of any length',
      { steps: [step('a', `x${'y'.repeat(1e6)}`)] },
      '/steps/0/depends_on/0',
      /^.{1,300}$/,
    ],
  ]
  for (const [name, plan, path, message] of WRONG) {
    it(`D7.2: a plan is refused for ${name}`, () => {
      const problem = planProblem(plan)
      expect(problem?.path).to.equal(path)
      expect(problem?.message).to.match(message)
    })
  }

  for (const other of ['out/x', './out/x', 'out//x', 'out/x/', 'b/../out/x', './/out/./x']) {
    it(`D7.2: two steps of one wave may not both write out/x, also not as ${other}`, () => {
      const steps = [
        writing('first', 'q'),
        { ...step('a', 'first'), writes: ['w', 'out/x'] },
        writing('b', other, 'first'),
      ]
      const problem = planProblem({ parallel: true, steps })
      expect(problem?.path).to.equal('/steps/2/writes/0')
      expect(problem?.message).to.match(/Steps a and b may run at the same time and both write out\/x: make one depend/)
    })
  }

  for (const path of ['/etc/passwd', '../x', 'a/../../x', '..', '.', '', 'a/..', 'C:\\x', 'a\0b']) {
    it(`D7.2: a step of a parallel plan may not write ${JSON.stringify(path)}`, () => {
      const problem = planProblem({ parallel: true, steps: [step('a'), writing('b', path)] })
      expect(problem).to.include({ path: '/steps/1/writes/0' })
      expect(problem?.message).to.include('Step b writes').and.include('inside it')
    })
  }

  it('D7.2: a plan may have 200 steps, with any text as their ids', () => {
    expect(planProblem({ steps: many(200) })).to.equal(undefined)
    const odd = [
      '__proto__',
      'constructor',
      'a.b',
      'a b',
      '$where',
      '1',
      ' ',
      'ä🙂',
      'toString',
      'x/../y',
      'x'.repeat(128),
    ]
    const steps = odd.map((id, i) => step(id, ...odd.slice(0, i)))
    expect(planProblem({ steps, parallel: true })).to.equal(undefined)
    expect(wavesOf(steps).waves.flat()).to.deep.equal(steps)
  })

  it('api.md Plan step: a step needs nothing but an id and a prompt', () => {
    const steps = [
      { id: 'a', prompt: 'do a' },
      { id: 'b', prompt: 'do b' },
    ]
    expect(planProblem({ steps, parallel: true })).to.equal(undefined)
  })

  it('D7.2: a step that depends on itself is one problem, not also a circle', () => {
    expect([...planProblems({ steps: [step('a', 'a')] })]).to.have.length(1)
  })

  it('a dependency that is named twice counts once', () => {
    const steps = [step('b', 'a', 'a'), step('a')]
    expect(planProblem({ steps, parallel: true })).to.equal(undefined)
    expect(
      wavesOf(steps)
        .waves.flat()
        .map(({ id }) => id),
    ).to.deep.equal(['a', 'b'])
  })

  it('D7.2: steps may write the same file when one depends on the other, or when the plan is not parallel', () => {
    const after = [writing('a', 'x'), writing('b', 'x', 'a')]
    expect(planProblem({ parallel: true, steps: after })).to.equal(undefined)
    expect(planProblem({ steps: [writing('a', 'x'), writing('b', 'x')] })).to.equal(undefined)
    expect(planProblem({ parallel: true, steps: [{ ...step('a'), writes: ['x', './x'] }] })).to.equal(undefined)
  })

  it('api.md "plan_queued": a plan without steps is no mistake of the model, others are named to it', () => {
    expect(proposalProblem({ steps: [] })).to.equal(undefined)
    expect(proposalProblem({ steps: [step('a')] })).to.equal(undefined)
    expect(proposalProblem({ steps: [step('a', 'a')] })).to.match(/depends on itself/)
  })

  it('a plan with the most dependencies is checked by reading each of them a few times', () => {
    const ids = many(200).map(({ id }) => id)
    const steps = ids.map((id, i) => step(id, ...ids.slice(0, i).reverse())).reverse()
    const counted = countReads({ steps, parallel: true })
    expect(planProblem(counted.value)).to.equal(undefined)
    expect(counted.reads).to.be.below(30 * ((200 * 199) / 2))
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
