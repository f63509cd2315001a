import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Schema } from '../../../../shared/client/api.ts'
import { has, may } from '../../api/caller.ts'
import { get } from '../../api/engine.ts'
import { serverNow } from '../../base/clock.ts'
import { relative } from '../../base/format.ts'
import { hrefOf, navigate } from '../../base/router.ts'
import { Dialog } from '../dialog.tsx'
import { Icon } from '../icon.tsx'
import { nameOf, placeOf } from '../run-facts.ts'
import { type Goal, goalsFor } from './goals.ts'
import './palette.css'

const HINT = 'Page, flow, plan or run, or a pasted id'

/** Things of each kind that are read when the palette is opened. */
const MOST = 100

type SearchProps = { pages: readonly Goal[]; onClose(): void }

/** Finds a page, a flow, or one of the newest plans and runs by the typed text. */
export function Search({ pages, onClose }: SearchProps) {
  const text = useSignal('')
  const at = useSignal(0)
  const goals = goalsFor(text.value, pages, useThings())
  const chosen = Math.min(at.value, goals.length - 1)
  const go = (goal: Goal | undefined) => {
    if (!goal) return
    onClose()
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
    <Dialog label="Go to" onClose={onClose}>
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
    </Dialog>
  )
}

/** The flows, and the newest plans and runs, in this order. Each list is shown as soon as it is read. */
function useThings(): readonly Goal[] {
  const things = useSignal<Readonly<Record<number, readonly Goal[]>>>({})
  useEffect(() => {
    // A list that cannot be read adds nothing; its page shows the error.
    for (const [i, read] of [readFlows, readPlans, readRuns].entries())
      read()
        .then((found) => (things.value = { ...things.value, [i]: found }))
        .catch(() => {})
  }, [])
  return Object.values(things.value).flat()
}

type GoalsProps = { goals: readonly Goal[]; chosen: number; onGo(goal: Goal): void }

function Goals({ goals, chosen, onGo }: GoalsProps) {
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: 'nearest' }), [chosen])
  return (
    <ul ref={list}>
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
}

async function readFlows(): Promise<Goal[]> {
  if (!has('flows')) return []
  const { flows } = await get<Schema<'FlowList'>>('/flows', { limit: MOST })
  return flows.map(({ name }) => ({ icon: 'flows', text: name, hint: 'Flow', href: hrefOf(`/flows/${name}`) }))
}

async function readPlans(): Promise<Goal[]> {
  if (!has('plans')) return []
  const { plans } = await get<{ plans: readonly Schema<'PlanSummary'>[] }>('/plans', { limit: MOST })
  return plans.map(({ id, title }) => ({
    icon: 'plans',
    text: title || id,
    hint: 'Plan',
    href: hrefOf(`/plans/${id}`),
  }))
}

async function readRuns(): Promise<Goal[]> {
  if (!may('read')) return []
  const { runs } = await get<{ runs: readonly Schema<'Run'>[] }>('/runs', { limit: MOST })
  return runs.map((run) => ({
    icon: 'activity',
    text: nameOf(run),
    hint: `${run.kind ?? 'run'}, ${relative(run.started_at, serverNow())}`,
    href: placeOf(run),
  }))
}
