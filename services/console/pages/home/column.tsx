import { type ComponentChildren, toChildArray } from 'preact'

type ColumnProps = {
  title: string
  count: number | undefined
  /** There may be more than were counted. */
  isPart?: boolean
  empty: string
  children: ComponentChildren
}

export const Column = ({ title, count, isPart = false, empty, children }: ColumnProps) => (
  <section class="card column" aria-label={title}>
    <header>
      <h2>{title}</h2>
      {count !== undefined && count > 0 && <span class="badge">{isPart ? `${count}+` : count}</span>}
    </header>
    {toChildArray(children).length === 0 ? <p class="soft none">{empty}</p> : <ul>{children}</ul>}
  </section>
)
