import { useSignal } from '@preact/signals'
import { ApiError } from '../../../../shared/client/errors.ts'
import { may } from '../../api/caller.ts'
import { get, send } from '../../api/engine.ts'
import { hrefOf, navigate, setFilters } from '../../base/router.ts'
import { CopyAs } from '../../parts/copy-as.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Empty } from '../../parts/notice.tsx'
import { SaveForm } from '../../parts/save-form.tsx'
import { TextField } from '../../parts/text-field.tsx'
import { EXAMPLES } from './first-flow.ts'
import { type Flow, flowPath, placeOf } from './flow.ts'

/** Creates a flow of an example. It is a draft, and nothing runs before it is published. */
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
  const name = useSignal('')
  const wanted = name.value.trim() || chosen.id
  const create = async () => {
    await refuseTaken(wanted)
    await send<Flow>('PUT', flowPath(wanted), chosen.definition)
    navigate(placeOf(wanted, 'edit'))
  }
  return (
    <div class="page new-flow">
      <a class="button plain back-link" href={hrefOf('/flows')}>
        <Icon name="back" /> Flows
      </a>
      <div class="page-head">
        <h2 class="grow">New flow</h2>
        <CopyAs method="PUT" path={flowPath(wanted)} body={chosen.definition} />
      </div>
      <Examples chosen={chosen.id} />
      <div class="card">
        <SaveForm submit="Create the draft" onSave={create}>
          <TextField
            label="Name"
            value={name}
            placeholder={chosen.id}
            hint="Small letters, digits, - and _. Programs call the flow by it, so it stays."
            isCode
          />
        </SaveForm>
      </div>
    </div>
  )
}

const Examples = ({ chosen }: { chosen: string }) => (
  <fieldset class="examples">
    <legend>Begin with</legend>
    {EXAMPLES.map(({ id, title, hint }) => (
      <label key={id} class="example card">
        <input type="radio" name="example" checked={id === chosen} onChange={() => setFilters({ new: id })} />
        <strong>{title}</strong>
        <span class="soft small">{hint}</span>
      </label>
    ))}
  </fieldset>
)

/** A PUT would give the flow that is there another draft. */
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
