import { computed, signal } from '@preact/signals'

/** Where the console is served. */
const ROOT = '/console'

export type Place = { path: string; query: URLSearchParams }

const place = signal<Place>(read())

/** The page that the address names, without the console's own prefix, and its filters. */
export const here = computed(() => place.value)

/** The address of a page. Filters that are empty are left out. */
export function hrefOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const filters = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  const text = new URLSearchParams(filters).toString()
  return `${ROOT}${path}${text === '' ? '' : `?${text}`}`
}

export function navigate(href: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  place.value = read()
}

/** Changes filters of the page that is shown, without a new entry in the browser's history. */
export function setFilters(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = place.peek()
  navigate(hrefOf(path, { ...Object.fromEntries(query), ...changes }), { replace: true })
}

/** Lets clicks on links within the console change the page without loading it again. */
export function watchAddress(): void {
  addEventListener('popstate', () => {
    place.value = read()
  })
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || !isPlainClick(event) || link.target !== '' || !isHere(link)) return
    event.preventDefault()
    navigate(link.href)
    scrollTo(0, 0)
  })
}

const isPlainClick = (event: MouseEvent) =>
  event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey && !event.defaultPrevented

const isHere = ({ origin, pathname }: HTMLAnchorElement) =>
  origin === location.origin && (pathname === ROOT || pathname.startsWith(`${ROOT}/`)) && !pathname.endsWith('.json')

function read(): Place {
  const path = location.pathname.slice(ROOT.length).replace(/\/+$/, '')
  return { path: path === '' ? '/' : path, query: new URLSearchParams(location.search) }
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
