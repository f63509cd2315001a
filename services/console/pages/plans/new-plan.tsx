import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { get, send } from '../../api/engine.ts'
import { tellFailure } from '../../base/announce.ts'
import { printJson } from '../../base/long-text.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { JsonEditor } from '../../parts/editor/json-editor.tsx'
import { useCheckedJson } from '../../parts/editor/use-checked-json.ts'
import { Icon } from '../../parts/icon.tsx'
import { firstPlan } from './first-plan.ts'
import type { Plan } from './plan.ts'

/** An editor for a new plan, which shows its waves and its problems while it is written. */
export function NewPlan({ from }: { from: string | null }) {
  const text = useSignal(from === null ? JSON.stringify(firstPlan(), null, 2) : '')
  useEffect(() => {
    if (from !== null) void takeFrom(from, text)
  }, [from])
  const checked = useCheckedJson(text, (plan) => send<Schema<'PlanCheck'>>('POST', '/plans/check', plan)).value
  const waves = checked.answer?.waves ?? []
  const submit = async () => {
    const plan = await send<Plan>('POST', '/plans/submit', JSON.parse(text.value)).catch(tellFailure)
    if (plan) navigate(hrefOf(`/plans/${plan.id}`))
  }
  return (
    <div class="page">
      <a class="button plain back-link" href={hrefOf('/plans')}>
        <Icon name="back" /> Plans
      </a>
      <div class="new-plan">
        <JsonEditor label="Plan" text={text} problems={checked.problems} />
        <aside class="stack">
          <div class="row">
            <button
              type="button"
              class="button main"
              disabled={waves.length === 0 || checked.isChecking}
              onClick={() => void submit()}
            >
              Submit the plan
            </button>
            <CopyAs method="POST" path="/plans/submit" body={parsed(text.value)} />
          </div>
          <Waves waves={waves} />
        </aside>
      </div>
    </div>
  )
}

async function takeFrom(id: string, text: Signal<string>): Promise<void> {
  const plan = await get<Plan>(`/plans/${encodeURIComponent(id)}`).catch(tellFailure)
  if (!plan) return
  const { title, steps, parallel, timeout_secs, priority, wait_secs } = plan
  text.value = printJson({ title, steps, parallel, timeout_secs, priority, wait_secs })
}

const Waves = ({ waves }: { waves: readonly (readonly string[])[] }) => (
  <section class="card padded stack close" aria-label="Waves">
    <h3>Waves</h3>
    {waves.length === 0 && <p class="soft small">Shown when the plan is correct.</p>}
    <ol class="stack close">
      {waves.map((ids, i) => (
        <li key={i} class="row">
          <span class="soft small number">{i + 1}</span>
          {ids.map((id) => (
            <span key={id} class="badge">
              {id}
            </span>
          ))}
        </li>
      ))}
    </ol>
  </section>
)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}
