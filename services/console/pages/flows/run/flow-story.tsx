import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { may } from '../../../api/caller.ts'
import { send } from '../../../api/engine.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { counted, money, short } from '../../../base/format.ts'
import { listOf } from '../../../base/json-value.ts'
import { Json } from '../../../parts/json.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { StateBadge } from '../../../parts/state-badge.tsx'
import { Took } from '../../../parts/time.tsx'
import { type Flow, flowPath, placeOf, runOf } from '../flow.ts'
import type { FlowRun } from './flow-run.ts'
import type { AgentView, FlowView } from './flow-view.ts'

type FlowStoryProps = { flow: Flow; run: FlowRun; onChange(flow: Flow): void }

/** A run of a flow: its agents as they work, and what it answered. */
export function FlowStory({ flow, run, onChange }: FlowStoryProps) {
  const view = run.view.value
  const isOver = run.isOver.value
  const endedAt = isOver ? (view.result?.at ?? new Date().toISOString()) : null
  return (
    <section class="card" aria-label="Answer">
      <header>
        <h2 class="grow">Answer</h2>
        <StateBadge state={stateOf(view, isOver)} />
        {view.started && <Took from={view.started.at} to={endedAt} />}
        {!isOver && run.id.value !== undefined && (
          <button type="button" class="button danger" onClick={() => void run.cancel().catch(tellFailure)}>
            Cancel
          </button>
        )}
      </header>
      <div class="padded-in stack">
        <ul class="stack close" aria-label="Agents">
          {view.agents.map((agent) => (
            <Agent key={agent.name} agent={agent} />
          ))}
        </ul>
        {view.warnings.map(({ message }, i) => (
          <p key={i} class="soft small">
            {message}
          </p>
        ))}
        {view.result && <Result result={view.result} />}
        {view.error && (
          <Notice tone="bad">
            <strong>{view.error.error}</strong>
            <p>{view.error.suggestion}</p>
          </Notice>
        )}
        {isOver && view.started && <Next flow={flow} run={run} traceId={view.started.trace_id} onChange={onChange} />}
      </div>
    </section>
  )
}

const Next = ({ flow, run, traceId, onChange }: FlowStoryProps & { traceId: string }) => (
  <div class="row small">
    <a href={runOf(traceId)}>The run in Activity</a>
    {may('flows') && <a href={placeOf(flow.name, 'memory')}>Correct it for the next time</a>}
    <span class="grow" />
    {may('flows') && !flow.built_in && <SaveExample flow={flow} input={run.request.input} onSaved={onChange} />}
  </div>
)

function stateOf({ result, error, started }: FlowView, isOver: boolean): string {
  if (result) return result.verdict
  if (error) return error.code === 'cancelled' ? 'cancelled' : 'failed'
  if (isOver) return 'rejected'
  return started ? 'running' : 'queued'
}

const Agent = ({ agent: { name, model, turns, tokens, costUsd, tries } }: { agent: AgentView }) => (
  <li class="agent">
    <div class="row small">
      <strong>{name}</strong>
      <span class="soft">{model}</span>
      <span class="grow" />
      <span class="soft number">{counted(turns, 'turn')}</span>
      <span class="soft number">{short(tokens)} tokens</span>
      <span class="soft number">{money(costUsd)}</span>
    </div>
    {tries.map((problems, i) => (
      <OutputProblems key={i} title={`Try ${i + 1} was not taken`} problems={problems} />
    ))}
  </li>
)

function Result({ result }: { result: Schema<'FlowResultData'> }) {
  if (result.verdict === 'ok') return <Json value={result.output} />
  return (
    <>
      <Notice tone="warn">The model has not given an output that fits the schema, in three tries.</Notice>
      <OutputProblems title="Why the last try does not fit" problems={result.problems ?? []} />
    </>
  )
}

const OutputProblems = ({ title, problems }: { title: string; problems: Schema<'OutputProblems'> }) => (
  <div class="small stack close">
    <span class="soft">{title}</span>
    <ul>
      {problems.map(({ path, message }, i) => (
        <li key={i}>
          <code>{path === '' ? 'the whole' : path}</code> {message}
        </li>
      ))}
    </ul>
  </div>
)

/** Schemas need no more, and each is sent with every save. */
const MOST = 20

type SaveExampleProps = { flow: Flow; input: unknown; onSaved(flow: Flow): void }

/** Keeps an input with the flow, as the first example of its schema, in a new draft (D26.5). The form and the rendered prompts begin with it. */
function SaveExample({ flow, input, onSaved }: SaveExampleProps) {
  const isBusy = useSignal(false)
  const examples = listOf(flow.definition.input_schema['examples'])
  const isKept = examples.some((example) => JSON.stringify(example) === JSON.stringify(input))
  const save = async () => {
    isBusy.value = true
    const schema = { ...flow.definition.input_schema, examples: [input, ...examples].slice(0, MOST) }
    const definition = { ...flow.definition, input_schema: schema }
    const path = `${flowPath(flow.name)}?keep_published=true`
    await send<Flow>('PUT', path, definition).then((saved) => {
      tell(`Kept as a sample, in the draft v${saved.version}`)
      onSaved(saved)
    }, tellFailure)
    isBusy.value = false
  }
  return (
    <button type="button" class="button" disabled={isKept || isBusy.value} onClick={() => void save()}>
      {isKept ? 'Kept as a sample' : 'Keep as a sample'}
    </button>
  )
}
