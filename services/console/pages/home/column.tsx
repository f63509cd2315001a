import { type ComponentChildren, toChildArray } from 'preact'

type ColumnProps = { title: string; count: number | undefined; empty: string; children: ComponentChildren }

export const Column = ({ title, count, empty, children }: ColumnProps) => (
  <section class="card column" aria-label={title}>
    <header>
      <h2>{title}</h2>
      {count !== undefined && count > 0 && <span class="badge">{count}</span>}
    </header>
    {toChildArray(children).length === 0 ? <p class="soft none">{empty}</p> : <ul>{children}</ul>}
  </section>
)
