import { type Signal, useSignal } from '@preact/signals'
import { send } from '../../../api/engine.ts'
import { tell } from '../../../base/announce.ts'
import { counted } from '../../../base/format.ts'
import { Notice } from '../../../parts/notice.tsx'
import { type Flow, flowPath, placeOf } from '../flow.ts'
import { PublishButton } from '../publish-button.tsx'
import type { FlowDocument } from './flow-document.ts'

type SaveBarProps = { flow: Flow; document: FlowDocument; problemCount: number; onChange(flow: Flow): void }

/** Saves the document as the next draft. What is served goes on being served, unless that is switched off. */
export function SaveBar({ flow, document, problemCount, onChange }: SaveBarProps) {
  const keeps = useSignal(true)
  const saving = useSave(flow, document, onChange)
  const isChanged = document.isChanged.value
  const cannotSave = !isChanged || document.value.value === undefined || saving.isBusy.value
  return (
    <div class="save-bar stack close">
      <div class="row">
        <button type="button" class="button main" disabled={cannotSave} onClick={() => void saving.save(keeps.value)}>
          Save the draft
        </button>
        {isChanged && (
          <button type="button" class="button plain" onClick={() => document.take(flow)}>
            Discard the changes
          </button>
        )}
        {flow.served_version !== null && <Keeps version={flow.served_version} keeps={keeps} />}
        <span class="small soft" role="status">
          {problemCount > 0 && `${counted(problemCount, 'problem')} · `}
          {isChanged ? 'Not saved' : `As saved in v${flow.version}`}
        </span>
        <span class="grow" />
        {!isChanged && <Next flow={flow} onChange={onChange} />}
      </div>
      {saving.failure.value !== undefined && <Notice tone="bad">{saving.failure.value}</Notice>}
    </div>
  )
}

function useSave(flow: Flow, document: FlowDocument, onChange: (flow: Flow) => void) {
  const failure = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const save = async (keeps: boolean) => {
    isBusy.value = true
    failure.value = undefined
    try {
      const path = `${flowPath(flow.name)}?keep_published=${String(keeps)}`
      const saved = await send<Flow>('PUT', path, document.value.value)
      document.keep(saved)
      onChange(saved)
      tell(`Saved as the draft v${saved.version}`)
    } catch (cause) {
      failure.value = cause instanceof Error ? cause.message : String(cause)
    }
    isBusy.value = false
  }
  return { save, failure, isBusy }
}

const Keeps = ({ version, keeps }: { version: number; keeps: Signal<boolean> }) => (
  <label class="choice">
    <input
      type="checkbox"
      checked={keeps.value}
      onChange={({ currentTarget }) => (keeps.value = currentTarget.checked)}
    />
    Go on serving v{version}
  </label>
)

/** The step after a draft: its first publication, or the comparison with what is served. */
function Next({ flow, onChange }: { flow: Flow; onChange(flow: Flow): void }) {
  if (flow.state === 'published')
    return (
      <a class="button" href={placeOf(flow.name, 'run')}>
        Run it
      </a>
    )
  if (flow.published_version === null) return <PublishButton flow={flow} onPublished={onChange} />
  return (
    <a class="button" href={placeOf(flow.name, 'evaluate')}>
      Evaluate and publish …
    </a>
  )
}
