import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../shared/client/api.ts'
import { send } from '../../api/engine.ts'
import { tell, tellFailure } from '../../base/announce.ts'
import { counted } from '../../base/format.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import type { Plan } from './plan.ts'

/** The actions that the state of a plan allows. */
export function PlanActions({ plan }: { plan: Plan }) {
  const isBusy = useSignal(false)
  const isOpen = plan.status === 'queued' || plan.status === 'running'
  const act = (work: () => Promise<unknown>) => async () => {
    isBusy.value = true
    await work().catch(tellFailure)
    isBusy.value = false
  }
  const cancel = act(() => send('POST', `/plans/${plan.id}/cancel`).then(() => tell('The plan is cancelled')))
  const retry = act(async () => {
    const again = await send<Schema<'SubmittedPlan'>>('POST', `/plans/${plan.id}/retry`)
    navigate(hrefOf(`/plans/${again.id}`))
  })
  const left = Object.values(plan.step_statuses).filter((status) => status !== 'done').length
  return (
    <>
      {isOpen && (
        <button type="button" class="button danger" disabled={isBusy.value} onClick={() => void cancel()}>
          Cancel this plan
        </button>
      )}
      {!isOpen && plan.status !== 'done' && (
        <button type="button" class="button main" disabled={isBusy.value} onClick={() => void retry()}>
          Retry {counted(left, 'step')}
        </button>
      )}
      <a class="button" href={hrefOf('/plans/new', { from: plan.id })}>
        Submit as new …
      </a>
    </>
  )
}
