import { useSignal } from '@preact/signals'
import { tell } from '../../../base/announce.ts'
import { hrefOf } from '../../../base/router.ts'
import { Icon } from '../../../parts/icon.tsx'
import { Menu } from '../menu.tsx'
import { COLUMNS, columnsOf } from './columns.tsx'
import { deleteView, keepViews, keptViews, saveView } from './kept-views.ts'

/** Views that everybody has. */
const GIVEN = [
  { name: 'Failed today', query: 'status=failed&span=24h' },
  { name: 'Waits for somebody', query: 'status=waiting' },
] as const

/** The saved views, and a field to save the current view. */
export function ViewsMenu({ query }: { query: URLSearchParams }) {
  const shown = new URLSearchParams([...query].filter(([param]) => param !== 'compare')).toString()
  return (
    <Menu label="Views" staysOpen>
      {[...GIVEN, ...keptViews().views].map((view) => (
        <div key={view.name} class="row tight view">
          <a
            class="button plain grow"
            href={addressOf(view.query)}
            aria-current={view.query === shown ? 'page' : undefined}
          >
            <span class="cut">{view.name}</span>
          </a>
          {!GIVEN.some((given) => given === view) && (
            <button
              type="button"
              class="button plain icon"
              aria-label={`Delete the view ${view.name}`}
              onClick={() => deleteView(view.name)}
            >
              <Icon name="trash" />
            </button>
          )}
        </div>
      ))}
      <SaveView query={shown} />
    </Menu>
  )
}

function SaveView({ query }: { query: string }) {
  const name = useSignal('')
  const save = (event: Event) => {
    event.preventDefault()
    const given = name.value.trim()
    if (given === '') return
    saveView(given, query)
    name.value = ''
    tell(`Saved as “${given}”, in this browser`)
  }
  return (
    <form class="row tight save-view" onSubmit={save}>
      <input
        class="input"
        aria-label="Name of this view"
        placeholder={query === '' ? 'Add a filter to save a view' : 'Save this view as …'}
        maxLength={100}
        disabled={query === ''}
        value={name.value}
        onInput={({ currentTarget }) => (name.value = currentTarget.value)}
      />
      <button type="submit" class="button" disabled={query === ''}>
        Save
      </button>
    </form>
  )
}

const addressOf = (query: string) => hrefOf('/activity', Object.fromEntries(new URLSearchParams(query)))

/** The columns of the list. The browser keeps the choice. */
export function ColumnsMenu() {
  const shown = columnsOf(keptViews().columns)
  const toggle = (id: string) => {
    const columns = COLUMNS.filter((column) => (column.id === id) !== shown.includes(column)).map((column) => column.id)
    keepViews((kept) => ({ ...kept, columns }))
  }
  return (
    <Menu label="Columns" staysOpen>
      {COLUMNS.filter(({ isFixed }) => !isFixed).map((column) => (
        <label key={column.id} class="button plain">
          <input type="checkbox" checked={shown.includes(column)} onChange={() => toggle(column.id)} />
          {column.title}
        </label>
      ))}
    </Menu>
  )
}
