import { useSignal } from '@preact/signals'
import type { Schema } from '../../../../../shared/client/api.ts'
import { may } from '../../../api/caller.ts'
import { send } from '../../../api/engine.ts'
import { type List, useList } from '../../../api/list.ts'
import { tell, tellFailure } from '../../../base/announce.ts'
import { hrefOf } from '../../../base/router.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Json } from '../../../parts/json.tsx'
import { Loaded } from '../../../parts/loading.tsx'
import { More } from '../../../parts/more.tsx'
import { Empty } from '../../../parts/notice.tsx'
import { SaveForm } from '../../../parts/save-form.tsx'
import { TextArea } from '../../../parts/text-area.tsx'
import { Ago } from '../../../parts/time.tsx'
import { type Flow, flowPath, isAbout } from '../flow.ts'

type Entry = Schema<'MemoryEntry'>

const SCOPES = { corrections: 'Corrections', evolve: 'Remembered by itself' } as const

/** The texts behind `{{.memory}}` in prompts: corrections by people, and outputs that the flow has kept from its own runs. */
export function MemoryView({ flow, query }: { flow: Flow; query: URLSearchParams }) {
  const scope = query.get('scope') === 'evolve' ? 'evolve' : 'corrections'
  const list = useList<Entry>({
    path: flowPath(flow.name, '/memory'),
    field: 'entries',
    query: { scope },
    concerns: isAbout(flow.name, 'flow.ended'),
  })
  return (
    <>
      <nav class="row" aria-label="Scopes">
        {Object.entries(SCOPES).map(([id, label]) => (
          <a
            key={id}
            class="button"
            href={hrefOf(flowPath(flow.name, '/memory'), { scope: id === 'corrections' ? undefined : id })}
            aria-current={id === scope ? 'page' : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      {scope === 'corrections' && may('flows') && <AddCorrection flow={flow} onAdded={list.reload} />}
      <Loaded from={list}>
        {({ items }) =>
          items.length === 0 ? (
            <Nothing flow={flow} scope={scope} />
          ) : (
            <Entries flow={flow} scope={scope} entries={items} list={list} />
          )
        }
      </Loaded>
      <More list={list} />
    </>
  )
}

function AddCorrection({ flow, onAdded }: { flow: Flow; onAdded(): void }) {
  const text = useSignal('')
  const add = async () => {
    await send<Entry>('POST', flowPath(flow.name, '/memory'), { content: text.value })
    text.value = ''
    tell('The correction is added')
    onAdded()
  }
  return (
    <div class="card">
      <SaveForm submit="Add the correction" onSave={add} isOff={text.value.trim() === ''}>
        <TextArea
          label="Correction"
          value={text}
          rows={3}
          hint="Say what the agent should know, such as: Amounts are in euros. It is read at the next run."
        />
      </SaveForm>
    </div>
  )
}

type EntriesProps = { flow: Flow; scope: string; entries: readonly Entry[]; list: List<Entry> }

function Entries({ flow, scope, entries, list }: EntriesProps) {
  const remove = (id: string) =>
    send('DELETE', `${flowPath(flow.name, '/memory')}?scope=${scope}&entry_id=${id}`).then(
      () => tell('The entry is deleted'),
      tellFailure,
    )
  return (
    <ul class="card memory">
      {entries.map(({ id, content, created_at: at }) => (
        <li key={id}>
          {typeof content === 'string' ? <p class="grow">{content}</p> : <Json value={content} />}
          <span class="small soft">
            <Ago at={at} />
          </span>
          {may('flows') && (
            <button
              type="button"
              class="button plain icon"
              aria-label="Delete this entry"
              onClick={() => void remove(id).then(list.reload)}
            >
              <Icon name="trash" />
            </button>
          )}
        </li>
      ))}
    </ul>
  )
}

const Nothing = ({ flow, scope }: { flow: Flow; scope: keyof typeof SCOPES }) => (
  <Empty title={scope === 'corrections' ? 'No correction yet' : 'Nothing is remembered yet'}>
    {scope === 'evolve' &&
      (flow.definition.evolve
        ? 'Inputs whose outputs were confirmed are kept here, and shown to the agent.'
        : 'Switch it on in the definition: inputs whose outputs were confirmed are then kept here.')}
    {scope === 'corrections' &&
      'A correction is read by the agent at every later run, where its prompt has {{.memory}}.'}
  </Empty>
)
