import type { PlanView } from '../../../../shared/work/plans/view.ts'
import { type Guarantee, noneOf } from '../../../harness/guarantee.ts'
import type { StepModel } from '../plans/model.ts'
import type { Windows } from './faults/windows.ts'
import type { Seen } from './load/part.ts'
import type { Probe } from './load/routes.ts'

/** The runs and sessions as requests whose availability counts: without a fault a run is done, and a session keeps living. */
export function livesOf({ runs, sessions }: Seen): Probe[] {
  return [
    ...runs.map(
      ({ from, to, end, gateways }): Probe => ({
        ...{ route: 'a run', names: gateways, targets: ['redis', 'worker'], from, to },
        word: end === 'done' ? 'ok' : end,
      }),
    ),
    ...sessions.map(
      ({ from, to, lost }): Probe => ({
        ...{ route: 'a session', names: [], targets: ['redis', 'worker', 'gateway'], from, to },
        word: lost ?? 'ok',
      }),
    ),
  ]
}

/** From the cancel of a plan until none of its steps may begin any more, and where a fault comes between. */
const STOPS_WITHIN_MS = 3_000
const STOPS_LATE_WITHIN_MS = 20_000

/** A cancel that comes with the end of the last step finds nothing to stop. */
const isHonoured = (view: PlanView | undefined) =>
  view?.status === 'cancelled' ||
  (view?.status === 'done' && Object.values(view.step_statuses).every((status) => status === 'done'))

/** Compares the answers that clients got with the state afterwards. */
export function honoured(
  seen: readonly Seen[],
  { model, windows }: { model: StepModel; windows: Windows },
): Guarantee[] {
  const runs = seen.flatMap(({ cancelled }) => cancelled).filter(({ status }) => status === 200)
  const plans = seen.flatMap((each) => each.plans)
  const sessions = seen.flatMap((each) => each.sessions)
  const forgot = sessions.filter(({ count, done }) => count !== undefined && count < 2 * done)
  const goneOn = plans.flatMap(({ id, tokens, cancelledAt: at }) => {
    const isHit = windows.touches(at, at + STOPS_WITHIN_MS, { targets: ['executor', 'redis', 'mongo'] })
    const until = at + (isHit ? STOPS_LATE_WITHIN_MS : STOPS_WITHIN_MS)
    return tokens.flatMap((token) =>
      model
        .startsOf(token)
        .filter((t) => t > until)
        .map((t) => `${id}: ${t - at} ms later`),
    )
  })
  return [
    noneOf(
      `N6 runs of ${runs.length} that were done although their cancel was answered 200`,
      runs.filter(({ end }) => end === 'done').map(({ run }) => run),
    ),
    noneOf(
      `N6 plans of ${plans.length} that ended otherwise although their cancel was answered 200`,
      plans
        .filter(({ view }) => !isHonoured(view))
        .map(
          ({ id, view, cancelledAt }) =>
            `${id}: ${view?.status}, cancelled at ${new Date(cancelledAt).toISOString()}: ${JSON.stringify(view?.step_statuses)}`,
        ),
    ),
    noneOf('N6 steps that began after the cancel of their plan', goneOn),
    noneOf(
      `N2 sessions of ${sessions.length} without a message that was answered`,
      forgot.map(({ id, count, done }) => `${id}: ${count} messages after ${done} answers`),
    ),
  ]
}
