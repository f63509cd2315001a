import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { may } from '../../../api/caller.ts'
import { transport } from '../../../api/engine.ts'
import { useList } from '../../../api/list.ts'
import { percent } from '../../../base/format.ts'
import { More } from '../../../parts/more.tsx'
import { Empty, Notice } from '../../../parts/notice.tsx'
import { SaveForm } from '../../../parts/save-form.tsx'
import { TextField } from '../../../parts/text-field.tsx'
import { type Flow, flowPath, placeOf } from '../flow.ts'
import { PublishButton } from '../publish-button.tsx'
import { PastEvaluations } from './past-evaluations.tsx'
import { Report } from './report.tsx'

/** Twenty runs of the slowest models, four at a time. */
const LONGEST_MS = 30 * 60_000

type EvaluateViewProps = { flow: Flow; onChange(flow: Flow): void }
type Evaluation = Schema<'FlowEvaluation'>

/** Runs the draft with earlier inputs of the served version, and compares the outputs. */
export function EvaluateView({ flow, onChange }: EvaluateViewProps) {
  const report = useSignal<Evaluation | undefined>(undefined)
  const past = useList<Schema<'PastEvaluation'>>({ path: flowPath(flow.name, '/evaluations'), field: 'evaluations' })
  const stored = past.state.value.data?.items ?? []
  const newest = report.value ?? stored.find(({ version }) => version === flow.version)
  const passRate = newest?.version === flow.version ? newest.pass_rate : undefined
  const evaluate = async (body: object) => {
    const path = flowPath(flow.name, '/evaluate')
    report.value = await transport().json<Evaluation>('POST', path, { body, timeoutMs: LONGEST_MS })
    past.reload()
  }
  if (flow.published_version === null) return <NothingToCompare flow={flow} />
  return (
    <>
      <div class="evaluate-columns">
        <section class="card" aria-label="Evaluation">
          <header>
            <h2 class="grow">
              v{flow.version} against v{flow.published_version}
            </h2>
          </header>
          {may('flows') ? (
            <EvaluationForm flow={flow} onEvaluate={evaluate} />
          ) : (
            <p class="padded-in soft">Evaluations need the scope flows.</p>
          )}
        </section>
        {flow.state === 'draft' && may('flows') && <Gate flow={flow} passRate={passRate} onPublished={onChange} />}
      </div>
      {report.value && <Report report={report.value} />}
      <PastEvaluations evaluations={stored} />
      <More list={past} />
    </>
  )
}

type EvaluationFormProps = { flow: Flow; onEvaluate(body: object): Promise<void> }

function EvaluationForm({ flow, onEvaluate }: EvaluationFormProps) {
  const [limit, instance, model] = [useSignal('10'), useSignal(''), useSignal('')]
  const isRunning = useSignal(false)
  const start = async () => {
    isRunning.value = true
    const body = {
      limit: Number(limit.value),
      ...(instance.value !== '' && { provider_instance: instance.value }),
      ...(model.value !== '' && { model: model.value }),
    }
    await onEvaluate(body).finally(() => (isRunning.value = false))
  }
  return (
    <SaveForm submit={`Evaluate v${flow.version}`} onSave={start}>
      <div class="form-grid">
        <TextField label="Newest recorded inputs" value={limit} hint="1 to 20, those of the published version" />
        <TextField label="Provider" value={instance} placeholder="that of each run" isCode />
        <TextField label="Model" value={model} placeholder="that of each run" />
      </div>
      {isRunning.value && (
        <Notice>The draft is run on the recorded inputs, four at a time. Each run costs what it costs.</Notice>
      )}
    </SaveForm>
  )
}

const NothingToCompare = ({ flow }: { flow: Flow }) => (
  <Empty
    title="There is nothing to compare with yet"
    how={[
      'Publish the first version, and let it run: its inputs are recorded.',
      'Change the draft: the published version goes on being served.',
      'Evaluate the draft here on those inputs, and publish it when enough of its runs pass.',
    ]}
    action={
      <a class="button main" href={placeOf(flow.name, 'edit')}>
        Publish the first version
      </a>
    }
  >
    An evaluation runs a draft on the inputs that the published version was given, and compares both answers.
  </Empty>
)

/** The pass rates that can be required. Without one the draft is published without a check. */
const RATES = ['1', '0.95', '0.9', '0.8', ''] as const

type GateProps = { flow: Flow; passRate: number | undefined; onPublished(flow: Flow): void }

/** Publishes the draft when enough of its evaluated runs have passed. */
function Gate({ flow, passRate, onPublished }: GateProps) {
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
