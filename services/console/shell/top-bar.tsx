import { caller } from '../api/caller.ts'
import { needsToken } from '../api/engine.ts'
import { type LiveState, liveState } from '../api/live.ts'
import { Icon } from '../parts/icon.tsx'
import { withTokens } from '../sign-in/start.ts'
import { openPalette } from './keys.ts'
import type { Page } from './pages.tsx'

const LIVE: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  resuming: 'Reconnecting',
}

export const TopBar = ({ page }: { page: Page | undefined }) => (
  <header class="top-bar">
    <h1 class="title">{page?.name ?? 'agent-engine'}</h1>
    <span class="grow" />
    <button type="button" class="button plain find" onClick={openPalette}>
      <Icon name="search" />
      <span>Go to …</span>
      <kbd aria-hidden="true">Ctrl K</kbd>
    </button>
    <span class={`connection ${liveState().value}`} role="status">
      <i />
      <span>{LIVE[liveState().value]}</span>
    </span>
    <WhoMenu />
  </header>
)

/** The tenant and subject of the person, the server, and the scopes of the token. */
function WhoMenu() {
  const me = caller().value
  const facts = {
    Tenant: me?.tenant,
    You: me?.subject,
    Host: location.host,
    Version: me?.version,
    May: me?.scopes.join(', '),
  }
  return (
    <details class="menu">
      <summary class="button plain" title="Who you are here">
        <span class="cut who">{me?.tenant}</span>
        <Icon name="down" />
      </summary>
      <div>
        <dl class="facts small who-facts">
          {Object.entries(facts).map(([name, value]) => [
            <dt key={name}>{name}</dt>,
            <dd key={`${name} value`}>{value}</dd>,
          ])}
        </dl>
        {needsToken() && (
          <button type="button" class="button plain" onClick={() => void withTokens().then(({ signOut }) => signOut())}>
            Sign out
          </button>
        )}
      </div>
    </details>
  )
}
