import { signal } from '@preact/signals'
import { caller } from '../../../api/caller.ts'
import { keep, kept } from '../../../base/browser-store.ts'
import { ofTab } from '../../../base/tab.ts'

/** A saved view: the filters of a list as the query of an address, under a name. */
export type View = { name: string; query: string }

/** A person's settings for the list of runs. The browser keeps them separately for each person of each tenant. */
export type Kept = { views: readonly View[]; columns?: readonly string[] | undefined }

const MOST_VIEWS = 50
const MOST_CHARS = 100

const nameOf = (): string => {
  const { tenant, subject } = caller().peek() ?? {}
  return `ae activity ${JSON.stringify([tenant, subject])}`
}

const current = ofTab(() => signal(read()))

export const keptViews = (): Kept => current().value

/** Changes the stored settings. They are read again first, because another tab may have changed them. */
export function keepViews(change: (kept: Kept) => Kept): void {
  const next = change(read())
  keep('localStorage', nameOf(), JSON.stringify(next))
  current().value = next
}

/** A view of the same name is replaced. */
export const saveView = (name: string, query: string): void =>
  keepViews(({ views, ...others }) => ({
    ...others,
    views: [...views.filter((view) => view.name !== name), { name: name.slice(0, MOST_CHARS), query }].slice(
      -MOST_VIEWS,
    ),
  }))

export const deleteView = (name: string): void =>
  keepViews(({ views, ...others }) => ({ ...others, views: views.filter((view) => view.name !== name) }))

/** Settings that cannot be read, because another release or a person has changed them, are ignored. */
function read(): Kept {
  try {
    const { views, columns } = JSON.parse(kept('localStorage', nameOf()) ?? '{}') as Partial<Kept>
    const isView = (view: Partial<View> | null) => typeof view?.name === 'string' && typeof view.query === 'string'
    return {
      views: Array.isArray(views) ? views.filter(isView) : [],
      columns: Array.isArray(columns) ? columns.filter((id) => typeof id === 'string') : undefined,
    }
  } catch {
    return { views: [] }
  }
}
