import { useSignal } from '@preact/signals'
import { may } from '../../../api/caller.ts'
import { send } from '../../../api/engine.ts'
import { tell } from '../../../base/announce.ts'
import { hrefOf, navigate } from '../../../base/router.ts'
import { Confirm } from '../../../parts/confirm.tsx'
import { closeDocument } from '../edit/flow-document.ts'
import { type Flow, flowPath, placeOf, type Revision } from '../flow.ts'

type HistoryActionsProps = { flow: Flow; revision: Revision; onChange(flow: Flow): void }

/** Goes back to a version, or deletes the flow. Both name what they do, and ask. */
export function HistoryActions(props: HistoryActionsProps) {
  const { flow, revision } = props
  const asked = useSignal<'rollback' | 'delete' | undefined>(undefined)
  if (!may('flows')) return null
  const close = () => (asked.value = undefined)
  return (
    <div class="row">
      {revision.version !== flow.version && (
        <button type="button" class="button" onClick={() => (asked.value = 'rollback')}>
          Roll back to v{revision.version} …
        </button>
      )}
      <span class="grow" />
      <button type="button" class="button danger" onClick={() => (asked.value = 'delete')}>
        Delete {flow.name} …
      </button>
      {asked.value === 'rollback' && <Rollback {...props} onClose={close} />}
      {asked.value === 'delete' && <Deletion flow={flow} onClose={close} />}
    </div>
  )
}

function Rollback({ flow, revision, onChange, onClose }: HistoryActionsProps & { onClose(): void }) {
  const publishes = useSignal(false)
  const rollback = async () => {
    const how = publishes.value ? 'publish' : 'keep_published'
    const saved = await send<Flow>('POST', flowPath(flow.name, `/rollback/${revision.version}?${how}=true`))
    tell(`v${saved.version} of ${flow.name} is what v${revision.version} was${publishes.value ? ', published' : ''}`)
    onClose()
    onChange(saved)
    navigate(placeOf(flow.name, 'history'))
  }
  return (
    <Confirm
      title={`Roll ${flow.name} back to v${revision.version}`}
      submit={publishes.value ? 'Roll back and publish' : `Roll back to v${revision.version}`}
      onConfirm={rollback}
      onClose={onClose}
      more={
        <label class="choice">
          <input
            type="checkbox"
            checked={publishes.value}
            onChange={({ currentTarget }) => (publishes.value = currentTarget.checked)}
          />
          Publish it at once
        </label>
      }
    >
      Its definition becomes v{flow.version + 1}. {publishes.value ? 'Programs get it from then on.' : servedOn(flow)}{' '}
      Nothing is lost: all versions stay.
    </Confirm>
  )
}

function Deletion({ flow, onClose }: { flow: Flow; onClose(): void }) {
  const remove = async () => {
    await send('DELETE', flowPath(flow.name))
    closeDocument(flow.name)
    tell(`${flow.name} is deleted`)
    navigate(hrefOf('/flows'))
  }
  return (
    <Confirm
      title={`Delete ${flow.name}`}
      submit={`Delete ${flow.name}`}
      isDangerous
      onConfirm={remove}
      onClose={onClose}
    >
      Its versions and its memory are deleted for good, and programs that call it are refused. The records of its runs
      stay.
    </Confirm>
  )
}

const servedOn = ({ served_version: served }: Flow) =>
  served === null ? '' : `v${served} goes on being served until you publish the draft.`
