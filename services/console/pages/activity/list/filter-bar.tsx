import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { hrefOf, navigate, setFilters } from '../../../base/router.ts'
import { DraftInput } from '../../../parts/draft-input.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Menu } from '../menu.tsx'
import { type Active, activeIn, FILTERS, METADATA, searchFor, shown } from './filters.ts'

const HINT = 'An id, or text in titles and names'

type Edited = { param: string; value: string }

/**
 * The filters of the list: a search field, and a chip for each filter. All of them are part of the address, so that a
 * copied address opens the same view.
 */
export function FilterBar({ query, children }: { query: URLSearchParams; children: ComponentChildren }) {
  const edited = useSignal<Edited | undefined>(undefined)
  const active = activeIn(query)
  return (
    <div class="filter-bar">
      <div class="row">
        <div class="search">
          <Icon name="search" />
          <DraftInput
            label="Search"
            class="input"
            isSearch
            placeholder={HINT}
            value={query.get('q') ?? ''}
            onCommit={search}
          />
        </div>
        <AddFilter active={active} onAdd={(param) => (edited.value = { param, value: '' })} />
        <span class="grow" />
        {children}
      </div>
      <Chips active={active} edited={edited} />
    </div>
  )
}

type Changes = Readonly<Record<string, string | undefined>>

function Chips({ active, edited }: { active: readonly Active[]; edited: Signal<Edited | undefined> }) {
  const done = () => void (edited.value = undefined)
  const apply = (changes: Changes) => {
    done()
    setFilters(changes)
  }
  const editor = edited.value && (
    <Editor key={edited.value.param} edited={edited.value} onApply={apply} onClose={done} />
  )
  const isNew = !active.some(({ param }) => param === edited.value?.param)
  const none = Object.fromEntries(active.map(({ param }) => [param, undefined]))
  return (
    <div class="row chips" role="group" aria-label="Filters">
      {active.map((each) =>
        each.param === edited.value?.param ? (
          editor
        ) : (
          <Chip
            key={each.param}
            active={each}
            onEdit={() => (edited.value = each)}
            onRemove={() => apply({ [each.param]: undefined })}
          />
        ),
      )}
      {isNew && editor}
      {active.length > 1 && (
        <button type="button" class="button plain" onClick={() => apply(none)}>
          Clear all
        </button>
      )}
    </div>
  )
}

function search(text: string): void {
  const found = searchFor(text)
  if ('run' in found) navigate(hrefOf(`/activity/${found.run}`))
  else setFilters(found.filters)
}

const AddFilter = ({ active, onAdd }: { active: readonly Active[]; onAdd(param: string): void }) => (
  <Menu
    label={
      <>
        <Icon name="plus" /> Add filter
      </>
    }
  >
    {Object.entries(FILTERS)
      .filter(([param]) => !active.some((each) => each.param === param))
      .map(([param, { label }]) => (
        <button key={param} type="button" class="button plain" onClick={() => onAdd(param)}>
          {label.replace(/ \(.*/, '')}
        </button>
      ))}
    <button type="button" class="button plain" onClick={() => onAdd(METADATA)}>
      Metadata
    </button>
  </Menu>
)

type ChipProps = { active: Active; onEdit(): void; onRemove(): void }

const Chip = ({ active, onEdit, onRemove }: ChipProps) => (
  <span class="chip">
    <button type="button" title="Change this filter" onClick={onEdit}>
      <span class="soft">{active.label}</span> <b class="cut">{shown(active)}</b>
    </button>
    <button type="button" aria-label={`Remove ${active.label}`} title="Remove" onClick={onRemove}>
      <Icon name="cross" />
    </button>
  </span>
)

type EditorProps = { edited: Edited; onApply(changes: Changes): void; onClose(): void }

/** The field of a filter, which replaces its chip. Enter applies the filter, Escape cancels the change; an empty filter is removed. */
function Editor({ edited: { param, value }, onApply, onClose }: EditorProps) {
  const isPair = param.startsWith(METADATA)
  const name = useSignal(isPair ? param.slice(METADATA.length) : '')
  const typed = useSignal(typedOf(param, value))
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.querySelector<HTMLElement>('input, select')?.focus(), [])
  const apply = (event: Event) => {
    event.preventDefault()
    const next = isPair ? METADATA + name.value.trim() : param
    onApply({ ...(next !== param && { [param]: undefined }), [next]: valueOf(param, typed.value) })
  }
  return (
    <form ref={form} class="chip chip-editor" onSubmit={apply} onKeyDown={({ key }) => key === 'Escape' && onClose()}>
      {isPair && <PairName name={name} />}
      <Value
        label={isPair ? 'Value of the pair' : (FILTERS[param]?.label ?? param)}
        param={param}
        typed={typed.value}
        onTyped={(text) => (typed.value = text)}
      />
      <button type="submit" class="button main">
        Apply
      </button>
      <button type="button" class="button plain icon" aria-label="Cancel" onClick={onClose}>
        <Icon name="cross" />
      </button>
    </form>
  )
}

const PairName = ({ name }: { name: Signal<string> }) => (
  <>
    <input
      class="input"
      aria-label="Name of the pair"
      placeholder="name"
      required
      pattern="[A-Za-z0-9_\-]{1,64}"
      value={name.value}
      onInput={({ currentTarget }) => (name.value = currentTarget.value)}
    />
    <span aria-hidden="true">=</span>
  </>
)

type ValueProps = { label: string; param: string; typed: string; onTyped(text: string): void }

function Value({ label, param, typed, onTyped }: ValueProps) {
  const { form = 'text', choices = [] } = FILTERS[param] ?? {}
  const common = {
    class: 'input',
    value: typed,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLSelectElement }) =>
      onTyped(currentTarget.value),
  }
  return (
    <label class="row tight">
      <span class={param.startsWith(METADATA) ? 'visually-hidden' : 'soft'}>{label}</span>
      {form === 'text' && <input type="text" spellcheck={false} {...common} />}
      {form === 'number' && <input type="number" step="any" min={0} {...common} />}
      {form === 'time' && <input type="datetime-local" {...common} />}
      {form === 'choice' && (
        <select required {...common}>
          <option value="">Choose …</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
    </label>
  )
}

/** A value in the format of its field: times are in the reader's time zone. */
function typedOf(param: string, value: string): string {
  const { form, factor = 1 } = FILTERS[param] ?? {}
  if (value === '') return ''
  if (form === 'number') return String(Number(value) / factor)
  if (form !== 'time' || Number.isNaN(Date.parse(value))) return value
  const at = new Date(value)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function valueOf(param: string, typed: string): string | undefined {
  const { form, factor = 1 } = FILTERS[param] ?? {}
  const text = typed.trim()
  if (text === '') return undefined
  if (form === 'number') return String(Number(text) * factor)
  return form === 'time' ? new Date(text).toISOString() : text
}
