import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { Field } from '../../parts/field.tsx'
import { FormButtons } from '../../parts/form-buttons.tsx'
import { Notice } from '../../parts/notice.tsx'
import { TextArea } from '../../parts/text-area.tsx'
import { begin, inputOf, type Start, startOf, withInput } from './again.ts'

type EditAgainProps = { run: Schema<'Run'>; onClose(): void }

/**
 * A form that changes the prompt, or the input of the flow, and the model, and starts a run with them. If the server
 * refuses it, the form shows the error and keeps the typed text.
 */
export function EditAgain({ run, onClose }: EditAgainProps) {
  const { start, input, model, problem, submit } = useEdited(run, onClose)
  return (
    <Dialog label="Edit and run again" isWide onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <h2>Edit and run again</h2>
        {start.value && (
          <>
            <TextArea label={start.value.isFlow ? 'Input, as JSON' : 'Prompt'} value={input} rows={10} />
            <Field label="Model" hint="Left empty: the one of the routing.">
              {(id) => (
                <input
                  id={id}
                  class="input"
                  value={model.value}
                  onInput={({ currentTarget }) => (model.value = currentTarget.value)}
                />
              )}
            </Field>
          </>
        )}
        {problem.value !== undefined && <Notice tone="bad">{problem.value}</Notice>}
        <FormButtons submit="Run" isOff={!start.value || input.value.trim() === ''} back="Cancel" onBack={onClose} />
      </form>
    </Dialog>
  )
}

/** The request of the run, with the reader's changes. */
function useEdited(run: Schema<'Run'>, onBegun: () => void) {
  const start = useSignal<Start | undefined>(undefined)
  const [input, model] = [useSignal(''), useSignal('')]
  const problem = useSignal<string | undefined>(undefined)
  const fail = (cause: unknown) => void (problem.value = cause instanceof Error ? cause.message : String(cause))
  useEffect(() => {
    startOf(run).then((found) => {
      input.value = inputOf(found)
      model.value = found.model
      start.value = found
    }, fail)
  }, [])
  const submit = async (event: Event) => {
    event.preventDefault()
    if (!start.value) return
    problem.value = undefined
    try {
      const { body, ...rest } = withInput(start.value, input.value)
      const id = await begin({ ...rest, body: { ...body, model: model.value.trim() || undefined } })
      onBegun()
      navigate(hrefOf(`/activity/${id}`))
    } catch (cause) {
      fail(cause)
    }
  }
  return { start, input, model, problem, submit }
}
