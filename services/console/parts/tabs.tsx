import type { ComponentChildren } from 'preact'
import { hrefOf } from '../base/router.ts'

type TabsProps = {
  path: string
  /** The filter that holds the tab's id. The first tab has none. */
  name: string
  tabs: readonly { id: string; label: string }[]
  current: string
  /** The actions of the view, at the other end of the row. */
  children?: ComponentChildren
}

/** Views of one page, each with an address. */
export const Tabs = ({ path, name, tabs, current, children }: TabsProps) => (
  <div class="tabs">
    <nav aria-label="Views">
      {tabs.map(({ id, label }) => (
        <a key={id} href={hrefOf(path, { [name]: id })} aria-current={id === current ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
    {children}
  </div>
)
