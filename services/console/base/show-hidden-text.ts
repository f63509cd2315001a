import { options } from 'preact'
import { readable } from '../../../shared/reading/hidden.ts'

/** Attributes that people read or hear. The value of a field stays as it is. */
const READ: readonly string[] = [
  'title',
  'aria-label',
  'aria-description',
  'aria-valuetext',
  'alt',
  'placeholder',
  'label',
]

/** Shows what texts hide, whichever component prints them: each text of the page passes here. */
export function showHiddenText(): void {
  const before = options.vnode
  options.vnode = (vnode) => {
    if (vnode.type === null) show(vnode)
    else if (typeof vnode.type === 'string') showNames(vnode.props as object as Record<string, unknown>)
    before?.(vnode)
  }
}

/** Preact keeps the text of a node in the place of its properties. */
type TextNode = { props: unknown }

function show(vnode: TextNode): void {
  if (typeof vnode.props === 'string') vnode.props = readable(vnode.props)
}

function showNames(props: Record<string, unknown>): void {
  for (const name of READ) {
    const value = props[name]
    if (typeof value === 'string') props[name] = readable(value)
  }
}
