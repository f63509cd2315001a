import { useSignal } from '@preact/signals'
import { caller } from '../api/caller.ts'
import { type LiveState, liveState } from '../api/live.ts'
import { Icon } from '../parts/icon.tsx'
import { lazy } from '../parts/lazy.tsx'
import { openPalette } from './keys.ts'

const WhoIsHere = lazy(() => import('../sign-in/who-is-here.tsx').then((loaded) => loaded.WhoIsHere))

const LIVE: Readonly<Record<LiveState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  resuming: 'Reconnecting',
}

export const TopBar = () => (
  <header class="top-bar">
    <button type="button" class="button plain" onClick={openPalette}>
      <Icon name="search" />
      <span>Go to …</span>
      <kbd aria-hidden="true">Ctrl K</kbd>
    </button>
    <span class="grow" />
    <span class={`connection ${liveState().value}`} role="status">
      <i />
      <span>{LIVE[liveState().value]}</span>
    </span>
    <WhoMenu />
  </header>
)

function WhoMenu() {
  const isOpen = useSignal(false)
  return (
    <details class="menu" onToggle={({ currentTarget }) => (isOpen.value = currentTarget.open)}>
      <summary class="button plain" title="Who you are here">
        <span class="cut who">{caller().value?.tenant}</span>
        <Icon name="down" />
      </summary>
      {isOpen.value && <WhoIsHere />}
    </details>
  )
}
