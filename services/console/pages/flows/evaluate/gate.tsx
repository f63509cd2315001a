import { useSignal } from '@preact/signals'
import { percent } from '../../../base/format.ts'
import type { Flow } from '../flow.ts'
import { PublishButton } from '../publish-button.tsx'

/** The shares that can be asked for. Without one the draft is published as it is. */
const RATES = ['1', '0.95', '0.9', '0.8', ''] as const

type GateProps = { flow: Flow; passRate: number | undefined; onPublished(flow: Flow): void }

/** Publishes the draft when enough of its evaluated runs have passed. */
export function Gate({ flow, passRate, onPublished }: GateProps) {
  const rate = useSignal<string>('1')
  const needed = rate.value === '' ? undefined : Number(rate.value)
  const isOpen = needed === undefined || (passRate !== undefined && passRate >= needed)
  return (
    <section class="card" aria-label="Publish">
      <header>
        <h2 class="grow">Publish</h2>
      </header>
      <div class="padded-in stack">
        <label class="field">
          <span class="label">Needed pass rate</span>
          <select class="input" value={rate.value} onChange={({ currentTarget }) => (rate.value = currentTarget.value)}>
            {RATES.map((each) => (
              <option key={each} value={each}>
                {each === '' ? 'none: publish as it is' : percent(Number(each))}
              </option>
            ))}
          </select>
        </label>
        <p class="small soft">{explain(flow, passRate, needed)}</p>
        <PublishButton flow={flow} passRate={needed} isOff={!isOpen} onPublished={onPublished} />
      </div>
    </section>
  )
}

function explain({ version }: Flow, passRate: number | undefined, needed: number | undefined): string {
  if (needed === undefined) return `v${version} is published whatever its evaluation says.`
  if (passRate === undefined) return `v${version} has not been evaluated: do that first.`
  if (passRate >= needed) return `${percent(passRate)} of the runs of v${version} have passed.`
  return `Only ${percent(passRate)} of the runs of v${version} have passed: improve the draft, and evaluate it again.`
}
