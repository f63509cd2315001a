import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { waitingCount } from '../api/pending.ts'
import { hrefOf } from '../base/router.ts'
import icon from '../icon.svg'
import { Icon } from '../parts/icon.tsx'
import { offered, type Page } from './pages.tsx'

/** How many entries fit into the bar on a phone, besides the entry that shows the others. */
const ON_PHONE = 4

export function Rail({ current }: { current: Page | undefined }) {
  const isOpen = useSignal(false)
  const [first, others] = [offered().slice(0, ON_PHONE), offered().slice(ON_PHONE)]
  const more = useRef<HTMLButtonElement>(null)
  const toggle = (open: boolean) => () => (isOpen.value = open)
  const close = () => {
    if (isOpen.value) more.current?.focus()
    isOpen.value = false
  }
  return (
    <nav class="rail" aria-label="Pages" onKeyDown={({ key }) => key === 'Escape' && close()}>
      <a class="brand" href={hrefOf('/')}>
        <img src={icon} alt="" width="22" height="22" />
        <span>agent-engine</span>
      </a>
      <ul>{first.map((page) => entryOf(page, current))}</ul>
      {others.length > 0 && (
        <>
          <button
            type="button"
            ref={more}
            class="entry more"
            aria-expanded={isOpen.value}
            data-current={current !== undefined && others.includes(current)}
            onClick={toggle(!isOpen.value)}
          >
            <Icon name="more" />
            <span>More</span>
          </button>
          <ul class={isOpen.value ? 'others open' : 'others'} onClick={toggle(false)}>
            {others.map((page) => entryOf(page, current))}
          </ul>
        </>
      )}
    </nav>
  )
}

const entryOf = (page: Page, current: Page | undefined) => (
  <Entry key={page.path} page={page} isCurrent={page === current} />
)

function Entry({ page, isCurrent }: { page: Page; isCurrent: boolean }) {
  const waiting = page.path === '/approvals' ? waitingCount().value : 0
  return (
    <li>
      <a class="entry" href={hrefOf(page.path)} aria-current={isCurrent ? 'page' : undefined} title={page.name}>
        <Icon name={page.icon} />
        <span>{page.name}</span>
        {waiting > 0 && <Waiting count={waiting} />}
      </a>
    </li>
  )
}

const Waiting = ({ count }: { count: number }) => (
  <b class="count">
    {count}
    <span class="visually-hidden"> waiting</span>
  </b>
)
