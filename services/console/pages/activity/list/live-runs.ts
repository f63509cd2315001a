import { signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Schema, TenantEvent } from '../../../../../shared/client/api.ts'
import type { Query } from '../../../../../shared/client/http/transport.ts'
import { get } from '../../../api/engine.ts'
import { useKept } from '../../../api/kept-list.ts'
import type { List } from '../../../api/list.ts'
import { LiveResource, type Loaded } from '../../../api/resource.ts'
import { tellFailure } from '../../../base/announce.ts'

type Run = Schema<'Run'>
type Page = { items: readonly Run[]; next: string | undefined; isIncomplete: boolean }
/** The newest page, and the runs that were shown as running and are not on this page. */
type Fresh = Page & { others: readonly Run[] }

const FIRST = 50
const MORE = 100
/** So many runs that have ended out of sight are read each time. */
const MOST_OTHERS = 10

/**
 * The list of runs as its reader sees it: shown runs keep their position when others begin, and a changed run is updated in place. New runs are
 * only counted until the reader asks for them.
 */
export class LiveRuns implements List<Run> {
  readonly state = signal<Loaded<Page>>({ data: undefined, error: undefined, isLoading: true })
  readonly #query: Query
  readonly #newest: LiveResource<Fresh>

  constructor(query: Query) {
    this.#query = query
    this.#newest = new LiveResource(() => this.#readNewest(), concerns)
  }

  readonly watch = (): (() => void) => {
    const stop = this.#newest.state.subscribe(({ data, error, isLoading }) => {
      const { data: before } = this.state.peek()
      const isFirst = before === undefined || before.items.length === 0
      this.state.value = { data: data && !isFirst ? updated(before, data) : (data ?? before), error, isLoading }
    })
    const leave = this.#newest.watch()
    return () => {
      leave()
      stop()
    }
  }

  readonly reload = (): void => this.#newest.reload()

  /** The runs that are not shown yet. */
  get news(): readonly Run[] {
    const shown = new Set(this.state.value.data?.items.map(({ run_id: id }) => id))
    return this.#newest.state.value.data?.items.filter(({ run_id: id }) => !shown.has(id)) ?? []
  }

  /** Whether more is new than the newest page has. */
  get isAllNew(): boolean {
    return this.news.length > 0 && this.news.length === this.#newest.state.value.data?.items.length
  }

  /** Shows the new runs above the others; alone if the runs between the two groups are unknown. */
  readonly showNews = (): void => {
    const { data: newest } = this.#newest.state.peek()
    const { data: shown } = this.state.peek()
    if (!newest || !shown) return
    const known = new Set(newest.items.map(({ run_id: id }) => id))
    const older = shown.items.filter(({ run_id: id }) => !known.has(id))
    const isAlone = this.isAllNew
    const data = isAlone ? newest : { ...shown, items: [...newest.items, ...older] }
    this.state.value = { data, error: undefined, isLoading: false }
  }

  readonly more = async (): Promise<void> => {
    const { data } = this.state.peek()
    if (data?.next === undefined) return
    await this.#read(data.next).then((page) => {
      const now = this.state.peek().data ?? data
      const known = new Set(now.items.map(({ run_id: id }) => id))
      const items = [...now.items, ...page.items.filter(({ run_id: id }) => !known.has(id))]
      this.state.value = { data: { ...page, items }, error: undefined, isLoading: false }
    }, tellFailure)
  }

  async #read(cursor?: string): Promise<Page> {
    const limit = cursor === undefined ? FIRST : MORE
    const {
      runs,
      next_cursor: next,
      incomplete,
    } = await get<Schema<'ListRunsResponse'>>('/runs', { limit, ...this.#query, cursor })
    return { items: runs, next: next ?? undefined, isIncomplete: incomplete === true }
  }

  async #readNewest(): Promise<Fresh> {
    const page = await this.#read()
    const known = new Set(page.items.map(({ run_id: id }) => id))
    const shown = this.state.peek().data?.items ?? []
    const ended = shown.filter(({ run_id: id, ended_at }) => ended_at === null && !known.has(id)).slice(0, MOST_OTHERS)
    const others = await Promise.all(ended.map(({ run_id: id }) => get<Run>(`/runs/${id}`).catch(() => [])))
    return { ...page, others: others.flat() }
  }
}

const concerns = ({ event }: TenantEvent) => event.startsWith('run.')

/** The shown runs with their changes. An unchanged run stays the same object and is not drawn again. */
function updated(shown: Page, { items, others, isIncomplete }: Fresh): Page {
  const fresh = new Map([...others, ...items].map((run) => [run.run_id, run]))
  const next = shown.items.map((run) => {
    const now = fresh.get(run.run_id)
    return now === undefined || JSON.stringify(now) === JSON.stringify(run) ? run : now
  })
  return { ...shown, isIncomplete, items: next }
}

export function useLiveRuns(query: Query): LiveRuns {
  const runs = useMemo(() => new LiveRuns(query), [JSON.stringify(query)])
  useKept(runs.state, '/runs')
  useEffect(runs.watch, [runs])
  return runs
}
