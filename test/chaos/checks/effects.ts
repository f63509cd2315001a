import { type Entry, type Frame, isGatewayMade, ofKind, type Step, type Tool, type Violation } from '../history.ts'
import type { Limits } from '../limits.ts'

/** `extra-effect` and `two-winners`: no effect happens twice, by a stale owner or after its run's end, and only one attempt succeeds. */
export function checkEffects(history: readonly Entry[], limits: Limits): Violation[] {
  return [...checkTools(history, limits), ...checkSteps(ofKind(history, 'step')), ...checkClaims(history)]
}

function checkTools(history: readonly Entry[], limits: Limits): Violation[] {
  const ends = new Map(endsIn(history).map((frame) => [frame.run, frame]))
  const announced = announcedIn(history)
  const latest = new Map<string, Tool>()
  const calls = new Map<string, Tool>()
  return ofKind(history, 'tool').flatMap((tool) => {
    const found: Violation[] = []
    const say = (what: string, ...before: Entry[]) =>
      found.push({ rule: 'extra-effect', what: `${tool.run}: ${what}`, evidence: [...before, tool] })
    const call = tool.call && calls.get(`${tool.run} ${tool.call}`)
    const newer = latest.get(tool.run)
    const end = ends.get(tool.run)
    if (call) say('a tool call was started twice', call)
    if (newer && newer.epoch > tool.epoch) say('a tool was started by an older epoch', newer)
    const left = (announced.get(tool.run) ?? 0) - 1
    announced.set(tool.run, left)
    if (end && tool.t > end.t + limits.slackMs && left < 0) say('a tool was started after the run had ended', end)
    if (tool.call) calls.set(`${tool.run} ${tool.call}`, tool)
    if (!newer || newer.epoch < tool.epoch) latest.set(tool.run, tool)
    return found
  })
}

/**
 * The number of `tool_use` events that the clients of each run received. A call that was announced may have been frozen
 * between its start and its effect, and no worker can prevent an effect that has started.
 */
function announcedIn(history: readonly Entry[]): Map<string, number> {
  const announced = new Map<string, Set<number>>()
  for (const { run, seq, event } of ofKind(history, 'frame'))
    if (event === 'tool_use') announced.set(run, (announced.get(run) ?? new Set()).add(seq))
  return new Map([...announced].map(([run, seqs]) => [run, seqs.size]))
}

/** The ends of runs. `worker_lost` ends its run although a gateway sends it; after other gateway errors the run may continue. */
const endsIn = (history: readonly Entry[]): Frame[] =>
  ofKind(history, 'frame').filter(
    (frame) => frame.isTerminal && (frame.code === 'worker_lost' || !isGatewayMade(frame)),
  )

function checkSteps(steps: readonly Step[]): Violation[] {
  const started = new Map<string, Step>()
  const done = new Map<string, Step>()
  return steps.flatMap((step) => {
    const found: Violation[] = []
    const name = `${step.plan} ${step.step}`
    const say = (what: string, before: Step) =>
      found.push({ rule: 'extra-effect', what: `${name}: ${what}`, evidence: [before, step] })
    const [first, finished] = [started.get(name), done.get(name)]
    if (finished && step.state !== 'failed') say(`${step.state} after it was done`, finished)
    else if (first && step.state === 'running' && !step.isIdempotent) say('was started twice', first)
    if (step.state === 'running') started.set(name, step)
    if (step.state === 'done') done.set(name, step)
    return found
  })
}

function checkClaims(history: readonly Entry[]): Violation[] {
  const won = Map.groupBy(
    ofKind(history, 'claim').filter(({ isWon }) => isWon),
    ({ what }) => what,
  )
  return [...won].flatMap(([what, winners]): Violation[] =>
    winners.length > 1 ? [{ rule: 'two-winners', what: `${what}: ${winners.length} winners`, evidence: winners }] : [],
  )
}
