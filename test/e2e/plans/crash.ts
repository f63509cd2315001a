import { expect } from 'chai'
import type { PlanView } from '../../../shared/work/plans/view.ts'
import type { ModelServer, Received } from '../../support/model-server/model-server.ts'
import { step, stepIdOf } from '../../support/plans.ts'

const LOST = 'executor lost, may have run'

/** A plan whose executor is killed while the steps `once` and `again` run. */
export const CRASHING = {
  parallel: true,
  steps: [
    step('first'),
    step('once', 'first'),
    { ...step('again', 'first'), idempotent: true },
    step('behind', 'once'),
    step('last', 'again'),
  ],
}

/** Before the crash: the model does not answer the steps during which it happens. */
export const beforeCrash = (request: Received) =>
  ['once', 'again', 'held'].includes(stepIdOf(request)) ? [{ hang: true } as const] : `out of ${stepIdOf(request)}`

/** Checks the plan, and the requests that its steps have made before and after the crash (D7.3). */
export function checkAfterCrash(plan: PlanView, { requests }: ModelServer): void {
  const statuses = { first: 'done', once: 'failed', again: 'done', behind: 'skipped', last: 'done' }
  expect(plan).to.deep.include({ status: 'failed', error: LOST, step_errors: { once: LOST }, step_statuses: statuses })
  expect(plan.step_outputs).to.have.all.keys('first', 'again', 'last')
  const ids = CRASHING.steps.map(({ id }) => id)
  const asked = requests.map(stepIdOf).filter((id) => ids.includes(id))
  expect(asked.toSorted()).to.deep.equal(['again', 'again', 'first', 'last', 'once'])
}
