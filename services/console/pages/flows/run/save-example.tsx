import { useSignal } from '@preact/signals'
import { send } from '../../../api/engine.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { listOf } from '../../../base/json-value.ts'
import { type Flow, flowPath } from '../flow.ts'

/** Schemas need no more, and each is sent with every save. */
const MOST = 20

type SaveExampleProps = { flow: Flow; input: unknown; onSaved(flow: Flow): void }

/** Keeps an input as an example of the schema, in a new draft. The form and the rendered prompts begin with the first example. */
export function SaveExample({ flow, input, onSaved }: SaveExampleProps) {
  const isBusy = useSignal(false)
  const examples = listOf(flow.definition.input_schema['examples'])
  const isKept = examples.some((example) => JSON.stringify(example) === JSON.stringify(input))
  const save = async () => {
    isBusy.value = true
    const schema = { ...flow.definition.input_schema, examples: [input, ...examples].slice(0, MOST) }
    const definition = { ...flow.definition, input_schema: schema }
    const path = `${flowPath(flow.name)}?keep_published=true`
    await send<Flow>('PUT', path, definition).then((saved) => {
      tell(`Saved as an example, in the draft v${saved.version}`)
      onSaved(saved)
    }, tellFailure)
    isBusy.value = false
  }
  return (
    <button type="button" class="button" disabled={isKept || isBusy.value} onClick={() => void save()}>
      {isKept ? 'Saved as example' : 'Save as example'}
    </button>
  )
}
