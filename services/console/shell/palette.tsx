import { useSignal } from '@preact/signals'
import { hrefOf, navigate } from '../base/router.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Icon, type IconName } from '../parts/icon.tsx'
import { isPaletteOpen } from './keys.ts'
import { offered } from './pages.tsx'

type Goal = { icon: IconName; text: string; hint: string; href: string }

/** Goes to a page, or to the thing that a pasted id names. */
export function Palette() {
  if (!isPaletteOpen.value) return null
  const close = () => (isPaletteOpen.value = false)
  return (
    <Dialog label="Go to" onClose={close}>
      <Search onGo={close} />
    </Dialog>
  )
}

function Search({ onGo }: { onGo(): void }) {
  const text = useSignal('')
  const at = useSignal(0)
  const goals = goalsFor(text.value)
  const chosen = Math.min(at.value, goals.length - 1)
  const go = (goal: Goal | undefined) => {
    if (!goal) return
    onGo()
    navigate(goal.href)
  }
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      event.preventDefault()
      at.value = (chosen + step + goals.length) % Math.max(1, goals.length)
    } else if (event.key === 'Enter') go(goals[chosen])
  }
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    text.value = currentTarget.value
    at.value = 0
  }
  return (
    <div class="palette">
      <input
        class="input"
        type="text"
        autofocus
        placeholder={HINT}
        aria-label="Go to"
        onInput={onInput}
        onKeyDown={onKey}
      />
      <Goals goals={goals} chosen={chosen} onGo={go} />
    </div>
  )
}

const HINT = 'Page, or the id of a run, plan, session or request'

type GoalsProps = { goals: readonly Goal[]; chosen: number; onGo(goal: Goal): void }

const Goals = ({ goals, chosen, onGo }: GoalsProps) => (
  <ul>
    {goals.map((goal, i) => (
      <li key={goal.href}>
        <button type="button" class="goal" data-chosen={i === chosen} onClick={() => onGo(goal)}>
          <Icon name={goal.icon} />
          <span class="grow cut">{goal.text}</span>
          <span class="soft small">{goal.hint}</span>
        </button>
      </li>
    ))}
    {goals.length === 0 && <li class="soft goal">Nothing here has this name.</li>}
  </ul>
)

function goalsFor(text: string): Goal[] {
  const wanted = text.trim()
  const known = goalOfId(wanted)
  if (known) return [known]
  return offered()
    .filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()))
    .map(({ name, icon, path, key }) => ({ icon, text: name, hint: `g ${key}`, href: hrefOf(path) }))
}

/** The page of an id, by the kind of thing that its beginning names. */
function goalOfId(id: string): Goal | undefined {
  const page = (
    [
      ['perm_', '/approvals', 'approvals', 'Permission request'],
      ['sess_', '/chat', 'chat', 'Session'],
      ['plan_', '/plans', 'plans', 'Plan'],
      ['run_', '/activity', 'activity', 'Run'],
      ['plan_', '/plans', 'plans', 'Plan'],
      ['run_', '/activity', 'activity', 'Run'],
    ] as const
  ).find(([prefix]) => id.startsWith(prefix))
  return page && { icon: page[2], text: id, hint: page[3], href: hrefOf(`${page[1]}/${encodeURIComponent(id)}`) }
}
