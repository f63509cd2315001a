import { Fragment, h, options, type VNode } from 'preact'
import { readable } from '../../../shared/reading/hidden.ts'
import { isLong, linesOf, partsOf } from './long-text.ts'
import './texts.css'

/** Attributes that people see or hear. The value of a field stays as it is. */
const READ: readonly string[] = [
  'title',
  'aria-label',
  'aria-description',
  'aria-valuetext',
  'alt',
  'placeholder',
  'label',
]

/**
 * Makes invisible characters visible, and shows texts of any length without blocking the page. This applies to all components, because
 * each text of the page passes here.
 */
export function showTexts(): void {
  const before = options.vnode
  options.vnode = (vnode) => {
    if (vnode.type === null) show(vnode)
    else if (typeof vnode.type === 'string') showNames(vnode.props as object as Record<string, unknown>)
    before?.(vnode)
  }
}

/** For a text node, Preact keeps the text in the field `props`. */
type TextNode = { type: unknown; props: unknown }

function show(vnode: TextNode): void {
  if (typeof vnode.props !== 'string') return
  if (isLong(vnode.props)) Object.assign(vnode, { type: LongText, props: { text: vnode.props } })
  else vnode.props = readable(vnode.props)
}

function showNames(props: Record<string, unknown>): void {
  for (const name of READ) {
    const value = props[name]
    if (typeof value === 'string') props[name] = readable(value)
  }
}

/** A long text in parts: the browser lays out only the parts near the screen. Search, screen readers and copying see the whole text. */
const LongText = ({ text }: { text: string }): VNode =>
  h(
    Fragment,
    null,
    partsOf(text).map((part, i, { length }) => {
      const look = part.endsWith('\n') || i === length - 1 ? 'part' : 'part goes-on'
      return h('span', { key: i, class: look, style: { '--lines': linesOf(part) } }, part)
    }),
  )
