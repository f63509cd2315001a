import { type Signal, useSignal } from '@preact/signals'
import { download } from '../../../api/download.ts'
import { send } from '../../../api/engine.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { counted } from '../../../base/format.ts'
import { printJson } from '../../../base/long-text.ts'
import { Notice } from '../../../parts/notice.tsx'
import { type Flow, flowPath, placeOf } from '../flow.ts'
import type { FlowDocument } from './flow-document.ts'
import { ImportButton } from './import-button.tsx'

type SaveBarProps = { flow: Flow; document: FlowDocument; problemCount: number; onChange(flow: Flow): void }

/** Saves the document as the next draft. The served version does not change, unless the flow is switched off. */
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
        <ImportButton label="Import …" onRead={({ definition }) => (document.text.value = printJson(definition))} />
        <button type="button" class="button" onClick={() => void exported(flow).catch(tellFailure)}>
          Export
        </button>
        {!isChanged && <Next flow={flow} />}
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

/** The newest version as it is stored, in the format of FLOWS_DIR and `ae flows push`. */
const exported = ({ name }: Flow) => download(flowPath(name), `${name}.yaml`, 'application/yaml')

/** The next steps after saving a draft: open the published version, or compare the draft with it. */
function Next({ flow }: { flow: Flow }) {
  if (flow.published_version === null) return null
  const isPublished = flow.state === 'published'
  return (
    <a class="button" href={placeOf(flow.name, isPublished ? 'run' : 'evaluate')}>
      {isPublished ? 'Run it' : 'Evaluate …'}
    </a>
  )
}
