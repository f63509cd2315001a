import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { FlowRun as FlowRunRequest } from '../../../../../shared/client/resources/flows.ts'
import { caller } from '../../../api/caller.ts'
import { isObject, listOf, type Path, withValue } from '../../../base/json-value.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { Notice } from '../../../parts/notice.tsx'
import { TextArea } from '../../../parts/text-area.tsx'
import { TextField } from '../../../parts/text-field.tsx'
import { type Definition, type Flow, flowPath } from '../flow.ts'
import { FlowRun, pointerIntoInput } from './flow-run.ts'
import { Fields } from './input-fields.tsx'
import { type InputProblem, type Raw, rawOf, readInput } from './input-form.ts'
import { type Spec, specOf } from './input-spec.ts'
import { InstanceField } from './instance-field.tsx'

type RunFormProps = {
  flow: Flow
  revision: { version: number; definition: Definition }
  /** The run that was started last. */
  run: FlowRun | undefined
  onStart(run: FlowRun): void
}

/** Asks for the input by its schema, or as JSON, and for the provider. */
export function RunForm({ flow, revision, run, onStart }: RunFormProps) {
  const input = useInput(revision.definition)
  const [instance, deadline] = [useSignal(''), useSignal('')]
  const model = useSignal(revision.definition.model ?? caller().value?.model ?? '')
  const { value, problems } = input.read()
  const refused = refusalOf(run, value)
  const isBusy = run !== undefined && !run.isOver.value && run.request.deadline_hours === undefined
  const request: FlowRunRequest = {
    input: value as Record<string, unknown>,
    instance: instance.value,
    ...(model.value !== '' && { model: model.value }),
    ...(revision.version !== flow.served_version && { version: revision.version }),
    ...(deadline.value !== '' && { deadline_hours: Number(deadline.value) }),
  }
  const start = (event: Event) => {
    event.preventDefault()
    input.wasTried.value = true
    if (problems.length === 0) onStart(new FlowRun(flow.name, request))
  }
  return (
    <form class="card" aria-label="Input" noValidate onSubmit={start}>
      <Head flow={flow} input={input} request={request} />
      <div class="padded-in stack">
        <Samples input={input} />
        <InputFields input={input} problems={refused.field ? [refused.field] : input.shown(problems)} />
        <div class="form-grid">
          <InstanceField flow={flow.name} value={instance} />
          <TextField label="Model" value={model} placeholder="needed: the flow names none" />
          <TextField label="Deadline in hours" value={deadline} placeholder="none" hint={ABOUT_DEADLINES} />
        </div>
        {refused.message !== undefined && <Notice tone="bad">{refused.message}</Notice>}
        <div class="row">
          <button type="submit" class="button main" disabled={isBusy}>
            Run v{revision.version}
          </button>
        </div>
      </div>
    </form>
  )
}

const ABOUT_DEADLINES =
  'For a run without haste: it begins when there is room, goes on when you leave this page, and ends by then. Where you say 1 or more, batches of OpenAI, Anthropic and Google may take it for half the price.' as const

/** The server's error: shown at its field while the input is unchanged, otherwise as a message. */
function refusalOf(run: FlowRun | undefined, value: unknown): { field?: InputProblem; message?: string } {
  const refusal = run?.refusal.value
  if (!run || !refusal) return {}
  const pointer = pointerIntoInput(refusal)
  if (pointer === undefined) return { message: refusal.message }
  return JSON.stringify(run.request.input) === JSON.stringify(value)
    ? { field: { pointer, message: refusal.message } }
    : {}
}

function Head({ flow, input, request }: { flow: Flow; input: Input; request: FlowRunRequest }) {
  const { instance, ...body } = request
  return (
    <header>
      <h2 class="grow">Input</h2>
      {input.spec.kind === 'object' && (
        <button type="button" class="button plain" aria-pressed={input.isJson.value} onClick={input.toggle}>
          JSON
        </button>
      )}
      <CopyAs method="POST" path={flowPath(flow.name, '/run')} body={{ ...body, provider_instance: instance }} />
    </header>
  )
}

type Input = ReturnType<typeof useInput>

/** The inputs that are kept with the flow, as examples of its schema (D26.5). */
function Samples({ input: { samples, fill } }: { input: Input }) {
  const chosen = useSignal('0')
  if (samples.length < 2) return null
  return (
    <label class="row small">
      Begin with
      <select
        class="input grow"
        value={chosen.value}
        onChange={({ currentTarget: { value } }) => {
          chosen.value = value
          fill(samples[Number(value)])
        }}
      >
        {samples.map((sample, i) => (
          <option key={i} value={i}>
            Sample {i + 1}: {JSON.stringify(sample).slice(0, 70)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The input while it is edited: as fields, or as one text. It begins with the first example of the schema. */
function useInput(definition: Definition) {
  const spec = useMemo((): Spec => specOf(definition.input_schema), [])
  const samples = listOf(definition.input_schema['examples']).filter(isObject)
  const [example] = samples
  const raw = useSignal<Raw>(rawOf(spec, example))
  const text = useSignal(JSON.stringify(example ?? {}, null, 2))
  const isJson = useSignal(spec.kind !== 'object')
  const wasTried = useSignal(false)
  const read = () => (isJson.value ? readText(text.value) : readInput(spec, raw.value))
  const toggle = () => {
    const { value } = read()
    if (isJson.value) raw.value = rawOf(spec, value)
    else text.value = JSON.stringify(value, null, 2)
    isJson.value = !isJson.value
  }
  const fill = (sample: unknown) => {
    raw.value = rawOf(spec, sample)
    text.value = JSON.stringify(sample, null, 2)
  }
  const change = (path: Path, next: Raw | undefined) => (raw.value = withValue(raw.value, path, next) as Raw)
  const shown = (problems: readonly InputProblem[]) => (wasTried.value ? problems : [])
  return { spec, samples, raw, text, isJson, wasTried, read, toggle, fill, change, shown }
}

function readText(text: string): ReturnType<typeof readInput> {
  const refused = (message: string) => ({ value: {}, problems: [{ pointer: '', message }] })
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { value, problems: [] } : refused('The input is a JSON object.')
  } catch {
    return refused('This is no JSON.')
  }
}

function InputFields({ input, problems }: { input: Input; problems: readonly InputProblem[] }) {
  const { spec, raw, text, isJson, change } = input
  const isPlaced = ({ pointer }: InputProblem) => pointer !== '' && !isJson.value
  return (
    <>
      {isJson.value || spec.kind !== 'object' ? (
        <TextArea label="Input as JSON" value={text} rows={12} />
      ) : (
        <Fields fields={spec.fields} raw={raw.value} path={[]} problems={problems} onChange={change} />
      )}
      {problems
        .filter((problem) => !isPlaced(problem))
        .map(({ pointer, message }) => (
          <p key={pointer} class="problem small">
            {pointer} {message}
          </p>
        ))}
    </>
  )
}
