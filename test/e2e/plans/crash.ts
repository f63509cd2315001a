import { expect } from 'chai'
import type { PlanView } from '../../../shared/work/plans/view.ts'
import type { ModelServer, Received } from '../../support/model-server/model-server.ts'
import { step, stepIdOf } from '../../support/plans.ts'

const LOST = 'executor lost, may have run'

/** A plan whose executor is killed while the steps `once`, which has changed a file, and `again`, which has not, run. */
export const CRASHING = {
  parallel: true,
  steps: [step('first'), step('once', 'first'), step('again', 'first'), step('behind', 'once'), step('last', 'again')],
}

/** Before the crash: the model does not answer the steps during which it happens. `once` and `held` change a file first. */
export function beforeCrash(request: Received) {
  const id = stepIdOf(request)
  if (id === 'once' || id === 'held') return [{ tool: 'Write', id, input: { path: `${id}.txt`, content: id } }]
  return id === '' || id === 'again' ? [{ hang: true } as const] : `out of ${id}`
}

/** Whether these steps wait for the model, those that change a file after it. */
export const areHanging = ({ requests }: ModelServer, ...ids: readonly string[]): boolean =>
  ids.every((id) => requests.some((each) => (id === 'again' ? stepIdOf(each) : each.results[0]?.id) === id))

/** Checks the plan, and the requests that its steps have made before and after the crash (D7.3). */
export function checkAfterCrash(plan: PlanView, { requests }: ModelServer): void {
  const statuses = { first: 'done', once: 'failed', again: 'done', behind: 'skipped', last: 'done' }
  expect(plan).to.deep.include({ status: 'failed', error: LOST, step_errors: { once: LOST }, step_statuses: statuses })
  expect(plan.step_outputs).to.have.all.keys('first', 'again', 'last')
  const ids = CRASHING.steps.map(({ id }) => id)
  const asked = requests.map(stepIdOf).filter((id) => ids.includes(id))
  expect(asked.toSorted()).to.deep.equal(['again', 'again', 'first', 'last', 'once'])
}
