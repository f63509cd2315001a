import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { hrefOf } from '../base/router.ts'

type TabsProps = {
  path: string
  /** The filter that holds the tab's id. The first tab has none. Without a name the id is the last part of the path. */
  name?: string
  tabs: readonly { id: string; label: string }[]
  current: string
  /** The actions of the view, at the other end of the row. */
  children?: ComponentChildren
}

/** Views of one page, each with an address. */
export function Tabs({ path, name, tabs, current, children }: TabsProps) {
  const nav = useRef<HTMLElement>(null)
  // A phone has no room for all of them.
  useEffect(() => nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }), [current])
  const addressOf = (id: string) => (name === undefined ? hrefOf(`${path}/${id}`) : hrefOf(path, { [name]: id }))
  return (
    <div class="tabs">
      <nav aria-label="Views" ref={nav}>
        {tabs.map(({ id, label }) => (
          <a key={id} href={addressOf(id)} aria-current={id === current ? 'page' : undefined}>
            {label}
          </a>
        ))}
      </nav>
      {children}
    </div>
  )
}
