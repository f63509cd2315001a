import { type Signal, useSignal } from '@preact/signals'
import { ApiError } from '../../../../shared/client/errors.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { hrefOf, navigate, setFilters } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty } from '../../parts/notice.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextField } from '../../parts/text-field.tsx'
import type { FlowFile } from './edit/flow-file.ts'
import { ImportButton } from './edit/import-button.tsx'
import { EXAMPLES } from './first-flow.ts'
import { type Flow, flowPath, placeOf } from './flow.ts'

/** Creates a flow from an example. It is a draft, and nothing runs before it is published. */
export const NewFlow = ({ example }: { example: string }) =>
  may('flows') ? (
    <Form example={example} />
  ) : (
    <Empty title="Your token may not create flows">
      It needs the scope flows: ask for a token with it at the issuer.
    </Empty>
  )

function Form({ example }: { example: string }) {
  const chosen = EXAMPLES.find(({ id }) => id === example) ?? EXAMPLES[0]
  const file = useSignal<FlowFile | undefined>(undefined)
  const name = useSignal('')
  const wanted = name.value.trim() || file.value?.name || chosen.id
  const { definition } = file.value ?? chosen
  const create = async () => {
    await refuseTaken(wanted)
    await send<Flow>('PUT', flowPath(wanted), definition)
    navigate(placeOf(wanted, 'edit'))
  }
  return (
    <div class="page new-flow">
      <a class="button plain back-link" href={hrefOf('/flows')}>
        <Icon name="back" /> Flows
      </a>
      <div class="page-head">
        <h2 class="grow">New flow</h2>
        <CopyAs method="PUT" path={flowPath(wanted)} body={definition} />
      </div>
      <Examples chosen={file.value ? undefined : chosen.id} onChoose={() => (file.value = undefined)} />
      <Import file={file} />
      <div class="card">
        <SaveForm submit="Create the draft" onSave={create}>
          <TextField
            label="Name"
            value={name}
            placeholder={file.value?.name ?? chosen.id}
            hint="Small letters, digits, - and _. Programs call the flow by it, so it stays."
            isCode
          />
        </SaveForm>
      </div>
    </div>
  )
}

const Import = ({ file }: { file: Signal<FlowFile | undefined> }) => (
  <div class="row">
    <ImportButton label="Import a file …" onRead={(flow) => (file.value = flow)} />
    <span class="soft small" role="status">
      {file.value
        ? `The flow ${file.value.name} is read from the file.`
        : 'YAML or JSON, as Export and ae flows get write it.'}
    </span>
  </div>
)

const Examples = ({ chosen, onChoose }: { chosen: string | undefined; onChoose(): void }) => (
  <fieldset class="examples">
    <legend>Begin with</legend>
    {EXAMPLES.map(({ id, title, hint }) => (
      <label key={id} class="example card">
        <input
          type="radio"
          name="example"
          checked={id === chosen}
          onChange={() => {
            onChoose()
            setFilters({ new: id })
          }}
        />
        <strong>{title}</strong>
        <span class="soft small">{hint}</span>
      </label>
    ))}
  </fieldset>
)

/** A PUT would give an existing flow another draft. */
async function refuseTaken(name: string): Promise<void> {
  const isFree = await get(flowPath(name)).then(
    () => false,
    (cause: unknown) => {
      if (cause instanceof ApiError && cause.status === 404) return true
      throw cause
    },
  )
  if (!isFree) throw new Error(`There is a flow ${name} already: choose another name, or edit that one.`)
}
