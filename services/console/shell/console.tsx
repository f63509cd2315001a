import './shell.css'
import { signal } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { goLive, onEvent } from '../api/live.ts'
import { waitingCount, watchPending } from '../api/pending.ts'
import { announcement, toasts } from '../base/announce.ts'
import { here, hrefOf, match, type PageProps, pathOf } from '../base/router.ts'
import { ofTab } from '../base/tab.ts'
import iconCalm from '../icon.svg'
import iconWaiting from '../icon-waiting.svg'
import { Icon } from '../parts/icon.tsx'
import { lazy } from '../parts/lazy.tsx'
import type { Goal } from '../parts/palette/goals.ts'
import { signIn } from '../sign-in/session.ts'
import { isPaletteOpen, watchKeys } from './keys.ts'
import { offered, type Page, type View } from './pages.tsx'
import { Rail } from './rail.tsx'
import { TopBar } from './top-bar.tsx'

const loadExpired = () => import('../sign-in/expired.tsx').then((loaded) => loaded.Expired)
const Expired = lazy(loadExpired)
const NoPage = lazy(() => import('../pages/no-page.tsx').then((loaded) => loaded.NoPage))
const SignInPage = lazy(() => import('../sign-in/sign-in-page.tsx').then((loaded) => loaded.SignInPage))

/** The whole console: the frame with the page of the address. */
export function Console() {
  const now = signIn().value
  if (now.state !== 'in' && now.state !== 'expired') return <SignInPage signIn={now} />
  return (
    <>
      <SignedIn />
      {now.state === 'expired' && <Expired problem={now.problem} />}
    </>
  )
}

function SignedIn() {
  useEffect(() => {
    void goLive()
    void loadExpired().catch(() => {}) // The server may be away when it is needed.
    const notices = import('../api/notices.ts')
    const stopNotices = onEvent((event) => void notices.then(({ onRequest }) => onRequest(event))) // A request that comes before the module is loaded is announced, too.
    const stops = [watchPending(), watchKeys(), stopNotices, () => void notices.then(({ takeAll }) => takeAll())]
    addEventListener('pointerover', prefetch)
    return () => stops.forEach((stop) => stop())
  }, [])
  const found = findPage(here().value.path)
  return (
    <div class="shell">
      <TabTitle name={found?.page.name} />
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <Rail current={found?.page} />
      <TopBar />
      <main id="page" tabIndex={-1}>
        {found ? <PageFrame key={found.page.path} {...found} /> : <NoPage />}
      </main>
      <Palette />
      <div class="toasts">
        {toasts().value.map(({ id, text, tone }) => (
          <div key={id} class={`notice ${tone}`}>
            <Icon name={tone === 'bad' ? 'warn' : 'check'} />
            <span class="grow">{text}</span>
          </div>
        ))}
      </div>
      <div class="visually-hidden" role="status" aria-live="polite">
        {announcement().value}
      </div>
    </div>
  )
}

/** The title and the icon of the tab show how many requests wait, even if the page is hidden. */
function TabTitle({ name }: { name: string | undefined }) {
  const waiting = waitingCount().value
  useEffect(() => {
    document.title = [waiting > 0 && `(${waiting})`, name && `${name} ·`, 'agent-engine'].filter(Boolean).join(' ')
    document.querySelector('link[rel=icon]')?.setAttribute('href', waiting > 0 ? iconWaiting : iconCalm)
  }, [name, waiting])
  return null
}

type Found = { page: Page; view: View; params: Record<string, string> }

function findPage(path: string): Found | undefined {
  for (const page of offered())
    for (const view of page.one ? [page, page.one] : [page])
      for (const pattern of view.patterns) {
        const params = match(pattern, path)
        if (params) return { page, view, params }
      }
  return undefined
}

/** Fetches the code of the page to which a link under the pointer leads. */
function prefetch({ target }: Event): void {
  const href = target instanceof Element && target.closest('a[href^="/console"]')?.getAttribute('href')
  if (href)
    void findPage(pathOf(href))
      ?.view.load()
      .catch(() => {})
}

/** The code of the pages that were opened. */
const loaded = ofTab(() => signal<ReadonlyMap<View, FunctionComponent<PageProps> | Error>>(new Map()))

function PageFrame({ view, params }: Found) {
  const Shown = loaded().value.get(view)
  useEffect(() => {
    if (!loaded().peek().has(view)) void load(view)
  }, [view])
  if (Shown instanceof Error)
    return (
      <div class="empty">
        <h2>This page could not be loaded</h2>
        <p>The server may have been updated since you opened the console.</p>
        <button type="button" class="button" onClick={() => location.reload()}>
          Load again
        </button>
      </div>
    )
  return Shown ? <Shown params={params} query={here().value.query} /> : <PageSkeleton />
}

const PageSkeleton = () => (
  <div class="page waiting" role="status">
    <span class="visually-hidden">Loading</span>
    <i />
    <i />
    <i />
  </div>
)

async function load(view: View): Promise<void> {
  const shown = await view.load().catch((cause: unknown) => new Error('not loaded', { cause }))
  loaded().value = new Map(loaded().value).set(view, shown)
}

const Search = lazy(() => import('../parts/palette/search.tsx').then((module) => module.Search))

/** Goes to a page, or to a thing that is found by its name or its id. */
function Palette() {
  return isPaletteOpen().value ? <Search pages={pageGoals()} onClose={() => (isPaletteOpen().value = false)} /> : null
}

const pageGoals = (): Goal[] =>
  offered().map(({ name, icon, path, key }) => ({ icon, text: name, hint: `g ${key}`, href: hrefOf(path) }))
