import { type Signal, useSignal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { caller, has } from '../../../api/caller.ts'
import { get, send, transport } from '../../../api/engine.ts'
import { useResource } from '../../../api/resource.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { bytes, counted, money } from '../../../base/format.ts'
import { listOf } from '../../../base/json-value.ts'
import { navigate } from '../../../base/router.ts'
import { CopyAs } from '../../../parts/copy-as.tsx'
import { SelectField } from '../../../parts/field.tsx'
import { SaveForm } from '../../../parts/save-form.tsx'
import { TextArea } from '../../../parts/text-area.tsx'
import { TextField } from '../../../parts/text-field.tsx'
import { type Flow, flowPath, placeOf } from '../flow.ts'
import { InstanceField } from './instance-field.tsx'

type NewBatchProps = { flow: Flow; version: number }

/** Runs a version for many inputs: typed lines, a file of this computer, or a stored file. */
export function NewBatch(props: NewBatchProps) {
  const isOpen = useSignal(false)
  return (
    <details class="card" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary class="padded">Run many inputs …</summary>
      {isOpen.value && <BatchForm {...props} />}
    </details>
  )
}

const [WRITTEN, CHOSEN] = ['written', 'chosen'] as const

function BatchForm({ flow, version }: NewBatchProps) {
  const inputs = useInputs(flow)
  const [instance, deadline, price] = [useSignal(''), useSignal(''), useSignal('')]
  const model = useSignal(flow.definition.model === undefined ? (caller().value?.model ?? '') : '')
  const path = flowPath(flow.name, '/batch')
  const answerer = {
    provider_instance: instance.value,
    ...(model.value !== '' && { model: model.value }),
    ...(version !== flow.served_version && { version }),
  }
  const rest = { ...answerer, ...(deadline.value !== '' && { deadline_hours: Number(deadline.value) }) }
  const start = async () => {
    await send<Schema<'FlowBatch'>>('POST', path, { ...(await inputs.take()), ...rest })
    tell('The batch has begun')
    navigate(placeOf(flow.name, 'batches'))
  }
  const estimate = async () => (price.value = await priceOf(flow, itemsIn(await inputs.read()), answerer))
  const more = (
    <>
      {inputs.canRead && <PriceButton onAsk={() => void estimate().catch(tellFailure)} />}
      <CopyAs method="POST" path={path} body={{ file_id: inputs.fileId, ...rest }} />
    </>
  )
  return (
    <SaveForm submit="Start the batch" isOff={!inputs.areThere} more={more} onSave={start}>
      <InputsFields inputs={inputs} />
      <div class="form-grid">
        <InstanceField flow={flow.name} value={instance} />
        <TextField label="Model" value={model} placeholder="that of the flow" />
        <TextField label="Deadline in hours" value={deadline} placeholder="24" hint={ABOUT_DEADLINES} />
      </div>
      <p class="small soft" role="status">
        {price.value}
      </p>
    </SaveForm>
  )
}

const PriceButton = ({ onAsk }: { onAsk(): void }) => (
  <button type="button" class="button" onClick={onAsk}>
    What will it cost?
  </button>
)

const ABOUT_DEADLINES =
  'What has not begun by then is not run. Where you say 1 or more, batches of OpenAI, Anthropic and Google may take them for half the price.' as const

/** What the inputs cost if each is as the first one, in words. */
async function priceOf({ name }: Flow, items: readonly Item[], answerer: object): Promise<string> {
  const body = { ...answerer, input: items[0]?.input ?? {} }
  const estimate = await send<Schema<'Estimate'>>('POST', `${flowPath(name, '/run')}?dry_run=true`, body)
  const { cost_usd_from: from, cost_usd_to: to } = estimate
  if (from === null) return 'The price of this model is not known.'
  const count = items.length
  const most = to === null ? 'or more' : `to ${money(to * count)}`
  return `About ${money(from * count)} ${most} for ${counted(count, 'input')}, as the first one is.`
}

/** A file may be large, and the way to the server slow. */
const UPLOAD_MS = 600_000

type Inputs = ReturnType<typeof useInputs>
type Item = { input?: unknown }

/** The source of the inputs. The first line is prefilled with an example of the flow. */
function useInputs({ definition }: Flow) {
  const [example = {}] = listOf(definition.input_schema['examples'])
  const source: Signal<string> = useSignal(WRITTEN)
  const text = useSignal(JSON.stringify({ custom_id: 'first', input: example }))
  const file = useSignal<File | undefined>(undefined)
  const isWritten = source.value === WRITTEN
  const take = async (): Promise<{ items: Item[] } | { file_id: string }> => {
    if (isWritten) return { items: itemsIn(text.value) }
    if (source.value !== CHOSEN) return { file_id: source.value }
    if (!file.value) throw new Error('Choose a file.')
    const call = { query: { name: file.value.name }, body: file.value, timeoutMs: UPLOAD_MS }
    const { file_id } = await transport().json<Schema<'File'>>('POST', '/files', call)
    return { file_id }
  }
  return {
    ...{ source, text, file, isWritten, take },
    /** Whether the page knows them. */
    canRead: isWritten || (source.value === CHOSEN && file.value !== undefined),
    read: async () => (isWritten ? text.value : ((await file.value?.text()) ?? '')),
    areThere: isWritten ? text.value.trim() !== '' : source.value !== CHOSEN || file.value !== undefined,
    fileId: isWritten || source.value === CHOSEN ? 'file_…' : source.value,
  }
}

/** Throws an error that names the first line which is no item. */
function itemsIn(text: string): Item[] {
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      return [JSON.parse(line) as Item]
    } catch {
      throw new Error(`Line ${i + 1} is no JSON: each line is one item.`)
    }
  })
}

function InputsFields({ inputs: { source, text, file, isWritten } }: { inputs: Inputs }) {
  const kept = useResource('files', readFiles).state.value.data ?? []
  const names = new Map(kept.map(({ file_id, name, bytes: size }) => [file_id, `${name}, ${bytes(size)}`]))
  const words = new Map([[WRITTEN, 'Written here'], [CHOSEN, 'A file of this computer'], ...names])
  const choose = (chosen: File | undefined) => {
    if (!chosen) return
    source.value = CHOSEN
    file.value = chosen
  }
  const onDrop = (event: DragEvent) => {
    event.preventDefault()
    choose(event.dataTransfer?.files[0])
  }
  const takesFiles = has('files')
  return (
    <div class="stack" {...(takesFiles && { onDragOver: (event: DragEvent) => event.preventDefault(), onDrop })}>
      {takesFiles && (
        <SelectField
          label="Inputs"
          value={source}
          choices={[...words.keys()]}
          nameOf={(choice) => words.get(choice) ?? choice}
        />
      )}
      {isWritten && <TextArea label="One item a line" value={text} hint={ABOUT_LINES} />}
      {source.value === CHOSEN && <FileChoice file={file.value} onChoose={choose} />}
    </div>
  )
}

const ABOUT_LINES = 'JSON such as {"custom_id": "a-1", "input": {…}}. A file can be dropped here.' as const

const FileChoice = ({ file, onChoose }: { file: File | undefined; onChoose(file: File | undefined): void }) => (
  <label class="button file-button">
    {file ? `${file.name}, ${bytes(file.size)}` : 'Choose a file …'}
    <input
      class="visually-hidden"
      type="file"
      accept=".jsonl,.ndjson,.json,.txt"
      onChange={({ currentTarget }) => onChoose(currentTarget.files?.[0])}
    />
  </label>
)

const readFiles = async (): Promise<readonly Schema<'File'>[]> =>
  has('files') ? (await get<{ files: Schema<'File'>[] }>('/files', { limit: 100 })).files : []
