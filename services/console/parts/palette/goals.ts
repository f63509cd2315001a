import { hrefOf } from '../../base/router.ts'
import type { IconName } from '../icon.tsx'

/** Something that the palette leads to. */
export type Goal = { icon: IconName; text: string; hint: string; href: string }

const SHOWN = 12

/** The goals that match a text: those that begin with it come first, then pages before other goals. */
export function goalsFor(text: string, pages: readonly Goal[], things: readonly Goal[]): readonly Goal[] {
  const wanted = text.trim()
  const known = goalOfId(wanted)
  if (known) return [known]
  if (wanted === '') return pages
  const named = wanted.toLowerCase()
  const found = [...pages, ...things].filter((goal) => goal.text.toLowerCase().includes(named))
  const rank = (goal: Goal) => (goal.text.toLowerCase().startsWith(named) ? 0 : 1)
  // Each address is listed once. Several runs may have the same text, but each has its own address.
  return [...new Map(found.map((goal) => [goal.href, goal])).values()]
    .toSorted((one, other) => rank(one) - rank(other))
    .slice(0, SHOWN)
}

const KINDS = [
  ['perm_', '/approvals', 'approvals', 'Permission request'],
  ['sess_', '/chat', 'chat', 'Session'],
  ['plan_', '/plans', 'plans', 'Plan'],
  ['run_', '/activity', 'activity', 'Run'],
] as const

/** The page of an id, chosen by the prefix of the id. For the execution of a flow it is the page of the run with the same number. */
function goalOfId(id: string): Goal | undefined {
  const run = id.replace(/^trace_/, 'run_')
  const kind = KINDS.find(([prefix]) => run.startsWith(prefix))
  return kind && { icon: kind[2], text: id, hint: kind[3], href: hrefOf(`${kind[1]}/${encodeURIComponent(run)}`) }
}
