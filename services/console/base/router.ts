import { computed, signal } from '@preact/signals'
import { keepScroll, restoreScroll, scrollToTop, watchScroll } from './scroll.ts'
import { ofTab } from './tab.ts'

/** Where the console is served. */
const ROOT = '/console'

export type Place = { path: string; query: URLSearchParams }

const place = ofTab(() => signal<Place>(read()))

/** The path of the page in the address, without the console's own prefix, and the page's filters. */
export const here = ofTab(() => computed(() => place().value))

/** The address of a page. Filters that are empty are left out. */
export function hrefOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const filters = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const text = new URLSearchParams(filters).toString()
  return `${ROOT}${path}${text === '' ? '' : `?${text}`}`
}

/** Goes to the top of another page, or changes the view of this page. */
export function navigate(href: string, { replace = false } = {}): void {
  const { path } = place().peek()
  if (replace) history.replaceState(history.state, '', href)
  else {
    keepScroll()
    history.pushState({ from: path }, '', href)
  }
  place().value = read()
  if (!replace && place().peek().path !== path) scrollToTop()
}

/** Changes filters of the page that is shown, without a new entry in the browser's history. */
export function setFilters(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = place().peek()
  navigate(hrefOf(path, { ...Object.fromEntries(query), ...changes }), { replace: true })
}

/** Handles clicks on links to pages of the console, so that the page changes without a reload. The browser handles links to a place on a page. */
export function watchAddress(): void {
  watchScroll()
  addEventListener('popstate', () => {
    place().value = read()
    restoreScroll()
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[href]:not([target])') : null
    if (!link || !isPlainClick(event)) return
    const url = new URL(link.getAttribute('href') ?? '', location.href) // A link of an SVG has no address as text otherwise.
    if (url.hash !== '' || !isHere(url)) return
    event.preventDefault()
    if (link.classList.contains('back-link') && isFrom(url)) history.back()
    else navigate(url.href)
  })
}

const isPlainClick = (event: MouseEvent) =>
  event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && !event.defaultPrevented

/** Whether the reader came from this page: then going back restores it with its filters and its scroll position. */
const isFrom = ({ href }: URL) => (history.state as { from?: string } | null)?.from === pathOf(href)

const isHere = ({ origin, pathname }: URL) =>
  origin === location.origin && (pathname === ROOT || pathname.startsWith(`${ROOT}/`)) && !pathname.endsWith('.json')

const read = (): Place => ({ path: pathOf(location.href), query: new URLSearchParams(location.search) })

/** The path of an address of the console, without the console's own prefix. */
export function pathOf(href: string): string {
  const path = new URL(href, location.href).pathname.slice(ROOT.length).replace(/\/+$/, '')
  return path === '' ? '/' : path
}

/** The parameters of a path by a pattern such as `/chat/:session?`; `undefined` when it is another path. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern, path].map((each) => each.split('/').slice(1)) as [string[], string[]]
  if (given.length > wanted.length) return undefined
  const params: Record<string, string> = {}
  for (const [i, part] of wanted.entries()) {
    const value = given[i] ?? ''
    if (part.startsWith(':')) {
      if (value !== '') params[part.replace(/^:|\?$/g, '')] = decode(value)
      else if (!part.endsWith('?')) return undefined
    } else if (part !== value) return undefined
  }
  return params
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The parts of the address that a page reads. */
export type PageProps = { params: Readonly<Record<string, string>>; query: URLSearchParams }
